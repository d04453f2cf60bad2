"""Users' photographs: read, or refused with the name of the file."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image, ImageCms
from PIL.TiffImagePlugin import AppendingTiffWriter

from lib.data.images import decode_grey, read_grey

GREY = np.random.default_rng(0).integers(0, 256, (40, 60)).astype(np.uint8)


def saved(folder: Path, name: str, image: Image.Image, **options: object) -> Path:
    image.save(folder / name, **options)
    return folder / name


def test_grey_values_equal_those_of_the_file(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_grey(saved(tmp_path, "a.png", Image.fromarray(GREY))), GREY)


def test_sixteen_bits_are_reduced_to_eight(tmp_path: Path) -> None:
    wide = Image.fromarray(GREY.astype(np.uint16) * 257)
    np.testing.assert_array_equal(read_grey(saved(tmp_path, "a.png", wide)), GREY)


def test_colour_of_sixteen_bits_is_read_as_grey_of_eight(tmp_path: Path) -> None:
    colour = np.random.default_rng(1).integers(0, 65536, (40, 60, 3)).astype(np.uint16)
    cv2.imwrite(str(tmp_path / "a.png"), colour)
    expected = cv2.cvtColor((colour / 257).astype(np.float32), cv2.COLOR_BGR2GRAY)
    assert np.abs(read_grey(tmp_path / "a.png") - expected).max() < 2


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG."""
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


# Chunks that say which light a PNG's colours stand for.
GAMMA = chunk(b"gAMA", struct.pack(">I", 45455))
SRGB = chunk(b"sRGB", b"\0")
PRIMARIES = chunk(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 15000, 6000, 30000, 60000))
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
LIGHTS = {
    "gAMA": GAMMA,
    "sRGB": SRGB,
    "gAMA and sRGB": SRGB + GAMMA,
    "gAMA and cHRM": GAMMA + PRIMARIES,
    "iCCP and gAMA": chunk(b"iCCP", b"sRGB\0\0" + zlib.compress(PROFILE)) + GAMMA,
}
COLOURS = np.random.default_rng(2).integers(0, 256, (40, 60, 3)).astype(np.uint8)


def marked(path: Path, chunks: bytes) -> Path:
    """Put chunks behind the header of a PNG."""
    content, end = path.read_bytes(), 33
    path.write_bytes(content[:end] + chunks + content[end:])
    return path


def luma(colours: np.ndarray) -> np.ndarray:
    return colours @ [0.299, 0.587, 0.114]


@pytest.mark.parametrize("light", LIGHTS)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_the_grey_of_a_png_is_its_luma_whatever_light_its_colours_stand_for(
    tmp_path: Path, mode: str, light: str
) -> None:
    image = Image.fromarray(COLOURS).convert(mode)
    stored = np.asarray(image.convert("RGB"))
    plain = read_grey(saved(tmp_path, "a.png", image))
    assert np.abs(plain - luma(stored)).max() < 1.5
    np.testing.assert_array_equal(read_grey(marked(tmp_path / "a.png", LIGHTS[light])), plain)


@pytest.mark.parametrize("light", LIGHTS)
def test_the_grey_of_sixteen_bits_is_luma_whatever_light_its_colours_stand_for(
    tmp_path: Path, light: str
) -> None:
    cv2.imwrite(str(tmp_path / "a.png"), COLOURS[..., ::-1].astype(np.uint16) * 257)
    grey = read_grey(marked(tmp_path / "a.png", LIGHTS[light]))
    assert np.abs(grey - luma(COLOURS)).max() < 1.5


@pytest.mark.parametrize("light", LIGHTS)
def test_the_grey_of_an_animations_first_frame_is_luma(tmp_path: Path, light: str) -> None:
    first, second = Image.fromarray(COLOURS), Image.fromarray(255 - COLOURS)
    path = saved(tmp_path, "a.png", first, save_all=True, append_images=[second])
    assert np.abs(read_grey(marked(path, LIGHTS[light])) - luma(COLOURS)).max() < 1.5


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.ppm"])
def test_the_grey_of_a_colour_is_its_luma_in_all_formats(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, name, Image.fromarray(COLOURS))
    assert np.abs(read_grey(path) - luma(COLOURS)).max() < 1.5


def bmp_of_fields(path: Path, colours: np.ndarray, masks: tuple[int, int, int], bits: int) -> Path:
    """Write a BMP with a header of 40 bytes and masks of the bits that red, green and blue take of a
    pixel; the side is even, so that rows end at multiples of four bytes."""
    pixels = np.zeros(colours.shape[:2], np.uint32)
    for mask, plane in zip(masks, np.moveaxis(colours.astype(np.uint32), 2, 0), strict=True):
        lowest = (mask & -mask).bit_length() - 1
        pixels |= plane * (mask >> lowest) // 255 << lowest
    data = pixels[::-1].astype(f"<u{bits // 8}").tobytes()
    height, width = pixels.shape
    header = struct.pack("<IiiHHIIiiII3I", 40, width, height, 1, bits, 3, len(data), 0, 0, 0, 0, *masks)
    path.write_bytes(b"BM" + struct.pack("<IHHI", 66 + len(data), 0, 0, 66) + header + data)
    return path


@pytest.mark.parametrize(
    ("masks", "bits"),
    [
        ((0xFF0000, 0xFF00, 0xFF), 32),
        ((0xFF000000, 0xFF0000, 0xFF00), 32),
        ((0xF800, 0x7E0, 0x1F), 16),
        ((0x7C00, 0x3E0, 0x1F), 16),
    ],
)
def test_the_grey_of_a_bmp_is_its_luma_wherever_its_colours_lie_in_a_pixel(
    tmp_path: Path, masks: tuple[int, int, int], bits: int
) -> None:
    # Black and white in each channel, which all numbers of bits hold.
    colours = 255 * np.random.default_rng(3).integers(0, 2, (40, 60, 3)).astype(np.uint8)
    path = bmp_of_fields(tmp_path / "a.bmp", colours, masks, bits)
    assert np.abs(read_grey(path) - luma(colours)).max() < 1.5


def test_a_bmp_of_masks_that_pillow_does_not_know_is_refused(tmp_path: Path) -> None:
    path = bmp_of_fields(tmp_path / "a.bmp", COLOURS, (0xFF, 0xFF00, 0xFF0000), 32)
    for read in (read_grey, decode_grey):
        with pytest.raises(ValueError, match=r"a\.bmp is cut short or no image"):
            read(path)


def test_a_png_that_ends_within_any_of_its_chunks_is_refused(tmp_path: Path) -> None:
    path = marked(saved(tmp_path, "a.png", Image.fromarray(COLOURS)), PRIMARIES + GAMMA)
    content = path.read_bytes()
    for end in (*range(33 + len(PRIMARIES + GAMMA) + 12), len(content) // 2):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match=r"a\.png is cut short"):
            read_grey(path)


def test_opencv_gets_no_pixel_of_a_png_that_ends_before_them(tmp_path: Path) -> None:
    path = marked(saved(tmp_path, "a.png", Image.fromarray(COLOURS)), PRIMARIES + GAMMA)
    content = path.read_bytes()
    for end in range(33 + len(PRIMARIES + GAMMA) + 8):
        path.write_bytes(content[:end])
        assert decode_grey(path) is None


def test_data_in_the_low_bits_of_sixteen_alone_is_refused(tmp_path: Path) -> None:
    low = (GREY.astype(np.uint16) * 257) >> 4
    with pytest.raises(ValueError, match=r"a\.png holds 16 bits .* bits would keep 16 grey values"):
        read_grey(saved(tmp_path, "a.png", Image.fromarray(low)))
    read_grey(saved(tmp_path, "b.png", Image.fromarray(low << 4)))


def test_a_small_part_of_the_range_of_sixteen_bits_is_refused_with_a_saturated_pixel_too(
    tmp_path: Path,
) -> None:
    # 15 to 40 °C in hundredths of a kelvin; a camera's 12 bits with one hot pixel.
    thermal = (28800 + GREY.astype(float) / 255 * 2500).astype(np.uint16)
    hot = GREY.astype(np.uint16) << 4
    hot[5, 7] = 65535
    for number, values in enumerate((thermal, hot)):
        with pytest.raises(ValueError, match=r"holds 16 bits"):
            read_grey(saved(tmp_path, f"{number}.png", Image.fromarray(values)))


def test_hot_pixels_are_no_grey_values(tmp_path: Path) -> None:
    low = np.tile(GREY, (10, 15)).astype(np.uint16) << 4
    # One pixel in 1,800, at all values: 1.3 times in 360,000 pixels each.
    low.ravel()[::1800] = np.linspace(4096, 65535, 200)
    with pytest.raises(ValueError, match=r"holds 16 bits"):
        read_grey(saved(tmp_path, "a.png", Image.fromarray(low)))


def test_few_grey_values_of_sixteen_bits_are_read_if_eight_tell_them_apart(tmp_path: Path) -> None:
    for values in (GREY // 128 * 255, 100 + GREY // 10):
        wide = Image.fromarray(values.astype(np.uint16) * 257)
        np.testing.assert_array_equal(read_grey(saved(tmp_path, "a.png", wide)), values)


@pytest.mark.parametrize("largest", [100, 1000, 65000])
@pytest.mark.parametrize("kind", ["P5", "P6", "P2"])
def test_a_pgm_or_ppm_whose_white_is_not_that_of_all_its_bits_is_refused(
    tmp_path: Path, kind: str, largest: int
) -> None:
    path = tmp_path / "a.ppm"
    path.write_bytes(pnm(kind, largest))
    with pytest.raises(ValueError, match=rf"a\.ppm holds values up to {largest}"):
        read_grey(path)


@pytest.mark.parametrize("largest", [255, 65535])
@pytest.mark.parametrize("kind", ["P5", "P6", "P2"])
def test_a_pgm_or_ppm_of_8_or_16_bits_is_read(tmp_path: Path, kind: str, largest: int) -> None:
    path = tmp_path / "a.ppm"
    path.write_bytes(pnm(kind, largest))
    assert np.abs(read_grey(path).astype(int) - GREY).max() <= 1


def pnm(kind: str, largest: int) -> bytes:
    """Return `GREY` as a grey (P5), a colour (P6) or a written-out grey (P2) file."""
    values = (GREY / 255 * largest).round().astype("u1" if largest < 256 else ">u2")
    header = b"%s 60 40 %d\n" % (kind.encode(), largest)
    if kind == "P2":
        return header + b" ".join(b"%d" % value for value in values.ravel()) + b"\n"
    return header + np.repeat(values, 3 if kind == "P6" else 1).tobytes()


def test_a_tiff_whose_0_is_white_is_read_with_8_bits_and_refused_with_16(tmp_path: Path) -> None:
    short = tiff_whose_0_is_white(tmp_path / "8.tif", 255 - GREY)
    np.testing.assert_array_equal(read_grey(short), GREY)
    wide = tiff_whose_0_is_white(tmp_path / "16.tif", 65535 - GREY.astype(np.uint16) * 257)
    with pytest.raises(ValueError, match=r"16\.tif .* white"):
        read_grey(wide)


def tiff_whose_0_is_white(path: Path, values: np.ndarray) -> Path:
    cv2.imwrite(str(path), values, [cv2.IMWRITE_TIFF_COMPRESSION, 1])
    content, tag = path.read_bytes(), b"\x06\x01\x03\x00\x01\x00\x00\x00"
    assert content.count(tag + b"\x01\x00") == 1
    path.write_bytes(content.replace(tag + b"\x01\x00", tag + b"\x00\x00"))
    return path


def test_values_of_cielab_are_refused(tmp_path: Path) -> None:
    Image.new("LAB", (20, 20)).save(tmp_path / "lab.tif")
    with pytest.raises(ValueError, match=r"lab.tif is in CIELab"):
        read_grey(tmp_path / "lab.tif")


def test_a_grey_avif_is_refused_and_one_in_colour_is_read(tmp_path: Path) -> None:
    Image.new("L", (32, 32), 90).save(tmp_path / "grey.avif")
    with pytest.raises(ValueError, match=r"grey.avif is a grey AVIF"):
        read_grey(tmp_path / "grey.avif")
    Image.new("RGB", (32, 32), (90, 90, 90)).save(tmp_path / "colour.avif", quality=100)
    assert abs(int(read_grey(tmp_path / "colour.avif")[16, 16]) - 90) <= 2


def write_planes(path: Path, colours: np.ndarray) -> None:
    """Write (3, H, W) colours of 8 or 16 bits as a TIFF of three strips, one a colour."""
    _, height, width = colours.shape
    bits, size = 8 * colours.itemsize, colours[0].nbytes
    after = 8 + 2 + 10 * 12 + 4
    lists = struct.pack("<3H", *[bits] * 3)
    first = after + len(lists) + 2 * 12
    offsets, counts = [first + size * plane for plane in range(3)], [size] * 3
    # Tag, type (3 is of 16 bits, 4 of 32), how many, the value or where the values are.
    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, 3, after),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 3, after + len(lists)),
        (277, 3, 1, 3),
        (278, 4, 1, height),
        (279, 4, 3, after + len(lists) + 12),
        (284, 3, 1, 2),
    ]
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries) + bytes(4)
    values = lists + struct.pack("<3I", *offsets) + struct.pack("<3I", *counts)
    path.write_bytes(b"II*\0" + struct.pack("<I", 8) + directory + values + colours.tobytes())


def test_a_tiff_of_separate_planes_is_read_with_8_bits_and_refused_with_16(tmp_path: Path) -> None:
    colours = np.random.default_rng(0).integers(0, 256, (3, 40, 60)).astype(np.uint8)
    write_planes(tmp_path / "8.tif", colours)
    expected = colours.transpose(1, 2, 0) @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(read_grey(tmp_path / "8.tif"), expected, atol=1)
    write_planes(tmp_path / "16.tif", colours.astype("<u2") * 257)
    with pytest.raises(ValueError, match=r"16.tif is a TIFF whose colours lie in separate planes of 16"):
        read_grey(tmp_path / "16.tif")


def test_a_tiff_is_refused_if_its_first_picture_is_a_preview_of_another(tmp_path: Path) -> None:
    full, preview = Image.fromarray(GREY), Image.fromarray(GREY[::2, ::2])
    first = saved(tmp_path, "a.tif", preview, tiffinfo={254: 1}, save_all=True, append_images=[full])
    with pytest.raises(ValueError, match=r"a\.tif has a reduced preview as its first picture"):
        read_grey(first)


# TIFF's marks of a picture, bit by bit; programs write the second or none for pages.
PLAIN, REDUCED, PAGE = 0, 1, 2


def tiff_of(path: Path, *pages: tuple[np.ndarray, int]) -> Path:
    """Write a TIFF of pages with their marks."""
    with AppendingTiffWriter(path, new=True) as file:
        for values, mark in pages:
            Image.fromarray(values).save(file, "TIFF", tiffinfo={254: mark})
            file.newFrame()
    return path


@pytest.mark.parametrize("mark", [PLAIN, PAGE])
def test_a_tiff_of_several_pages_is_refused_and_says_how_many(tmp_path: Path, mark: int) -> None:
    thumbnail_first = tiff_of(tmp_path / "a.tif", (GREY[::2, ::2], mark), (GREY, mark))
    with pytest.raises(ValueError, match=r"a\.tif has 2 pages"):
        read_grey(thumbnail_first)
    equal = tiff_of(tmp_path / "b.tif", (GREY, mark), (GREY, mark), (255 - GREY, mark))
    with pytest.raises(ValueError, match=r"b\.tif has 3 pages"):
        read_grey(equal)


def test_reduced_pictures_after_the_full_one_are_no_pages(tmp_path: Path) -> None:
    pyramid = tiff_of(tmp_path / "a.tif", (GREY, PLAIN), (GREY[::2, ::2], REDUCED))
    np.testing.assert_array_equal(read_grey(pyramid), GREY)
    one_page = tiff_of(tmp_path / "b.tif", (GREY, PAGE))
    np.testing.assert_array_equal(read_grey(one_page), GREY)


def test_a_page_counts_though_pillow_does_not_know_its_kind_of_pixels(tmp_path: Path) -> None:
    path = tiff_of(tmp_path / "a.tif", (GREY, PLAIN), (255 - GREY, PLAIN))
    before, tag, after = path.read_bytes().rpartition(b"\x06\x01\x03\x00\x01\x00\x00\x00")
    # The second page shows where the first can be seen through.
    path.write_bytes(before + tag + b"\x04" + after[1:])
    with pytest.raises(ValueError, match=r"a\.tif has 2 pages"):
        read_grey(path)


def test_an_offset_beyond_the_end_of_a_tiff_leads_to_no_page(tmp_path: Path) -> None:
    path = tiff_of(tmp_path / "a.tif", (GREY, PLAIN))
    content = bytearray(path.read_bytes())
    directory = int.from_bytes(content[4:8], "little")
    tags = int.from_bytes(content[directory : directory + 2], "little")
    end = directory + 2 + 12 * tags
    assert content[end : end + 4] == bytes(4)
    content[end : end + 4] = (10**6).to_bytes(4, "little")
    path.write_bytes(content)
    np.testing.assert_array_equal(read_grey(path), GREY)


@pytest.mark.parametrize("name", ["a.png", "a.gif"])
def test_an_animation_is_read_as_its_first_frame(tmp_path: Path, name: str) -> None:
    first, second = Image.fromarray(GREY), Image.fromarray(255 - GREY)
    path = saved(tmp_path, name, first, save_all=True, append_images=[second])
    np.testing.assert_array_equal(read_grey(path), GREY)


def test_an_animation_whose_still_picture_is_no_frame_is_refused(tmp_path: Path) -> None:
    still, *frames = (Image.fromarray(np.roll(GREY, by)) for by in (0, 5, 9))
    path = saved(tmp_path, "a.png", still, save_all=True, append_images=frames, default_image=True)
    with pytest.raises(ValueError, match=r"a\.png is an animation whose still picture"):
        read_grey(path)


def test_a_cameras_second_view_is_no_page(tmp_path: Path) -> None:
    smooth = cv2.GaussianBlur(GREY, (0, 0), 5)
    views = [Image.fromarray(view).convert("RGB") for view in (smooth, 255 - smooth)]
    path = saved(tmp_path, "a.jpg", views[0], format="MPO", save_all=True, append_images=views[1:])
    assert np.abs(read_grey(path).astype(int) - smooth).max() < 10


def test_an_alpha_channel_is_ignored_unless_it_hides_a_pixel(tmp_path: Path) -> None:
    image = Image.fromarray(GREY).convert("RGBA")
    assert np.abs(read_grey(saved(tmp_path, "a.png", image)).astype(int) - GREY).max() <= 1
    image.putpixel((3, 4), (0, 0, 0, 128))
    with pytest.raises(ValueError, match=r"a\.png can be seen through"):
        read_grey(saved(tmp_path, "a.png", image))


def test_an_image_turned_by_its_camera_is_refused_or_read_as_requested(tmp_path: Path) -> None:
    smooth = cv2.GaussianBlur(GREY, (0, 0), 5)
    exif = Image.Exif()
    exif[274] = 6
    path = saved(tmp_path, "a.jpg", Image.fromarray(smooth), exif=exif, quality=95)
    with pytest.raises(ValueError, match=r"a\.jpg is marked by its camera"):
        read_grey(path)
    assert np.abs(read_grey(path, orientation="stored").astype(int) - smooth).max() < 10
    upright = np.rot90(smooth, -1).astype(int)
    assert np.abs(read_grey(path, orientation="turned") - upright).max() < 10


def test_truncated_and_too_large_images_are_refused_by_name(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.png", Image.fromarray(GREY))
    with pytest.raises(ValueError, match=r"a\.png is 60 by 40 px"):
        read_grey(path, most_pixels=2000)
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(ValueError, match=r"a\.png is cut short"):
        read_grey(path)


def damaged(content: bytes, kind: str) -> bytes:
    """Return a JPEG's bytes with damage a third into the file."""
    third = len(content) // 3
    return {
        "zeros": content[:third] + bytes(100) + content[third + 100 :],
        "a part is missing": content[:third] + content[third + 500 :],
        "ended early": content[:third] + b"\xff\xd9",
    }[kind]


@pytest.mark.parametrize("kind", ["zeros", "a part is missing", "ended early"])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_that_is_damaged_inside_is_refused_by_name(
    tmp_path: Path, kind: str, progressive: bool
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
    path = saved(tmp_path, "a.jpg", Image.fromarray(noise), progressive=progressive)
    path.write_bytes(damaged(path.read_bytes(), kind))
    with pytest.raises(ValueError, match=r"a\.jpg is damaged"):
        read_grey(path)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_bytes_that_decoders_pass_over_do_not_damage_a_jpeg(tmp_path: Path, mode: str) -> None:
    path = saved(tmp_path, "a.jpg", Image.fromarray(GREY).convert(mode))
    whole, content = read_grey(path), path.read_bytes()
    # Webcams write bytes before the end of the image, phones append files behind it.
    path.write_bytes(content[:-2] + b"\x00\x01" + content[-2:] + b"more")
    assert np.array_equal(read_grey(path), whole)

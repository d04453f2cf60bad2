"""Read and write image files; a file is decoded completely, on request to grey, or refused by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import cv2
import kornia_rs
import numpy as np
from PIL import ExifTags, Image

from lib.features.grey_values import FEWEST_GREYS, kept_values
from lib.files import write_bytes

# Decoding so many takes about 0.3 GB.
MOST_PIXELS = 50_000_000
# Bit of TIFF's NewSubfileType, which says that another picture of the file is the full one.
_REDUCED = 1
# TIFF's PlanarConfiguration of colours that are not interleaved.
_PLANES = 2
# EXIF orientations of images whose pixels are stored turned or mirrored.
_TURNED = range(2, 9)
# Those by the operations that turn the stored pixels upright, applied in this order.
TRANSPOSED, MIRRORED, FLIPPED = (5, 6, 7, 8), (2, 3, 6, 7), (3, 4, 7, 8)
_PNG = b"\x89PNG\r\n\x1a\n"
# Bytes of the shortest header of a BMP that may give masks, and the compression that says so.
_BMP_HEADER, _BMP_MASKS = 40, 3
# Types of a PNG's chunks that say which light its colours stand for.
_LIGHT = (b"cHRM", b"gAMA", b"iCCP", b"sRGB")
# EXIF's focal lengths, in mm, by names for messages. A digital zoom changes the second only.
FOCAL_LENGTHS = {
    ExifTags.Base.FocalLength: "focal length",
    ExifTags.Base.FocalLengthIn35mmFilm: "focal length for 35 mm film",
}


def read_image(path: Path, header_only: bool = False) -> Image.Image:
    """Read an image of any format that Pillow reads; unlike OpenCV, refuse a damaged file.

    Args:
        path: the file.
        header_only: whether size and mode suffice; the pixels are then not decoded.

    Raises:
        FileNotFoundError: the file is missing.
        ValueError: the file is truncated, a damaged JPEG, or not an image.
    """
    try:
        with Image.open(path) as image:
            if not header_only:
                image.load()
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is cut short or no image ({error})") from error
    if not header_only and image.format in ("JPEG", "MPO") and image.mode in ("L", "RGB"):
        _refuse_damaged_jpeg(path)
    return image


def _refuse_damaged_jpeg(path: Path) -> None:
    """Raise ValueError if a JPEG, grey or in colour, has data that do not follow its own code.

    Pillow and OpenCV go on behind the damage, where blocks are grey or shifted by a multiple of 8 px.
    Damage that leaves a valid code cannot be seen: a JPEG has no checksum.
    """
    try:
        kornia_rs.io.decode_image_jpegturbo(path.read_bytes(), "mono")
    except Exception as error:
        raise ValueError(f"{path} is damaged: its JPEG data are not whole") from error


def fault_of_pages(path: Path, header: Image.Image) -> str:
    """Say why the picture that programs read of a file, its first, is not the one picture that it holds.

    A picture that is marked as reduced does not count, for it repeats another. Nor do the further frames
    of other formats: an animation's (GIF, PNG, WebP, AVIF) and a camera's second view (MPO).

    Args:
        path: the file.
        header: what `read_image` returns of it.

    Returns:
        The fault, for a message after the file's name; "" if there is none.
    """
    if header.info.get("default_image"):
        # Pillow and COLMAP read the still picture, OpenCV the first frame.
        return "is an animation whose still picture is no frame of it: save the one to read as PNG"
    if header.format != "TIFF":
        return ""
    reduced = _reduced_pages(path)
    if reduced[0]:
        return (
            "has a reduced preview as its first picture, which programs read instead of the full one: "
            "save the full one as JPEG or PNG"
        )
    if (pages := reduced.count(False)) > 1:
        return f"has {pages} pages, of which programs read the first alone: save each as a file"
    return ""


def _reduced_pages(path: Path) -> list[bool]:
    """Return, for each page of a TIFF or of a camera's DNG, whether it is marked as reduced."""
    pages = []
    with warnings.catch_warnings(), Image.open(path) as image:
        # Pillow warns about damaged tags.
        warnings.simplefilter("ignore")
        for page in count():
            try:
                image.seek(page)
            except EOFError:
                break
            except Exception:
                # Pillow may not know the kind of the page's pixels, such as a mask's. What has no size,
                # or cannot be reached, is no page.
                if image.tell() < page or ExifTags.Base.ImageWidth not in image.tag_v2:
                    break
            pages.append(bool(image.tag_v2.get(ExifTags.Base.NewSubfileType, 0) & _REDUCED))
    return pages


def stated_focal_lengths(path: Path) -> dict[int, float]:
    """Return the `FOCAL_LENGTHS` that an image's EXIF states, mm, by tag; 0 there means unknown."""
    try:
        with warnings.catch_warnings(), Image.open(path) as image:
            # Pillow warns about damaged EXIF.
            warnings.simplefilter("ignore")
            exif = image.getexif().get_ifd(ExifTags.IFD.Exif)
        lengths = {tag: float(exif[tag]) for tag in FOCAL_LENGTHS if tag in exif}
    except Exception:
        # Damaged EXIF states nothing; whether the pixels are damaged too shows when they are read.
        return {}
    return {tag: length for tag, length in lengths.items() if 0 < length < math.inf}


def decode_grey(path: Path, flags: int = 0) -> np.ndarray | None:
    """Decode a file with OpenCV to (H, W) uint8 grey values; return None if OpenCV cannot.

    The grey of a colour is its luma, 0.299 R + 0.587 G + 0.114 B of the stored values, in every format.

    Args:
        path: the file.
        flags: OpenCV's flags; 0 is IMREAD_GRAYSCALE.

    Raises:
        ValueError: the file is a BMP whose layout Pillow does not read, and OpenCV may misread.
    """
    # np.fromfile turns a Ctrl-C that arrives while it looks at `path` into a SystemError.
    content = path.read_bytes()
    if content.startswith(_PNG):
        # Where a PNG has such a chunk, libpng averages the light, which is tens of grey values off luma.
        content = _PNG + b"".join(chunk for kind, chunk in _png_chunks(content) if kind not in _LIGHT)
    if _is_bmp_of_fields(content):
        # OpenCV takes one order of masks for another, and does not stretch 5 or 6 bits to 255.
        return cv2.cvtColor(np.asarray(read_image(path).convert("RGB")), cv2.COLOR_RGB2GRAY)
    data = np.frombuffer(content, np.uint8)
    return cv2.imdecode(data, flags) if len(data) else None


def _is_bmp_of_fields(content: bytes) -> bool:
    """Whether a file is a BMP of 16 bits a pixel, or of masks that say where a pixel's colours lie."""
    header, bits, compression = (
        int.from_bytes(content[begin:end], "little") for begin, end in ((14, 18), (28, 30), (30, 34))
    )
    # Shorter headers, OS/2's, have neither, and pixels at these places.
    is_bmp = content.startswith(b"BM") and header >= _BMP_HEADER
    return is_bmp and (bits == 16 or compression == _BMP_MASKS)


def _png_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and all bytes of each chunk of a PNG; the last one may be cut short."""
    begin = len(_PNG)
    while begin < len(content):
        # The data's length, the type, the data and a CRC, all but the data of 4 bytes.
        end = begin + 12 + int.from_bytes(content[begin : begin + 4], "big")
        yield content[begin + 4 : begin + 8], content[begin:end]
        begin = end


def write_image(path: Path, image: np.ndarray) -> None:
    """Write (H, W) uint8 grey values, or (H, W, 3) colours, in the format of the file's suffix.

    JPEG has quality 95. The folder is made if missing.

    Raises:
        OSError: the folder cannot be written.
    """
    write_bytes(path, cv2.imencode(path.suffix, image)[1].tobytes())


def reduced(grey: np.ndarray, longest_side: int) -> np.ndarray:
    """Reduce an image by area averaging to a longer side of `longest_side` px; never enlarge it."""
    height, width = grey.shape
    factor = min(longest_side / max(height, width), 1.0)
    size = (max(round(width * factor), 1), max(round(height * factor), 1))
    return cv2.resize(grey, size, interpolation=cv2.INTER_AREA)


def read_grey(
    path: Path | str,
    longest_side: int | None = None,
    orientation: str = "refuse",
    most_pixels: int = MOST_PIXELS,
) -> np.ndarray:
    """Read an image as (H, W) uint8 grey values; of 16-bit values, keep the upper 8 bits.

    Args:
        path: the file, in any format that Pillow and OpenCV read.
        longest_side: px to which a larger image is reduced; None keeps the full size, for which
            detectors need up to 250 bytes a pixel.
        orientation: how to treat an image that its camera marks as to be turned (EXIF): "refuse" it,
            since programs differ in whether they turn it; read the pixels as "stored", as COLMAP does;
            or read them "turned", as hloc does.
        most_pixels: largest number of pixels of the file, before it is reduced.

    Raises:
        FileNotFoundError: the file is missing.
        ValueError: the file is not an image, truncated, larger than `most_pixels`, partly transparent,
            marked as to be turned, begins with a reduced preview, has several pages, or has values that
            8 bits would not tell apart or that programs read differently. The message names the file and
            says what to do.
    """
    path = Path(path)
    with warnings.catch_warnings():
        # Pillow warns about large images; this function refuses even smaller ones.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        header = read_image(path, header_only=True)
        if fault := fault_of_pages(path, header):
            raise ValueError(f"{path} {fault}")
        width, height = header.size
        tags = header.tag_v2 if header.format == "TIFF" else {}
        # When it loads a TIFF, Pillow turns it and forgets the mark; OpenCV always turns it.
        marked_tiff = tags.get(ExifTags.Base.Orientation) in _TURNED
        least_is_white = tags.get(ExifTags.Base.PhotometricInterpretation) == 0
        in_planes = tags.get(ExifTags.Base.PlanarConfiguration) == _PLANES
        bits = max(tags.get(ExifTags.Base.BitsPerSample, (8,)))
        if width * height > most_pixels:
            most = f"more than {most_pixels / 1e6:g} megapixels"
            raise ValueError(f"{path} is {width} by {height} px, {most}")
        image = read_image(path)
    if marked_tiff:
        raise ValueError(
            f"{path} is a TIFF marked as to be turned, which programs differ on: save it turned"
        )
    if header.mode == "LAB":
        # OpenCV takes them for those of red, green and blue.
        raise ValueError(f"{path} is in CIELab, which programs read differently: save it as PNG")
    if header.format == "AVIF" and header.mode == "L":
        # OpenCV does not stretch a limited range.
        raise ValueError(f"{path} is a grey AVIF, which programs read differently: save it as PNG")
    if in_planes and bits > 8:
        # OpenCV takes them for interleaved.
        planes = f"{path} is a TIFF whose colours lie in separate planes of {bits} bits"
        raise ValueError(f"{planes}, which programs read differently: save it as PNG")
    if (largest := _largest_value(header)) not in (255, 65535):
        # OpenCV would not scale them.
        values = f"{path} holds values up to {largest}, which programs read differently"
        raise ValueError(f"{values}: save it as PNG")
    if image.has_transparency_data and image.convert("RGBA").getextrema()[3][0] < 255:
        raise ValueError(f"{path} can be seen through in places: save it over a background")
    # Pillow also reads marks in XMP and in PNG's text, as COLMAP does, and OpenCV does not.
    mark = image.getexif().get(ExifTags.Base.Orientation)
    if orientation == "refuse" and mark in _TURNED:
        marked = f"{path} is marked by its camera as to be turned, which programs follow or not"
        raise ValueError(f"{marked}: take it as 'stored' (--as-stored), or save it turned")
    grey = decode_grey(path, cv2.IMREAD_IGNORE_ORIENTATION | cv2.IMREAD_ANYDEPTH)
    if grey is None:
        raise ValueError(f"{path} is of a kind that OpenCV does not read: save it as PNG")
    if grey.dtype == np.uint16:
        if least_is_white:
            # OpenCV inverts it only if it has 8 bits.
            white = f"{path} is a TIFF of 16 bits whose 0 is white, which programs read differently"
            raise ValueError(f"{white}: save it as PNG")
        if (kept := kept_values(grey)) < FEWEST_GREYS:
            bits = f"{path} holds 16 bits a pixel, of which 8 bits would keep {kept} grey values"
            raise ValueError(f"{bits}: stretch them, or save it with 8")
        grey = (grey >> 8).astype(np.uint8)
    if grey.dtype != np.uint8:
        raise ValueError(f"{path} holds numbers of {grey.dtype}: save it with 8 or 16 bits")
    if longest_side is not None:
        grey = reduced(grey, longest_side)
    return turned(grey, mark) if orientation == "turned" else grey


def _largest_value(header: Image.Image) -> int:
    """Return the value that a PGM's or PPM's header gives to white; 255 for any other image."""
    if header.format != "PPM" or header.mode in ("1", "F"):
        return 255
    # Where the value is that of all bits of a pixel, Pillow may leave it out.
    arguments = header.tile[0].args
    return arguments[1] if isinstance(arguments, tuple) else 255


def turned(stored: np.ndarray, mark: int | None) -> np.ndarray:
    """Turn stored pixels (H, W) upright.

    Args:
        stored: the pixels.
        mark: EXIF's orientation, 1 to 8; None is 1.
    """
    if mark in TRANSPOSED:
        stored = stored.T
    if mark in MIRRORED:
        stored = stored[:, ::-1]
    if mark in FLIPPED:
        stored = stored[::-1]
    return np.ascontiguousarray(stored)

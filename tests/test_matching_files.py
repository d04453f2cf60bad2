"""From a folder of images to the files that hloc and COLMAP read, and to a sparse model."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unicodedata import normalize

import cv2
import h5py
import numpy as np
import pycolmap
import pytest
from known_walls import Arrangement, greys, plan_wall, render_views
from PIL import ExifTags, Image, ImageFile
from PIL.PngImagePlugin import PngInfo
from small_files import interrupted
from test_matching_keypoints import texture

from lib.commands import describe as command
from lib.data import images as reading
from lib.data.colmap import mapped
from lib.data.images import read_grey
from lib.features import files
from lib.features.detectors import Detector
from lib.features.folder import (
    Settings,
    check_unchanged,
    describe_and_match,
    photographs,
    stated_camera,
)
from lib.features.matches import match
from lib.features.networks import describe, find
from lib.features.patches import Features
from lib.files import locked

FEW = Detector(most=150)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("one_camera", "false"),
        ("one_camera", 0),
        ("mutual", "False"),
        ("ratio", "0.9"),
        ("magnification", "7"),
        ("longest_side", "1600"),
        ("longest_side", True),
    ],
)
def test_a_setting_of_another_type_is_refused(setting: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"{setting} is .*, got {re.escape(repr(value))}"):
        Settings(**{setting: value})


def quiet(line: str) -> None:
    """Replace print."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two overlapping crops of a texture, one in a subfolder, and a file that is no image."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "below").mkdir()
    whole = texture(size=240)
    Image.fromarray(whole[:, :200]).save(folder / "one.png")
    Image.fromarray(whole[10:, 20:]).save(folder / "below" / "two.png")
    (folder / "notes.txt").write_text("two images")
    return folder


@pytest.fixture(scope="module")
def out(images: Path) -> Path:
    """The files that the command makes of `images`."""
    folder = images.parent / f"{images.name}_out"
    options = ["--descriptor", "sift", "--most", "150", "--ratio", "0.9"]
    assert command.main(["folder", str(images), str(folder), *options]) == 0
    return folder


def test_features_have_hlocs_layout(images: Path, out: Path) -> None:
    with h5py.File(out / "features.h5") as file:
        assert sorted(file) == ["below", "one.png"]
        for name in ("one.png", "below/two.png"):
            expected = describe(read_grey(images / name), FEW, find("sift"))
            group = file[name]
            np.testing.assert_allclose(group["keypoints"], expected.position, rtol=1e-6)
            np.testing.assert_allclose(group["descriptors"], expected.descriptors.T, atol=1e-6)
            np.testing.assert_array_equal(group["scores"], expected.scores)
            assert tuple(group["image_size"]) == expected.size
            assert group["keypoints"].attrs["uncertainty"] == 1


def test_matches_have_hlocs_layout(out: Path) -> None:
    with h5py.File(out / "features.h5") as features, h5py.File(out / "matches.h5") as matches:
        names = ("below/two.png", "one.png")
        described = [files.read_descriptors(features, name) for name in names]
        expected = match(*described, ratio=0.9)
        group = matches["below-two.png/one.png"]
        partner, scores = group["matches0"][()], group["matching_scores0"][()]
        assert partner.shape == scores.shape == (len(described[0]),)
        assert np.flatnonzero(partner >= 0).tolist() == expected.first.tolist()
        assert partner[partner >= 0].tolist() == expected.second.tolist()
        assert set(partner[partner < 0]) == {-1}
        cosine = (described[0][expected.first] * described[1][expected.second]).sum(axis=1)
        np.testing.assert_allclose(scores[expected.first], (1 + cosine) / 2, atol=1e-6)
    assert (out / "pairs.txt").read_text() == "below/two.png one.png\n"


def test_the_database_holds_cameras_keypoints_and_matches(out: Path) -> None:
    names = ("below/two.png", "one.png")
    with (
        pycolmap.Database.open(out / "database.db") as database,
        h5py.File(out / "features.h5") as features,
        h5py.File(out / "matches.h5") as matches,
    ):
        images = [database.read_image_with_name(name) for name in names]
        for image in images:
            # COLMAP's first pixel's centre is at 0.5.
            expected = features[image.name]["keypoints"][()] + 0.5
            np.testing.assert_allclose(database.read_keypoints(image.image_id)[:, :2], expected)
        stored = database.read_matches(*(image.image_id for image in images))
        np.testing.assert_array_equal(stored, files.read_matches(matches, names))
        assert database.num_verified_image_pairs() == 0
        cameras = [database.read_camera(image.camera_id) for image in images]
        assert [(camera.width, camera.height) for camera in cameras] == [(220, 230), (200, 240)]


def test_bits_in_a_file_are_read_as_bits(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 256, (200, 32), dtype=np.uint8)
    maps = np.tile(np.eye(2, 3, dtype=np.float32), (200, 1, 1))
    with h5py.File(tmp_path / "features.h5", "w") as file:
        files.write_features(file, "one", Features(maps, np.ones(200, np.float32), bits, (9, 9)))
        np.testing.assert_array_equal(files.read_descriptors(file, "one"), bits)


def test_keypoints_are_in_pixels_of_the_image_before_reduction(
    tmp_path: Path,
) -> None:
    large = cv2.resize(texture(size=240), None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    for name in ("large.jpg", "other.jpg"):
        Image.fromarray(large).save(tmp_path / name, quality=98)
    out, settings = tmp_path / "out", Settings(longest_side=240)
    describe_and_match(tmp_path, out, FEW, find("sift"), settings, log=quiet)
    with h5py.File(out / "features.h5") as file:
        positions = file["large.jpg"]["keypoints"][()]
        assert tuple(file["large.jpg"]["image_size"]) == (720, 720)
        # As hloc has it: one px of the image that the detector saw.
        assert file["large.jpg"]["keypoints"].attrs["uncertainty"] == 3
    reduced = describe(texture(size=240), FEW, find("sift")).position
    distances = np.linalg.norm(positions[:, None] - (3 * reduced + 1), axis=2).min(axis=1)
    assert np.median(distances) < 1


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="{}"/>
</rdf:RDF></x:xmpmeta>"""


def marked_in_exif(image: Image.Image, path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    image.save(path, exif=exif)


def marked_in_xmp(image: Image.Image, path: Path, orientation: int) -> None:
    """As programs do that turn a PNG without touching its pixels."""
    text = PngInfo()
    text.add_itxt("XML:com.adobe.xmp", XMP.format(orientation))
    image.save(path, pnginfo=text)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mark", [marked_in_exif, marked_in_xmp])
def test_turned_photographs_are_described_upright_with_stored_positions(
    tmp_path: Path, mark: Callable[[Image.Image, Path, int], None], orientation: int
) -> None:
    inverse = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    upright = Image.fromarray(texture(size=240)[:200])
    stored = upright.transpose(inverse[orientation]) if orientation > 1 else upright
    for name in ("1 a.png", "2.png"):
        mark(stored, tmp_path / name, orientation)
    describe_and_match(tmp_path, tmp_path / "out", FEW, find("sift"), log=quiet)
    expected = describe(np.asarray(upright), FEW, find("sift"))
    with h5py.File(tmp_path / "out" / "features.h5") as file:
        np.testing.assert_array_equal(files.read_descriptors(file, "1 a.png"), expected.descriptors)
        x, y = file["1 a.png"]["keypoints"][()].round().astype(int).T
    grey_values = np.asarray(upright)[tuple(expected.position.round().astype(int).T[::-1])]
    assert (np.asarray(stored)[y, x] == grey_values).mean() > 0.98


def test_a_tiff_that_is_marked_as_to_be_turned_is_set_aside(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    Image.open(images / "one.png").save(folder / "turned.tif", tiffinfo={274: 6})
    said: list[str] = []
    describe_and_match(folder, tmp_path / "out", FEW, find("sift"), log=said.append)
    assert "turned.tif is a TIFF marked as to be turned" in "\n".join(said)


def test_a_tiff_that_begins_with_a_preview_is_set_aside_or_refused_before_images_are_described(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    full = Image.open(images / "one.png")
    preview = full.resize((50, 60))
    preview.save(folder / "raw.tif", tiffinfo={254: 1}, save_all=True, append_images=[full])
    options = ["folder", str(folder), str(tmp_path / "out"), "--descriptor", "sift", "--most", "99"]
    assert command.main([*options, "--strict"]) == 1
    assert "raw.tif has a reduced preview as its first picture" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert command.main(options) == 0
    assert "set aside: raw.tif has a reduced preview" in capsys.readouterr().out
    with h5py.File(tmp_path / "out" / "features.h5") as file:
        assert sorted(file) == ["below", "one.png"]


def test_a_tiff_of_several_pages_is_set_aside(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    full = Image.open(images / "one.png")
    thumbnail = full.resize((50, 60))
    thumbnail.save(folder / "scan.tif", save_all=True, append_images=[full])
    sizes, problems = photographs(folder)
    assert [*sizes] == ["below/two.png", "one.png"]
    assert problems["scan.tif"].startswith("has 2 pages, of which programs read the first alone")


def save_with_focal_lengths(path: Path, length: float, for_35_mm: int) -> None:
    """Save an image whose EXIF states these focal lengths, mm; 0 leaves the tag out."""
    exif = Image.Exif()
    # Without a tag of its own, Pillow leaves out what lies below.
    exif[ExifTags.Base.Model] = "camera"
    stated = exif.get_ifd(ExifTags.IFD.Exif)
    if length:
        stated[ExifTags.Base.FocalLength] = length
    if for_35_mm:
        stated[ExifTags.Base.FocalLengthIn35mmFilm] = for_35_mm
    Image.fromarray(texture(size=100)).save(path, exif=exif)


@pytest.mark.parametrize(
    ("of_others", "of_last", "problem"),
    [
        ([(24, 36)] * 3, (33.6, 50), "has a focal length of 33.6 mm"),
        # A digital zoom.
        ([(4.2, 26)] * 3, (4.2, 52), "has a focal length for 35 mm film of 52 mm"),
        ([(24, 0), (24.1, 0), (24.2, 0), (35, 0)], (35, 0), "has a focal length of 35 mm"),
        ([(24, 36)] * 3, (24.2, 36), ""),
        ([(24, 36)] * 3, (0, 0), ""),
        # One tag says nothing of the other.
        ([(24, 0)] * 3, (0, 36), ""),
    ],
)
def test_of_one_camera_images_of_another_focal_length_than_most_are_set_aside(
    tmp_path: Path, of_others: list[tuple[float, int]], of_last: tuple[float, int], problem: str
) -> None:
    for number, lengths in enumerate([*of_others, of_last]):
        save_with_focal_lengths(tmp_path / f"{number}.jpg", *lengths)
    sizes, problems = photographs(tmp_path, one_camera=True)
    last = f"{len(of_others)}.jpg"
    assert re.search(problem, problems.get(last, "")), problems
    assert (last in sizes) == (not problem)
    assert {*sizes, *problems} == {path.name for path in tmp_path.iterdir()}
    assert not photographs(tmp_path)[1]


def test_a_name_that_no_file_of_pairs_can_hold_is_set_aside(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    for name in (b"caf\xe9.png", b"two\nlines.png"):
        shutil.copy(images / "one.png", os.fsdecode(os.fsencode(folder) + b"/" + name))
    said: list[str] = []
    describe_and_match(folder, tmp_path / "out", FEW, find("sift"), log=said.append)
    lines = "\n".join(said)
    assert r"'caf\udce9.png' has a name that no file of pairs can hold: rename it" in lines
    assert r"'two\nlines.png' has a name that no file of pairs can hold" in lines
    with h5py.File(tmp_path / "out" / "features.h5") as file:
        assert sorted(file) == ["below", "one.png"]


def test_pairs_are_read_with_the_mark_of_windows_editors_and_refused_in_another_encoding(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("a.png b.png\n", encoding="utf-8-sig")
    assert files.read_pairs(path, {"a.png", "b.png"}) == [("a.png", "b.png")]
    path.write_text("a.png b.png\n", encoding="utf-16")
    with pytest.raises(ValueError, match=rf"{path} is no text in UTF-8"):
        files.read_pairs(path, {"a.png", "b.png"})


@pytest.mark.parametrize("name", ["one 1.png", "one.png"])
def test_a_line_says_that_hloc_splits_names_at_spaces(images: Path, tmp_path: Path, name: str) -> None:
    folder, out = tmp_path / "images", tmp_path / "out"
    shutil.copytree(images, folder)
    (folder / "one.png").rename(folder / name)
    said: list[str] = []
    describe_and_match(folder, out, FEW, find("sift"), log=said.append)
    lines = [
        line for line in said if line.startswith(f"{out / 'pairs.txt'}: hloc splits names at spaces")
    ]
    assert [repr(name) in line for line in lines] == [True] * name.count(" ")


def test_images_can_be_written_with_colmap_loaded() -> None:
    write = "import io, numpy; Image.fromarray(numpy.ones((9, 9), 'u1')).save(io.BytesIO(), 'png')"
    code = f"import lib.features.files\nfrom PIL import Image\n{write}\nprint('written')"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.stdout == "written\n", process.stderr


def test_the_readmes_example_finds_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n([^`]*read_grey[^`]*)```", readme)
    whole = texture(size=240)
    Image.fromarray(whole[:, :200]).save(tmp_path / "1.png")
    Image.fromarray(whole[10:, 20:]).save(tmp_path / "2.png")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(example, namespace)
    assert len(namespace["matches"]) > 40


def test_nothing_is_overwritten(images: Path, out: Path, capsys) -> None:
    before = (out / "database.db").read_bytes()
    assert command.main(["folder", str(images), str(out), "--descriptor", "sift"]) == 1
    assert "different most" in capsys.readouterr().err
    options = ["--descriptor", "sift", "--most", "150", "--ratio", "0.9"]
    assert command.main(["folder", str(images), str(out), *options]) == 0
    assert "finished already" in capsys.readouterr().out
    assert command.main(["folder", str(images), str(images), *options]) == 1
    assert (out / "database.db").read_bytes() == before


def test_an_attempt_without_a_model_leaves_no_files(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    describe_and_match(images, out, FEW, find("sift"), log=quiet)
    before = sorted(path.name for path in out.iterdir())
    for _ in range(2):
        # Crops of one plane have no parallax, so that no two of them start a model.
        assert not files.sparse_models(out / "database.db", images, out / "models")
        assert sorted(path.name for path in out.iterdir()) == before


@pytest.mark.parametrize("change", ["replaced", "missing"])
def test_no_model_is_made_of_other_images_than_were_described(
    images: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    image = folder / "below" / "two.png"
    if change == "missing":
        image.unlink()
    else:
        Image.open(image).rotate(180).save(image)
    assert command.main(["model", str(folder), str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{image} {'is missing' if change == 'missing' else 'has changed'}" in line
    # What was not described may change.
    (folder / "notes.txt").write_text("two images, one of them turned")
    shutil.copy(images / "below" / "two.png", image)
    check_unchanged(folder, out)


def test_images_that_no_line_of_the_file_of_pairs_names_are_counted(
    images: Path, tmp_path: Path
) -> None:
    folder, pairs, said = tmp_path / "images", tmp_path / "pairs.txt", []
    shutil.copytree(images, folder)
    for name in ("three.png", "four.png"):
        shutil.copy(images / "one.png", folder / name)
    pairs.write_text("one.png below/two.png\n")
    describe_and_match(folder, tmp_path / "out", FEW, find("sift"), pairs=pairs, log=said.append)
    told = [line for line in said if "in no pair" in line]
    assert told == [
        "2 of the images described are in no pair, and so not in database.db: four.png first"
    ]


def test_an_image_that_is_too_small_once_reduced_is_set_aside_for_this(
    images: Path, tmp_path: Path
) -> None:
    folder, said = tmp_path / "images", []
    shutil.copytree(images, folder)
    Image.fromarray(np.tile(texture(size=240)[:24], 8)).save(folder / "strip.png")
    settings = Settings(longest_side=960)
    describe_and_match(folder, tmp_path / "out", FEW, find("sift"), settings, log=said.append)
    assert "strip.png is 960 by 12 px once its longest side is 960, which is too small" in "".join(said)


def test_photographs_of_one_plane_are_told_from_ones_that_do_not_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plane").mkdir()
    (tmp_path / "different").mkdir()
    for number in range(3):
        turned = cv2.getRotationMatrix2D((200, 200), 7 * number, 1 + number / 20)
        view = cv2.warpAffine(texture(size=400), turned, (400, 400))[80:320, 60:340]
        Image.fromarray(view).save(tmp_path / "plane" / f"{number}.png")
        noise = np.random.default_rng(number).integers(0, 256, (200, 300), np.uint8)
        Image.fromarray(cv2.blur(noise, (5, 5))).save(tmp_path / "different" / f"{number}.png")
    why = {
        "plane": "one homography explains the matches of each pair",
        "different": "no two images have matches",
    }
    for name, words in why.items():
        images, out = tmp_path / name, tmp_path / f"{name}_out"
        assert command.main(["folder", str(images), str(out), "--descriptor", "sift"]) == 0
        assert command.main(["model", str(images), str(out)]) == 1
        assert f"{out}: {words}" in capsys.readouterr().err


@pytest.fixture
def mixed(images: Path, tmp_path: Path) -> tuple[Path, list[str], list[str]]:
    """A folder such as people have, the names of its usable files and of its unusable ones."""
    folder = tmp_path / "mixed"
    shutil.copytree(images, folder)
    usable, grey = ["below/two.png", "holiday 1.jpg", "one.png"], Image.fromarray(texture(size=240))
    grey.save(folder / "holiday 1.jpg")
    grey.save(folder / "below-two.png")
    for name in ("3.webp", "4.gif"):
        grey.save(folder / name)
    grey.crop((0, 0, 15, 240)).save(folder / "narrow.png")
    Image.fromarray(np.full((24, 24), 7, np.uint8)).save(folder / "plain.png")
    for name in ("photo.HEIC", "paper.pdf", "._1.jpg"):
        (folder / name).write_bytes(b"%PDF" + bytes(99))
    (folder / "cut.jpg").write_bytes((folder / "holiday 1.jpg").read_bytes()[:-2000])
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    # The order of two names that become one decides which is used.
    usable[0] = "below-two.png"
    return folder, usable, sorted(names - set(usable))


def test_unusable_files_are_set_aside_and_listed(mixed, tmp_path: Path, capsys) -> None:
    folder, usable, unusable = mixed
    options = ["folder", str(folder), str(tmp_path / "out"), "--descriptor", "sift", "--most", "99"]
    assert command.main([*options, "--strict"]) == 1
    headers = [name for name in unusable if name not in ("cut.jpg", "plain.png")]
    captured = capsys.readouterr()
    assert all(name in captured.err for name in headers)
    assert captured.out == ""
    assert not (tmp_path / "out").exists()
    assert command.main(options) == 0
    stdout = capsys.readouterr().out
    assert [name for name in unusable if f"set aside: {name} " not in stdout] == []
    with h5py.File(tmp_path / "out" / "features.h5") as file:
        assert sorted(file) == usable
    with pycolmap.Database.open(tmp_path / "out" / "database.db") as database:
        assert sorted(image.name for image in database.read_all_images()) == usable


def write_header(path: Path, *size: int) -> None:
    """Write a grey PNG of this width and height that ends where its pixels would begin."""
    content = b"\x89PNG\r\n\x1a\n"
    for kind, chunk in ((b"IHDR", struct.pack(">2I5B", *size, 8, 0, 0, 0, 0)), (b"IDAT", b"")):
        content += struct.pack(">I", len(chunk)) + kind + chunk
        content += struct.pack(">I", zlib.crc32(kind + chunk))
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        ((16, 500), ""),
        ((15, 500), "is 15 by 500 px, which is too small"),
        ((9568, 6376), ""),
        (
            (13400, 13400),
            "is no image that Pillow reads, or has over 178 megapixels: save it as JPEG or PNG",
        ),
    ],
)
def test_an_images_size_is_judged_by_its_header(
    tmp_path: Path, size: tuple[int, int], problem: str
) -> None:
    write_header(tmp_path / "1.png", *size)
    expected = ({}, {"1.png": problem}) if problem else ({"1.png": size}, {})
    assert photographs(tmp_path) == expected


def test_images_of_61_megapixels_are_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A smaller image stands in for the missing pixels.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    monkeypatch.setattr(reading, "decode_grey", lambda *_: texture(size=240))
    for name in ("1.png", "2.png"):
        write_header(tmp_path / name, 9568, 6376)
    describe_and_match(tmp_path, tmp_path / "out", FEW, find("sift"), log=quiet)
    with h5py.File(tmp_path / "out" / "features.h5") as file:
        assert tuple(file["1.png"]["image_size"]) == (9568, 6376)


@pytest.mark.parametrize("stopped", ["write_features", "write_matches", "write_pairs"])
def test_a_stopped_run_resumes_to_the_same_bits(
    images: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    calls, write = [], getattr(files, stopped)

    def stop(*args: object) -> None:
        calls.append(args)
        if len(calls) == (2 if stopped == "write_features" else 1):
            raise KeyboardInterrupt
        write(*args)

    options = ["--descriptor", "sift", "--most", "150", "--ratio", "0.9"]
    argv = ["folder", str(images), str(tmp_path / "again"), *options]
    monkeypatch.setattr(files, stopped, stop)
    assert command.main(argv) == 130
    assert command.main([*argv, "--upright"]) == 1
    with locked(tmp_path / "again" / ".lock"):
        assert command.main(argv) == 1
    (tmp_path / "again" / "features.1.half.h5").touch()
    assert command.main(argv) == 0
    assert len(calls) == (3 if stopped == "write_features" else 2)
    for name in ("features.h5", "matches.h5", "pairs.txt", "database.db"):
        # The header of a database counts how often it was opened.
        skipped = 100 if name == "database.db" else 0
        expected = (out / name).read_bytes()[skipped:]
        assert (tmp_path / "again" / name).read_bytes()[skipped:] == expected
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == sorted(
        path.name for path in out.iterdir()
    )


def flipped(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


def emptied(part: Path) -> None:
    part.write_bytes(b"")


def a_folder(part: Path) -> None:
    part.unlink()
    part.mkdir()


@pytest.mark.parametrize("damage", [flipped, emptied, a_folder])
def test_a_damaged_part_is_set_aside_and_its_image_described_anew(
    images: Path,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
) -> None:
    argv = ["folder", str(images), str(tmp_path / "again"), "--descriptor", "sift", "--most", "150"]
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_pairs", stop_now)
        assert command.main([*argv, "--ratio", "0.9"]) == 130
    first, _ = sorted((tmp_path / "again" / "parts").iterdir())
    damage(first)
    capsys.readouterr()
    assert command.main([*argv, "--ratio", "0.9"]) == 0
    assert capsys.readouterr().out.count("was damaged: ") == 1
    assert (tmp_path / "again" / "features.h5").read_bytes() == (out / "features.h5").read_bytes()


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_full_disk_is_said_before_a_file_is_begun_and_the_command_goes_on_later(
    images: Path,
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    written: int,
) -> None:
    options = ["--descriptor", "sift", "--most", "150", "--ratio", "0.9"]
    argv = ["folder", str(images), str(tmp_path / "again"), *options]
    free = iter([10**9] * written + [1000])
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))
        assert command.main(argv) == 1
    name = ["features.h5", "matches.h5", "database.db"][written]
    stderr = capsys.readouterr().err
    assert f"cannot write {tmp_path / 'again' / name}: it may take " in stderr
    assert stderr.endswith(" MB, 0.001 MB are free: make room and run again\n")
    assert command.main(argv) == 0
    for name in ("features.h5", "matches.h5"):
        assert (tmp_path / "again" / name).read_bytes() == (out / name).read_bytes()


def stop_now(*_: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_during_description_prints_a_line_and_keeps_descriptors(
    images: Path, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    for number in range(60):
        shutil.copy(images / "one.png", tmp_path / "images" / f"{number}.png")
    out = tmp_path / "out"
    options = ["folder", str(tmp_path / "images"), str(out), "--descriptor", "sift", "--threads", "1"]
    # Files that are still being written have other names.
    described = partial(out.glob, "parts/" + 64 * "?" + ".part")
    status, stdout, stderr = interrupted(["lib.commands", "describe", *options], lambda: [*described()])
    assert (status, stderr) == (130, "")
    assert stdout.startswith("\nStopped. ")
    assert len(stdout.splitlines()) == 2
    assert sorted(path.name for path in out.iterdir()) == ["describe.json", "parts"]
    assert [*described()], "what was described is kept"


def test_photographs_in_linked_folders_are_seen_and_what_is_passed_over_is_said(
    images: Path, tmp_path: Path
) -> None:
    folder, elsewhere = tmp_path / "all", tmp_path / "elsewhere"
    for path in (folder / "a.png", folder / ".thumbnails" / "a.png", folder / "@eaDir" / "a.png"):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(images / "one.png", path)
    for path in (folder / "a.png.png", folder / "masks" / "a.png", folder / "far" / "Masks" / "a.jpg"):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(images / "one.png", path)
    elsewhere.mkdir()
    shutil.copy(images / "one.png", elsewhere / "b.png")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "round").symlink_to(folder)
    sizes, passed_over = photographs(folder)
    assert [*sizes] == ["a.png", "linked/b.png"]
    assert passed_over == {
        ".thumbnails": "is hidden or generated",
        "@eaDir": "is hidden or generated",
        "a.png.png": "has the name of a mask of a.png",
        "far/Masks": "is a folder of masks by its name",
        "masks": "is a folder of masks by its name",
        "round": "is the same folder as .",
    }


def test_a_known_camera_is_written(images: Path, tmp_path: Path) -> None:
    for name in ("1.png", "2.png"):
        shutil.copy(images / "one.png", tmp_path / name)
    (tmp_path / "K.txt").write_text("210 0 99.5\n0 220 119.5\n0 0 1\n")
    for number, text in enumerate((str(tmp_path / "K.txt"), "PINHOLE,210,220,100,120")):
        out = tmp_path / f"out{number}"
        describe_and_match(tmp_path, out, FEW, find("sift"), Settings(camera=text), log=quiet)
        with pycolmap.Database.open(out / "database.db") as database:
            (camera,) = database.read_all_cameras()
        assert camera.model.name == "PINHOLE"
        assert camera.params.tolist() == [210, 220, 100, 120]
        assert camera.has_prior_focal_length
        assert stated_camera(out) == "PINHOLE,210.0,220.0,100.0,120.0"


@pytest.mark.parametrize(
    ("principal_point", "its_images"),
    [("256,192", "512 by 384"), ("384,512", "768 by 1024"), ("1024,768", "2048 by 1536")],
)
def test_a_camera_of_another_resolution_or_orientation_is_refused_with_its_images_size(
    principal_point: str, its_images: str
) -> None:
    with pytest.raises(ValueError, match=f"1024 by 768 px.*{its_images}"):
        files.known_camera(f"PINHOLE,672,672,{principal_point}", (1024, 768))


def test_a_camera_whose_principal_point_is_far_off_needs_images_said_to_be_cropped(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("1.png", "2.png"):
        shutil.copy(images / "one.png", tmp_path / name)
    out, options = tmp_path / "out", "--descriptor sift --most 99 --camera PINHOLE,210,210,150,120"
    argv = ["folder", str(tmp_path), str(out), *options.split()]
    assert command.main(argv) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "--cropped" in line
    assert not out.exists()
    assert command.main([*argv, "--cropped"]) == 0
    assert stated_camera(out) == "PINHOLE,210.0,210.0,150.0,120.0"


def test_a_lens_a_little_off_the_middle_is_a_known_camera() -> None:
    # KITTI's and EuRoC's cameras, and a panorama's, which has no principal point.
    assert files.known_camera("PINHOLE,721.5,721.5,609.6,172.9", (1242, 375))
    assert files.known_camera("PINHOLE,458.7,457.3,367.2,248.4", (752, 480))
    assert files.known_camera("EQUIRECTANGULAR,1024,512", (1024, 512))


@pytest.mark.parametrize("keeps", [True, False])
def test_a_known_camera_stays_as_it_is_and_another_is_refined(tmp_path: Path, keeps: bool) -> None:
    path = tmp_path / "database.db"
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=6, num_points3D=100
    )
    with pycolmap.Database.open(path) as database:
        pycolmap.synthesize_dataset(options, database)
        (camera,) = database.read_all_cameras()
        true = camera.focal_length
        camera.focal_length = 1.05 * true
        camera.has_prior_focal_length = True
        database.update_camera(camera)
    model = mapped(path, tmp_path, keep_cameras=keeps)
    (camera,) = model.cameras.values()
    assert camera.focal_length == pytest.approx((1.05 if keeps else 1) * true, rel=1e-3)


def test_the_largest_of_several_models_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: Path, out: Path, __: Path, ___: bool) -> None:
        for number, (images, points) in enumerate([(3, 20), (5, 20), (5, 40)]):
            options = pycolmap.SyntheticDatasetOptions(
                num_rigs=1, num_cameras_per_rig=1, num_frames_per_rig=images, num_points3D=points
            )
            (out / str(number)).mkdir()
            pycolmap.synthesize_dataset(options).write(out / str(number))

    monkeypatch.setattr(files, "mapped", build)
    pycolmap.Database.open(tmp_path / "database.db").close()
    models = files.sparse_models(tmp_path / "database.db", tmp_path, tmp_path / "models")
    assert [path.name for path, _ in models] == ["2", "1", "0"]
    model = models[0][1]
    assert files.implausible_focal_lengths(model) == {}
    (camera,) = model.cameras.values()
    camera.params = [20 * camera.width, *camera.params[1:]]
    assert list(files.implausible_focal_lengths(model).values()) == [pytest.approx(20)]


def test_a_panorama_is_known_by_its_shape_and_its_edges(tmp_path: Path) -> None:
    lens, sphere = pycolmap.CameraModelId.SIMPLE_RADIAL, pycolmap.CameraModelId.EQUIRECTANGULAR
    wide = texture(size=400)[:200]
    shown = {
        "wide.png": (wide, lens),
        "round.png": (np.hstack([wide, wide[:, ::-1]])[:, ::2], lens),
        "known.png": (np.hstack([wide, wide[:, ::-1]])[:, ::2], sphere),
        "square.png": (np.vstack([wide, wide]), lens),
    }
    cameras, entries = {}, {}
    for number, (name, (grey, kind)) in enumerate(shown.items()):
        Image.fromarray(grey).save(tmp_path / name)
        cameras[number] = SimpleNamespace(model=kind, width=grey.shape[1], height=grey.shape[0])
        entries[number] = SimpleNamespace(name=name, camera_id=number)
    model = SimpleNamespace(images=entries, cameras=cameras)
    assert files.panoramas(model, tmp_path) == ["round.png"]


def test_a_panoramas_camera_has_no_implausible_focal_length() -> None:
    camera = pycolmap.Camera(model="EQUIRECTANGULAR", width=1200, height=600, params=[1200, 600])
    model = SimpleNamespace(images={1: SimpleNamespace(name="a", camera_id=1)}, cameras={1: camera})
    assert files.implausible_focal_lengths(model) == {}


def test_hlocs_keypoints_of_16_bits_are_refused(images: Path, out: Path, tmp_path: Path) -> None:
    for name in ("features.h5", "matches.h5"):
        shutil.copy(out / name, tmp_path)
    with h5py.File(tmp_path / "features.h5", "a") as file:
        for name in ("below/two.png", "one.png"):
            halved = file[name]["keypoints"][()].astype(np.float16)
            del file[name]["keypoints"]
            file[name]["keypoints"] = halved
    with pytest.raises(ValueError, match="keypoints of 32 bits expected"):
        files.write_database(tmp_path, images, [("below/two.png", "one.png")])
    assert not list(tmp_path.glob("*.db"))


# Content of a file of pairs -> texts in the output.
PAIRS = {
    "one.png three.png\nbelow/two.png one.png\none.png": ("'one.png three.png'", "'one.png'"),
    "one.png notes.txt": ("set aside",),
    "one.png ./one.png": ("'one.png ./one.png'",),
}


@pytest.mark.parametrize("content", PAIRS)
def test_a_file_of_pairs_is_checked_before_images_are_described(
    images: Path, tmp_path: Path, capsys, content: str
) -> None:
    pairs = tmp_path / "pairs.txt"
    pairs.write_text(content)
    options = ["--descriptor", "sift", "--pairs", str(pairs)]
    assert command.main(["folder", str(images), str(tmp_path / "out"), *options]) == 1
    captured = capsys.readouterr()
    assert all(text in captured.err + captured.out for text in PAIRS[content])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("on_disk", "written"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_names_of_pairs_may_have_another_normal_form_than_the_files(
    tmp_path: Path, on_disk: str, written: str
) -> None:
    names = ("Müller 1.jpg", "Müller 2.jpg")
    there, lines = ([normalize(form, name) for name in names] for form in (on_disk, written))
    (tmp_path / "pairs.txt").write_text(" ".join(lines), encoding="utf-8")
    assert files.read_pairs(tmp_path / "pairs.txt", set(there)) == [tuple(there)]
    # Two files whose names differ in their forms alone are two images.
    both = {*there, *lines}
    assert files.read_pairs(tmp_path / "pairs.txt", both) == [tuple(lines)]


def test_names_with_spaces_and_dots_are_read_from_a_file_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "pairs.txt").write_text("./c.png a b.png\n\na b.png\tc.png\n")
    assert files.read_pairs(tmp_path / "pairs.txt", {"c.png", "a b.png"}) == [("c.png", "a b.png")]


@pytest.mark.parametrize(
    "options",
    [
        *("--ratio 1.5", "--one-camera", "--camera X,1,1,1", "--contrast nan"),
        *("--camera PINHOLE,nan,nan,nan,nan", "--camera PINHOLE"),
        *(f"--magnification {value}" for value in (0, -5, "nan")),
        *(f"--longest-side {value}" for value in (0, -1)),
    ],
)
def test_invalid_options_are_refused_before_images_are_described(
    images: Path, tmp_path: Path, capsys, options: str
) -> None:
    argv = ["folder", str(images), str(tmp_path / "out"), "--descriptor", "sift", *options.split()]
    assert command.main(argv) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("magnification", "warnings"), [(2.9, 1), (3, 0)])
def test_a_magnification_below_3_gives_a_warning(
    images: Path, tmp_path: Path, capsys, magnification: float, warnings: int
) -> None:
    options = ["--descriptor", "sift", "--magnification", str(magnification)]
    assert command.main(["folder", str(images), str(tmp_path / "out"), *options]) == 0
    assert capsys.readouterr().out.count("magnification below 3 is small") == warnings


def test_output_folders_within_the_images_are_not_read(images: Path, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    for name in ("out", "again"):
        describe_and_match(folder, folder / name, FEW, find("sift"), log=quiet)
        with h5py.File(folder / name / "features.h5") as file:
            assert sorted(file) == ["below", "one.png"]


def write_views_of_a_wall(images: Path, stamp: str = "") -> None:
    """Write five photographs of a wall, with a text at the same pixels of each."""
    textures = greys(240)[:2]
    frontal = Arrangement(np.deg2rad(100), 5, (480, 240), np.deg2rad(20), 0.0)
    site = plan_wall(textures, frontal, np.random.default_rng(0))
    images.mkdir()
    for number, view in enumerate(render_views(site, textures)):
        stamped = cv2.putText(view.copy(), stamp, (10, 225), cv2.FONT_HERSHEY_SIMPLEX, 0.6, 255, 2)
        Image.fromarray(stamped).save(images / f"{number}.png")


OF_VIEWS = ("--descriptor", "rootsift", "--contrast", "0.02", "--ratio", "0.8", "--one-camera")


def test_a_time_stamp_is_told_and_its_matches_can_be_left_out(tmp_path: Path, capsys) -> None:
    images, out = tmp_path / "images", tmp_path / "out"
    write_views_of_a_wall(images, "2024-04-25 17:23:08 CAM3")
    assert command.main(["folder", str(images), str(out), *OF_VIEWS]) == 0
    told = "of the verified matches lie at the same pixels although the images moved"
    assert command.main(["model", str(images), str(out)]) == 0
    assert told in capsys.readouterr().out
    shutil.rmtree(out / "models")
    assert command.main(["model", str(images), str(out), "--drop-stationary"]) == 0
    assert told not in capsys.readouterr().out


def test_views_of_a_scene_become_a_sparse_model(tmp_path: Path, capsys) -> None:
    images, out = tmp_path / "images", tmp_path / "out"
    write_views_of_a_wall(images)
    assert command.main(["folder", str(images), str(out), *OF_VIEWS]) == 0
    assert command.main(["model", str(images), str(out)]) == 0
    told = capsys.readouterr().out
    assert "models/0, the largest of 1" in told
    assert "the same pixels" not in told
    model = pycolmap.Reconstruction(out / "models" / "0")
    assert model.num_reg_images() >= 4
    assert model.compute_mean_reprojection_error() < 1.5
    assert command.main(["model", str(images), str(out)]) == 1

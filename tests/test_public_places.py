"""Places come from public repositories whole and recognised, or not at all; licences are printed."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest
from phototour_mirror import Mirror, names_in, running
from PIL import ExifTags, Image
from small_files import photo_folder

from lib.commands.fetch import main
from lib.data.scenes.places import FEWEST_IMAGES, ROLES, read_places
from lib.data.scenes.public import (
    BLOCKS,
    MOST_CLASSES,
    MOST_IMAGES,
    MOST_KEYPOINTS,
    PublicFile,
    PublicScene,
    RecordedPhotograph,
    public_scenes,
    write_roles,
)
from lib.study.runs import REFERENCE

OWNER, COMMIT = "owner/photographs", "0123456789" * 4
CAMERA = b"210 0 120\n0 210 100\n0 0 1\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 2 3\n240 200\n"
SIZE = (120, 100)


def jpeg(image: Image.Image, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def recorded(name: str, original: bytes) -> RecordedPhotograph:
    """The record of a photograph that was reduced to `SIZE`."""
    pixels = np.asarray(Image.open(io.BytesIO(original)).convert("RGB"))
    reduced = cv2.resize(pixels, SIZE, interpolation=cv2.INTER_AREA)
    grey = cv2.cvtColor(reduced, cv2.COLOR_RGB2GRAY)
    means = cv2.resize(grey, (BLOCKS, BLOCKS), interpolation=cv2.INTER_AREA)
    content = jpeg(Image.fromarray(reduced), quality=90)
    return RecordedPhotograph(name, SIZE, means.tobytes(), hashlib.sha256(content).hexdigest())


def scene_of(name: str, photographs: tuple[RecordedPhotograph, ...], *paths: str, **more) -> PublicScene:
    chosen = {"place": name, "role": "test", "evidence": True, "quality": 90} | more
    files = tuple(PublicFile(OWNER, COMMIT, path) for path in paths)
    licence = {"author": f"A. {name}", "licence": "CC BY 4.0", "address": f"https://{name}.example/by"}
    kept = {"optimised": False, "keeps_exif": False}
    return PublicScene(name, files=files, photographs=photographs, **chosen, **licence, **kept)


def url_path(path: str) -> str:
    return "/" + PublicFile(OWNER, COMMIT, path).address


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = photo_folder(tmp_path_factory.mktemp("photographs") / "noise", 8)
    images = [Image.open(path).convert("RGB") for path in sorted(folder.iterdir())]
    return [jpeg(image, quality=95) for image in images]


@pytest.fixture
def scenes(originals: list[bytes]) -> list[PublicScene]:
    """Scene church has cameras; a file of yard shows nothing of it, and the names follow no order."""
    church = tuple(recorded(f"{i:04d}.jpg", originals[i]) for i in range(3))
    yard = tuple(recorded(f"{i:04d}.jpg", originals[3 + i]) for i in range(3))
    places = [f"a/images/{i:04d}.jpg" for i in range(3)]
    cameras = [f"a/cameras/{i:04d}.jpg.camera" for i in range(3)]
    return [
        scene_of("church", church, *places, *cameras, role="train_and_test"),
        scene_of("yard", yard, *(f"Yard ({i}).jpg" for i in (1, 2, 3, 10))),
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, originals: list[bytes]) -> Iterator[Mirror]:
    with running(monkeypatch) as mirror:
        for i in range(3):
            mirror.files[url_path(f"a/images/{i:04d}.jpg")] = originals[i]
            mirror.files[url_path(f"a/cameras/{i:04d}.jpg.camera")] = CAMERA
        for number, index in ((1, 5), (2, 6), (3, 4), (10, 3)):
            mirror.files[url_path(f"Yard ({number}).jpg")] = originals[index]
        yield mirror


def run(folder: Path, server: Mirror, scenes: list[PublicScene], *options: str) -> int:
    return main([str(folder), "--places", *options, "--mirror", server.url], scenes=scenes)


def test_places_arrive_whole_and_their_licences_are_printed(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "new" / "places"
    assert run(home, server, scenes) == 0
    assert names_in(home) == ["church", "scenes.json", "shared.json", "yard"]
    for scene in scenes:
        for photograph in scene.photographs:
            content = (home / scene.name / "images" / photograph.name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == photograph.sha256
    assert [path.read_bytes() for path in (home / "church" / "cameras").iterdir()] == [CAMERA] * 3
    places = read_places(home)
    assert (places.train_and_test, places.test, places.reserve) == (("church",), ("yard",), ())
    output = capsys.readouterr().out
    for name in ("church", "yard"):
        assert f"{name}: A. {name}; CC BY 4.0; https://{name}.example/by\n" in output
        assert f"{home / name}: whole, 3 photographs, 3 of them the study's bit by bit" in output


def test_a_second_call_checks_and_changes_nothing(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, server, scenes) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    server.asked.clear()
    capsys.readouterr()
    assert run(tmp_path, server, scenes) == 0
    assert server.asked == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before
    assert capsys.readouterr().out.count("CC BY 4.0") == 2


def test_only_named_places_come_and_only_the_evidence_unasked(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene]
) -> None:
    asked = [scenes[0], scene_of("yard", scenes[1].photographs, evidence=False)]
    assert run(tmp_path / "a", server, asked) == 0
    assert names_in(tmp_path / "a") == ["church", "scenes.json", "shared.json"]
    assert run(tmp_path / "b", server, scenes, "yard", "--keep-archives") == 0
    assert names_in(tmp_path / "b") == ["scenes.json", "yard", "yard.originals"]
    assert len(names_in(tmp_path / "b" / "yard.originals")) == 4


def test_a_broken_transfer_continues_where_it_stopped(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], capsys: pytest.CaptureFixture[str]
) -> None:
    size = len(server.files[url_path("a/images/0000.jpg")])
    server.cuts = [size, 1000]
    assert run(tmp_path, server, scenes) == 1
    assert "0001.jpg" in (error := capsys.readouterr().err)
    assert "run again to continue" in error
    assert names_in(tmp_path) == ["church.originals"]
    server.asked.clear()
    assert run(tmp_path, server, scenes) == 0
    assert server.asked[0] == (url_path("a/images/0001.jpg"), "bytes=999-")
    assert names_in(tmp_path) == ["church", "scenes.json", "shared.json", "yard"]


def test_a_silent_server_is_given_up(
    tmp_path: Path,
    server: Mirror,
    scenes: list[PublicScene],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("lib.data.fetching.SILENCE", 0.2)
    server.halfway = lambda: server.released.wait(5)
    assert run(tmp_path, server, scenes) == 1
    server.released.set()
    assert "timed out" in capsys.readouterr().err


@pytest.mark.parametrize("path", ["a/images/0001.jpg", "a/cameras/0001.jpg.camera"])
def test_a_missing_file_is_named(
    tmp_path: Path,
    server: Mirror,
    scenes: list[PublicScene],
    path: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del server.files[url_path(path)]
    assert run(tmp_path, server, scenes) == 1
    name = Path(path).name
    expected = f"church lacks {name} (not on the server: {server.url}{url_path(path)[1:]})"
    assert expected in capsys.readouterr().err
    assert names_in(tmp_path) == ["church.originals"]


def test_another_repository_stands_in_for_a_missing_file(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], originals: list[bytes]
) -> None:
    del server.files[url_path("Yard (1).jpg")]
    server.files[url_path("copy/5.jpg")] = originals[5]
    paths = [file.path for file in scenes[1].files]
    yard = scene_of("yard", scenes[1].photographs, *paths, "copy/5.jpg", "copy/unneeded.jpg")
    assert run(tmp_path, server, [scenes[0], yard]) == 0
    assert server.asked[-1][0] == url_path("copy/5.jpg")


def test_a_photograph_of_something_else_is_refused(
    tmp_path: Path,
    server: Mirror,
    scenes: list[PublicScene],
    originals: list[bytes],
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.files[url_path("a/images/0001.jpg")] = originals[7]
    assert run(tmp_path, server, scenes) == 1
    error = capsys.readouterr().err
    assert "church lacks 0001.jpg (show something else: " in error
    assert "a/images/0001.jpg)" in error
    assert names_in(tmp_path) == ["church.originals"]


def test_a_page_instead_of_a_photograph_is_refused_and_fetched_anew(
    tmp_path: Path,
    server: Mirror,
    scenes: list[PublicScene],
    originals: list[bytes],
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.files[url_path("a/images/0001.jpg")] = b"<html>Please log in</html>"
    assert run(tmp_path, server, scenes) == 1
    assert "a/images/0001.jpg cannot be used" in capsys.readouterr().err
    server.files[url_path("a/images/0001.jpg")] = originals[1]
    assert run(tmp_path, server, scenes) == 0


def test_a_camera_of_another_image_is_refused(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], capsys: pytest.CaptureFixture[str]
) -> None:
    server.files[url_path("a/cameras/0001.jpg.camera")] = CAMERA.replace(b"240 200", b"300 200")
    assert run(tmp_path, server, scenes) == 1
    assert "0001.jpg.camera is of an image of 300 by 200 px" in capsys.readouterr().err
    assert names_in(tmp_path) == ["church.originals"]


def test_a_photograph_is_turned_as_the_recorded_one_was(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], originals: list[bytes]
) -> None:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # to be turned clockwise by 90 degrees
    stored = Image.open(io.BytesIO(originals[0])).transpose(Image.Transpose.ROTATE_90)
    server.files[url_path("a/images/0000.jpg")] = jpeg(stored, quality=95, exif=exif)
    assert run(tmp_path, server, scenes, "church") == 0
    with Image.open(tmp_path / "church" / "images" / "0000.jpg") as image:
        assert image.size == SIZE
        assert not image.getexif()


def test_files_are_kept_as_they_are_where_the_study_kept_them(
    tmp_path: Path, server: Mirror, scenes: list[PublicScene], originals: list[bytes]
) -> None:
    photographs = tuple(
        RecordedPhotograph(photograph.name, (240, 200), photograph.means, "")
        for photograph in scenes[0].photographs
    )
    church = scene_of("church", photographs, *(f"a/images/{i:04d}.jpg" for i in range(3)), quality=None)
    assert run(tmp_path, server, [church]) == 0
    kept = [path.read_bytes() for path in sorted((tmp_path / "church" / "images").iterdir())]
    assert kept == originals[:3]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda image: image.unlink(), "missing, or not of this scene"),
        (lambda image: image.write_bytes(image.read_bytes()[:900]), "is cut short or no image"),
        (lambda image: Image.new("RGB", (60, 50)).save(image), r"is \(60, 50\) px, not \(120, 100\)"),
        (lambda image: (image.parent / "more.jpg").write_bytes(image.read_bytes()), r"more\.jpg"),
    ],
    ids=["missing", "cut", "size", "more"],
)
def test_a_damaged_place_is_named(
    tmp_path: Path,
    server: Mirror,
    originals: list[bytes],
    damage,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    photographs = tuple(recorded(f"{i:04d}.jpg", originals[i]) for i in range(4))
    server.files[url_path("a/images/0003.jpg")] = originals[3]
    church = scene_of("church", photographs, *(f"a/images/{i:04d}.jpg" for i in range(4)))
    assert run(tmp_path, server, [church]) == 0
    damage(tmp_path / "church" / "images" / "0002.jpg")
    assert run(tmp_path, server, [church]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_roles_that_a_reader_wrote_are_kept_and_the_order_is_the_studys(
    tmp_path: Path, scenes: list[PublicScene]
) -> None:
    (tmp_path / "yard").mkdir()
    mine = {"places": {"mine": ["mine"], "yard": ["yard"]}, "train_and_test": ["mine"]}
    (tmp_path / "scenes.json").write_text(json.dumps(mine | {"reserve": ["yard"]}))
    (tmp_path / "church").mkdir()
    write_roles(tmp_path, scenes)
    written = json.loads((tmp_path / "scenes.json").read_text())
    assert written == {
        "places": {"mine": ["mine"], "church": ["church"], "yard": ["yard"]},
        "train_and_test": ["mine", "church"],
        "test": [],
        "reserve": ["yard"],
        "most_classes": MOST_CLASSES,
        "most_images": MOST_IMAGES,
        "most_keypoints": MOST_KEYPOINTS,
    }
    for text in ("[]", '{"places": {"mine": ["mine"], "mine": ["yard"]}}'):
        (tmp_path / "scenes.json").write_text(text)
        with pytest.raises(ValueError, match=r"scenes\.json is damaged"):
            write_roles(tmp_path, scenes)


def test_the_tables_of_public_places_are_consistent() -> None:
    scenes = public_scenes()
    assert {scene.role for scene in scenes} == set(ROLES)
    assert len({scene.name for scene in scenes}) == len(scenes)
    roles = {(scene.place, scene.role) for scene in scenes}
    assert len(roles) == len({scene.place for scene in scenes})
    for scene in scenes:
        images = [file for file in scene.files if not file.name.endswith(".camera")]
        cameras = [file.name for file in scene.files if file.name.endswith(".camera")]
        names = [photograph.name for photograph in scene.photographs]
        assert max(Counter(names).values()) == 1
        assert FEWEST_IMAGES <= len(names) <= len(images)
        assert cameras in ([], [f"{name}.camera" for name in names])
        assert scene.author
        assert scene.licence
        assert scene.address.startswith("https://")
        # Names that a scene's files are kept by until it is whole.
        assert len({(file.commit[:8], file.name) for file in scene.files}) == len(scene.files)
        for file in scene.files:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", file.repository)
            assert re.fullmatch(r"[0-9a-f]{40}", file.commit)
        for photograph in scene.photographs:
            assert len(photograph.means) == BLOCKS**2
            assert min(photograph.size) > 500


def test_the_evidence_s_places_are_the_public_ones_and_hardtfeat_says_which_count() -> None:
    folder = REFERENCE / "places"
    held = pd.read_csv(folder / "places.csv", index_col="place")
    assert held["role"].str.replace(" ", "_").to_dict() == {
        scene.place: scene.role for scene in public_scenes() if scene.evidence
    }
    assert held.loc[held["role"] == "train and test", "set classes found"].min() == MOST_CLASSES
    counted = pd.read_csv(folder / "counted.csv", index_col="place")
    assert list(counted.index) == list(held.index[held["role"] != "reserve"])
    for pairs in ("random", "wide"):
        rate = counted[f"FPR95 of HardTFeat (%) {pairs}"]
        assert (counted[f"counts {pairs}"] == "yes").tolist() == (rate >= 0.01).tolist()

"""Roles of scenes, and unusable scenes, which are refused by the folder or file at fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from PIL import Image

from lib.data.cameras import Camera, write_strecha_camera
from lib.data.scenes.places import image_files, read_places
from lib.data.scenes.prepared import prepare, reconstruction
from lib.data.sources import FREE_PLACES, open_source
from lib.study.searches import pairs_of_sets

SIZE = (64, 48)


def write_noise(root: Path, *names: str, images: int = 3) -> Path:
    """Write scenes whose images show nothing in common."""
    for number, name in enumerate(names):
        (root / name / "images").mkdir(parents=True)
        rng = np.random.default_rng(number)
        for index in range(images):
            grey = rng.integers(0, 256, SIZE[::-1], np.uint8)
            cv2.imwrite(str(root / name / "images" / f"{index:04}.png"), grey)
    return root


def write_roles(root: Path, places: object, **roles: object) -> None:
    (root / "scenes.json").write_text(json.dumps({"places": places, **roles}))


def test_places_have_the_scenes_and_roles_of_the_file(tmp_path: Path) -> None:
    root = write_noise(tmp_path, "a1", "a2", "b", "c", "unnamed")
    places = {"a": ["a1", "a2"], "b": ["b"], "c": ["c"]}
    roles = {"train_and_test": ["a"], "test": ["b"], "reserve": ["c"]}
    write_roles(root, places, **roles)
    parsed = read_places(root)
    assert parsed.scenes == {"a": ("a1", "a2"), "b": ("b",), "c": ("c",)}
    assert (parsed.train_and_test, parsed.test, parsed.reserve) == (("a",), ("b",), ("c",))
    assert (parsed.most_classes, parsed.most_images, parsed.most_keypoints) == (None, None, None)
    write_roles(root, places, **roles, most_images=10, most_keypoints=2000)
    parsed = read_places(root)
    assert (parsed.most_classes, parsed.most_images, parsed.most_keypoints) == (None, 10, 2000)
    (root / "scenes.json").unlink()
    assert read_places(root).train_and_test == ("a1", "a2", "b", "c", "unnamed")
    write_noise(tmp_path, ".thumbnails")
    assert read_places(root).train_and_test == ("a1", "a2", "b", "c", "unnamed")


@pytest.mark.parametrize(
    "roles",
    [
        {"train_and_test": ["p"], "test": ["q"], "reserve": ["p"]},
        {"train_and_test": ["p"], "test": ["q"], "places": {"p": ["a"], "q": ["a"]}},
        {"train_and_test": ["p"], "test": ["q"], "most_images": 0},
        {"train_and_test": ["p"], "test": ["q"], "most_keypoints": "2000"},
    ],
)
def test_places_that_contradict_themselves_are_refused(tmp_path: Path, roles: dict) -> None:
    write_roles(write_noise(tmp_path, "a", "b"), **{"places": {"p": ["a"], "q": ["b"]}, **roles})
    with pytest.raises(ValueError, match=f"{tmp_path / 'scenes.json'}"):
        read_places(tmp_path)


def test_a_misspelled_limit_is_refused_by_name(tmp_path: Path) -> None:
    write_roles(write_noise(tmp_path, "a"), {"p": ["a"]}, train_and_test=["p"], most_class=300)
    with pytest.raises(ValueError, match=r"scenes\.json: .*there is no 'most_class'; .* most_classes"):
        read_places(tmp_path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"places": {"p": ["a"], "p": ["b"]}, "train_and_test": ["p"]}', "p"),
        ('{"places": {"p": ["a"]}, "train_and_test": [], "train_and_test": ["p"]}', "train_and_test"),
    ],
)
def test_a_key_that_repeats_is_refused_by_name(tmp_path: Path, text: str, key: str) -> None:
    (write_noise(tmp_path, "a", "b") / "scenes.json").write_text(text)
    with pytest.raises(ValueError, match=rf"scenes\.json: .*'{key}' is there twice"):
        read_places(tmp_path)


@pytest.mark.parametrize(
    ("places", "roles"),
    [({"castle": "castle"}, ["castle"]), ({"castle": ["castle"]}, "castle")],
)
def test_a_name_in_place_of_a_list_of_names_is_not_read_letter_by_letter(
    tmp_path: Path, places: dict, roles: object
) -> None:
    write_roles(write_noise(tmp_path, "castle", *"castle"), places, train_and_test=roles)
    with pytest.raises(ValueError, match="names stand in a list") as refused:
        read_places(tmp_path)
    assert '["castle"]' in str(refused.value)


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "../../../escaped", ".hidden", "a\nb", ""]
)
@pytest.mark.parametrize("kind", ["place", "scene"])
def test_a_name_that_could_leave_its_folder_or_mark_up_a_page_is_refused(
    tmp_path: Path, name: str, kind: str
) -> None:
    places = {name: ["a"]} if kind == "place" else {"p": [name]}
    write_roles(write_noise(tmp_path, "a"), places, train_and_test=list(places))
    with pytest.raises(ValueError, match="rename") as refused:
        read_places(tmp_path)
    [line] = str(refused.value).splitlines()
    assert line.startswith(f"{tmp_path / 'scenes.json'}: ")
    assert repr(name) in line


def test_roles_are_read_with_the_mark_of_windows_editors(tmp_path: Path) -> None:
    root = write_noise(tmp_path, "a", "b")
    write_roles(root, {"a": ["a"], "b": ["b"]}, train_and_test=["b"], test=["a"])
    file = root / "scenes.json"
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert read_places(root).train_and_test == ("b",)


def test_a_scenes_folder_is_refused_by_name_where_it_could_mark_up_a_page(tmp_path: Path) -> None:
    write_noise(tmp_path, "a", "<b>")
    with pytest.raises(ValueError, match=f"{tmp_path}: rename '<b>'"):
        read_places(tmp_path)


def test_letters_of_any_language_and_spaces_are_part_of_names(tmp_path: Path) -> None:
    names = ("Kraków 2", "delivery_area", "Herz-Jesus-P8")
    assert set(read_places(write_noise(tmp_path, *names)).scenes) == set(names)


def test_places_whose_sets_would_share_a_name_are_refused(tmp_path: Path) -> None:
    write_noise(tmp_path / "photographs", "a", "a-wide", "c")
    source = open_source(f"places:{tmp_path / 'photographs'}", tmp_path / "data")
    with pytest.raises(ValueError, match="'a' and 'a-wide' both have a set 'a-wide'"):
        source.digest("a-wide")


def write_model(scene: Path, folder: str = "", images: int = 3, **wrong: str) -> None:
    """Write a COLMAP model of views side by side that see four points at depth 4, exactly.

    Args:
        scene: folder with images 0000.png and so on.
        folder: the model's folder in ``sparse``.
        images: how many of three views are in it.
        wrong: "camera", the camera's line; "last", the last image's name; "shift", px by which all
            points are moved in x.
    """
    sparse = scene / "sparse" / folder
    sparse.mkdir(parents=True)
    shift = float(wrong.get("shift", 0))
    rows, points = [], []
    world = [(x, y, 4.0) for x in (-1, 0.5) for y in (-0.5, 1)]
    names = ("0000.png", "0001.png", wrong.get("last", "0002.png"))
    for number, name in enumerate(names[:images]):
        rows.append(f"{number + 1} 1 0 0 0 {number / 10} 0 0 1 {name}\n")
        for point, (x, y, z) in enumerate(world, 1):
            pixel = f"{60 * (x + number / 10) / z + 32 + shift} {60 * y / z + 24}"
            rows.append(f"{pixel} {point} ")
        rows.append("\n")
    for point, position in enumerate(world, 1):
        track = " ".join(f"{image} {point - 1}" for image in range(1, images + 1))
        points.append(f"{point} {' '.join(map(str, position))} 0 0 0 0 {track}\n")
    camera = wrong.get("camera", "1 PINHOLE 64 48 60 60 32 24")
    for file, text in (("cameras", camera), ("images", "".join(rows)), ("points3D", "".join(points))):
        (sparse / f"{file}.txt").write_text(text)


def test_a_model_that_fits_its_images_is_used_unchanged(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    write_model(scene)
    model = reconstruction(scene, tmp_path)
    assert (model.num_reg_images(), model.num_points3D()) == (3, 4)
    assert model.compute_mean_reprojection_error() < 1e-3


def renamed(images: list[Path]) -> None:
    contents = [path.read_bytes() for path in images]
    for path, content in zip(images, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)


def two_swapped(images: list[Path]) -> None:
    renamed(images[2:4])


def turned_over(images: list[Path]) -> None:
    for path in images:
        cv2.imwrite(str(path), cv2.imread(str(path))[::-1, ::-1])


def cropped(images: list[Path]) -> None:
    for path in images:
        whole = cv2.imread(str(path))
        height, width = whole.shape[:2]
        inner = whole[height // 20 : -height // 20, width // 20 : -width // 20]
        cv2.imwrite(str(path), cv2.resize(inner, (width, height)))


@pytest.mark.parametrize("change", [None, renamed, two_swapped, turned_over, cropped])
def test_a_model_of_other_pixels_is_refused_though_it_agrees_with_itself(
    tmp_path: Path, change: Callable[[list[Path]], None] | None
) -> None:
    scene = tmp_path / "fruit"
    shutil.copytree(FREE_PLACES / "banana", scene)
    if change is None:
        assert reconstruction(scene, tmp_path).num_reg_images() == 15
        return
    change(image_files(scene))
    with pytest.raises(ValueError, match="is of other pixels") as refused:
        reconstruction(scene, tmp_path)
    assert str(scene / "sparse") in str(refused.value)


def test_two_photographs_with_one_name_but_for_the_ending_are_refused(tmp_path: Path) -> None:
    images = write_noise(tmp_path, "a") / "a" / "images"
    shutil.copy(images / "0001.png", images / "0001.jpg")
    with pytest.raises(ValueError, match="have one name but for endings"):
        image_files(tmp_path / "a")
    (images / "0001.jpg").unlink()
    for name in ("b-1.png", "b_1.png"):
        shutil.copy(images / "0001.png", images / name)
    with pytest.raises(ValueError, match="have one name but for endings"):
        image_files(tmp_path / "a")


@pytest.mark.parametrize("name", ["0001_copy.png", "0001_copy.bmp"])
def test_copies_of_a_photograph_are_refused_by_both_names_whatever_their_format(
    tmp_path: Path, name: str
) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    cv2.imwrite(str(scene / "images" / name), cv2.imread(str(scene / "images" / "0001.png")))
    with pytest.raises(ValueError, match=rf"0001\.png and {name} are copies of one photograph"):
        reconstruction(scene, tmp_path)


def test_copies_are_refused_in_a_given_model_only_if_it_names_both(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    shutil.copy(scene / "images" / "0001.png", scene / "images" / "0001_copy.png")
    write_model(scene)
    assert reconstruction(scene, tmp_path).num_reg_images() == 3
    shutil.copy(scene / "images" / "0001.png", scene / "images" / "0002.png")
    with pytest.raises(ValueError, match=r"0001\.png and 0002\.png are copies"):
        reconstruction(scene, tmp_path)


def test_a_model_without_points_or_tracks_is_refused(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    write_model(scene)
    (scene / "sparse" / "points3D.txt").write_text("")
    lines = (scene / "sparse" / "images.txt").read_text().splitlines()
    (scene / "sparse" / "images.txt").write_text("\n\n".join(lines[::2]) + "\n\n")
    with pytest.raises(ValueError, match=r"sparse holds a model without points"):
        reconstruction(scene, tmp_path)


def test_masks_are_no_photographs_of_a_scene(tmp_path: Path) -> None:
    images = write_noise(tmp_path, "a") / "a" / "images"
    photographs = image_files(tmp_path / "a")
    (images / "masks").mkdir()
    for mask in (images / "0001.png.png", images / "masks" / "0001.png"):
        shutil.copy(images / "0001.png", mask)
    assert image_files(tmp_path / "a") == photographs


def test_a_place_with_the_name_of_one_in_the_repository_is_the_folders_own(tmp_path: Path) -> None:
    root = write_noise(tmp_path, "conch", "castle")
    source = open_source(f"places:{root}", tmp_path / "made")
    for name in ("conch", "conch-wide", "conch-images"):
        assert source.collection(name) is source.collection("castle")


def test_of_several_models_the_one_with_most_images_is_used(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    write_model(scene, "0", images=2)
    write_model(scene, "1", images=3)
    assert reconstruction(scene, tmp_path).num_reg_images() == 3


@pytest.mark.parametrize(
    ("wrong", "at_fault"),
    [
        ({"camera": "1 PINHOLE 64 48 60"}, "sparse"),
        ({"last": "0009.png"}, "images/0009.png"),
        ({"camera": "1 PINHOLE 128 96 60 60 32 24"}, "images/0000.png"),
        ({"shift": "5"}, ""),
    ],
)
def test_a_model_of_other_images_is_refused(
    tmp_path: Path, wrong: dict[str, str], at_fault: str
) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    write_model(scene, **wrong)
    with pytest.raises((ValueError, FileNotFoundError), match=rf"{scene / at_fault}\b"):
        reconstruction(scene, tmp_path)


def test_a_model_whose_images_lie_in_folders_is_refused_with_a_way_on(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    write_model(scene, last="left/0002.png")
    with pytest.raises(FileNotFoundError, match=r"left/0002\.png is missing.*image\.name"):
        reconstruction(scene, tmp_path)


def test_images_that_show_nothing_in_common_are_refused(tmp_path: Path) -> None:
    scene = write_noise(tmp_path, "a") / "a"
    for name in ("mapped", "posed"):
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"{scene}"):
        prepare(scene, tmp_path / "mapped")
    matrix = np.array([[60.0, 0, 31.5], [0, 60, 23.5], [0, 0, 1]])
    for number in range(3):
        camera = Camera(matrix, np.eye(3), np.array([number / 10, 0, 0]), *SIZE)
        write_strecha_camera(scene / "cameras" / f"{number:04}.png.camera", camera)
    with pytest.raises(ValueError, match=f"{scene}"):
        prepare(scene, tmp_path / "posed")


def test_a_source_of_scenes_has_its_places_by_role(tmp_path: Path) -> None:
    root = write_noise(tmp_path, "a", "b", "c", "d")
    places = {name: [name] for name in "abcd"}
    write_roles(root, places, train_and_test=["a", "b"], test=["c"], reserve=["d"])
    source = open_source(f"places:{root}", root / "made")
    assert (source.name, source.sets, source.reserve) == ("places", ("a", "b"), ("d",))
    for name in ("a-wide", "c", "c-wide-5px", "d-images"):
        assert source.digest(name) != source.digest("a")


@pytest.mark.parametrize("ending", ["bmp", "ppm", "TIF"])
def test_uncompressed_photographs_are_told_apart_by_their_contents(tmp_path: Path, ending: str) -> None:
    photographs = tmp_path / "scenes" / "a" / "images"
    photographs.mkdir(parents=True)
    digests = []
    for level in (90, 60, 90):
        for number in range(3):
            grey = np.full((48, 64, 3), level + number, np.uint8)
            Image.fromarray(grey).save(photographs / f"{number}.{ending}")
        source = open_source(f"places:{tmp_path / 'scenes'}", tmp_path / "made")
        digests.append(source.digest("a"))
    assert len({path.stat().st_size for path in photographs.iterdir()}) == 1
    assert digests[0] == digests[2] != digests[1]


def test_a_search_trains_on_one_reserve_and_tests_on_the_other_or_tests_on_the_only_one() -> None:
    one_reserve = SimpleNamespace(sets=("a", "b"), reserve=("r",), searched=())
    assert pairs_of_sets(one_reserve) == [("a", "r")]
    two_reserves = SimpleNamespace(sets=("a", "b"), reserve=("r", "s"), searched=())
    assert sorted(pairs_of_sets(two_reserves)) == [("r", "s"), ("s", "r")]
    others_to_train_on = SimpleNamespace(sets=("a", "b"), reserve=("r",), searched=("x", "y"))
    assert pairs_of_sets(others_to_train_on) == [("x", "r"), ("y", "r")]

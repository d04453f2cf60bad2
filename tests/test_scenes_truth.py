"""A prepared synthetic scene with relief against its true planes; its sets of patches."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest
from known_walls import (
    Arrangement,
    Plane,
    Site,
    carried_pixels,
    greys,
    in_image,
    plan_wall,
    render_view,
    render_views,
    seen_planes,
    write_posed,
)

from lib.data.hpatches.detection import overlaps
from lib.data.phototour import read_phototour
from lib.data.scenes import prepared
from lib.data.scenes.correspondences import Scene, Tolerance, classes, matches
from lib.data.scenes.places import CAMERAS, IMAGES
from lib.data.scenes.prepared import FEWEST_CLASSES, prepare
from lib.data.scenes.sets import TRAINING, SceneSets
from lib.data.scenes.views import carry, lift
from lib.data.synthetic.imaging import Photometry, orbiting_camera
from lib.features.keypoints import Keypoints, carried_keypoints
from lib.features.patches import PATCH_WIDTH

CAMERAS_BEFORE = Arrangement(np.deg2rad(90.0), 6, (640, 480), np.deg2rad(35.0), 0.05)
# Facets across and down a plane, and the largest shift of one out or back, in its own widths.
FACETS, DEPTH = 4, 0.06


@dataclass(frozen=True)
class Wall:
    site: Site
    sets: SceneSets
    scene: Scene


def with_relief(site: Site, rng: np.random.Generator) -> Site:
    """Cut a site's planes into facets, each moved along its normal. They are finer than the distance
    between sparse points, so a triangulated surface gets them wrong."""
    planes = []
    for plane in site.planes:
        normal = np.cross(plane.u_axis, plane.v_axis)
        normal /= np.linalg.norm(normal)
        sides = (np.linspace(0, side, FACETS + 1).round() for side in (plane.width, plane.height))
        edges = (pairwise(side.astype(int).tolist()) for side in sides)
        for (x0, x1), (y0, y1) in product(*edges):
            out = DEPTH * (x1 - x0) * np.linalg.norm(plane.u_axis) * rng.uniform(-1, 1)
            origin = plane.origin + x0 * plane.u_axis + y0 * plane.v_axis + out * normal
            # A plane ends in the middle of its last texel: one more closes the gap to the next facet.
            width, height = min(x1 - x0 + 1, plane.width - x0), min(y1 - y0 + 1, plane.height - y0)
            left, top = plane.left + x0, plane.top + y0
            planes.append(replace(plane, origin=origin, width=width, height=height, left=left, top=top))
    return replace(site, planes=tuple(planes))


def write_relief(folder: Path) -> Site:
    """Write a scene of photographs on a wall with relief, and return its site."""
    rng = np.random.default_rng(0)
    textures = greys(640)
    site = with_relief(plan_wall(textures, CAMERAS_BEFORE, rng), rng)
    write_posed(folder, render_views(site, textures), site.cameras)
    return site


def test_the_nearer_of_two_planes_hides_the_other() -> None:
    camera = orbiting_camera(400.0, (201, 161), 500.0, target=[0, 0, 500])
    near, far = (
        Plane(np.array([-half, -half, depth]), *np.eye(3)[:2], 2 * half + 1, 2 * half + 1)
        for half, depth in ((10, 400), (50, 500))
    )
    pixels = np.array([[100.0, 80], [130, 80], [199, 159]])
    for planes, expected in (((far, near), [1, 0, -1]), ((near, far), [0, 1, -1])):
        np.testing.assert_array_equal(seen_planes(Site(planes, [camera], []), 0, pixels), expected)


def test_a_rendered_view_shows_the_nearest_plane_at_each_pixel() -> None:
    rng = np.random.default_rng(0)
    grey = np.zeros((160, 200), np.uint8)
    site = plan_wall([grey], replace(CAMERAS_BEFORE, size=(320, 240)), rng)
    plain = Photometry(gain=1, gamma=1, blur=0, noise=0, noise_seed=0, jpeg_quality=100)
    site = replace(site, photometry=[plain] * len(site.cameras))
    levels = np.linspace(10, 90, len(site.planes)).astype(np.uint8)
    for plane, level in zip(site.planes, levels, strict=True):
        grey[plane.top : plane.top + plane.height, plane.left : plane.left + plane.width] = level
    for number, camera in enumerate(site.cameras):
        pixels = np.indices((camera.width, camera.height), float).reshape(2, -1).T
        nearest = seen_planes(site, number, pixels)
        seen = nearest >= 0
        x, y = pixels[seen].astype(int).T
        shown = render_view(site, [grey], number)[y, x].astype(int)
        # Outlines are rounded to whole pixels in a view.
        assert (np.abs(shown - levels[nearest[seen]]) <= 3).mean() > 0.95


def truly_carried(
    site: Site, first: int, second: int, keypoints: Keypoints
) -> tuple[Keypoints, np.ndarray, np.ndarray]:
    """Carry keypoints of the first view into the second by the known planes. Also return their (N, 2, 2)
    local affine maps, and (N,) whether the second view sees them."""
    camera = site.cameras[second]
    plane = seen_planes(site, first, keypoints.position)
    position, affine = carried_pixels(site, first, second, keypoints.position, plane)
    nearest = seen_planes(site, second, position)
    # As deep as the plane seen at its pixel, which beside an edge may be the next facet.
    coefficients = np.linalg.inv(site.homographies(second))[:, 2]
    rays = np.column_stack([position, np.ones(len(position))])
    carried, seen = (np.einsum("ni,ni->n", rays, coefficients[index]) for index in (plane, nearest))
    visible = in_image(position, camera) & (plane >= 0) & (nearest >= 0) & (np.linalg.det(affine) > 0)
    visible &= np.abs(carried - seen) <= 0.01 * np.abs(seen)
    return carried_keypoints(keypoints, position, affine), affine, visible


def true_overlaps(wall: Wall, tolerance: Tolerance) -> np.ndarray:
    """(M,) overlaps of the regions that the patches of labelled pairs show, under the true map; 0 where
    the first region is hidden from the second view."""
    scene, measured = wall.scene, []
    label = classes(scene, tolerance)
    pairs = matches(scene, tolerance)[["first", "second"]].to_numpy()
    ends = label[pairs]
    pairs = pairs[(ends[:, 0] >= 0) & (ends[:, 0] == ends[:, 1])]
    for first, second in np.unique(scene.view_ids[pairs], axis=0):
        rows = (scene.view_ids[pairs] == (first, second)).all(axis=1)
        keypoints, detected = (scene.keypoints[end] for end in pairs[rows].T)
        moved, affine, seen = truly_carried(wall.site, first, second, keypoints)
        # Coordinates where the detected region is the unit disc.
        linear = affine * (keypoints.scale / detected.scale)[:, None, None]
        shift = (moved.position - detected.position) / (PATCH_WIDTH / 2 * detected.scale)[:, None]
        maps = np.concatenate([linear, shift[:, :, None]], axis=2)
        measured += [np.zeros((~seen).sum()), overlaps(maps[seen])]
    return np.concatenate(measured)


@pytest.fixture(scope="module")
def wall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wall]:
    """Six small views of one wall, prepared once."""
    root = tmp_path_factory.mktemp("scenes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "MOST_PAIRS", 300)
        site = write_relief(root / "wall")
        sets = SceneSets(root, root / "made")
        [scene] = sets.scenes("wall")
        yield Wall(site, sets, scene)


def test_the_model_keeps_the_given_poses(wall: Wall) -> None:
    assert wall.scene.left_out == ()
    assert [view.name for view in wall.scene.views] == [f"{number:04}.png" for number in range(1, 7)]
    for view, camera in zip(wall.scene.views, wall.site.cameras, strict=True):
        np.testing.assert_allclose(view.centre, camera.centre, atol=1e-6 * np.linalg.norm(camera.centre))
        np.testing.assert_allclose(view.rotation, camera.rotation, atol=1e-9)


def test_keypoints_are_carried_and_detected_without_bias(wall: Wall) -> None:
    """The median errors of carrying by the surface and of detection: under 0.1 px in x and in y."""
    scene = wall.scene
    label = classes(scene, Tolerance(TRAINING))
    by_surface, by_detector = [], []
    for first, second in permutations(range(6), 2):
        sources, targets = (np.flatnonzero(scene.view_ids == view) for view in (first, second))
        true, _, seen = truly_carried(wall.site, first, second, scene.keypoints[sources])
        lifted = lift(scene.views[first], scene.keypoints[sources])
        carried, visible = carry(scene.keypoints[sources], lifted, scene.views[second])
        both = seen & visible
        by_surface.append((carried.position - true.position)[both])
        _, source_rows, target_rows = np.intersect1d(label[sources], label[targets], return_indices=True)
        labelled = (label[sources][source_rows] >= 0) & seen[source_rows]
        ends = scene.keypoints.position[targets[target_rows]] - true.position[source_rows]
        by_detector.append(ends[labelled])
    for errors in map(np.concatenate, (by_surface, by_detector)):
        assert len(errors) > 1000
        assert (np.abs(np.median(errors, axis=0)) < 0.1).all()
        assert np.median(np.linalg.norm(errors, axis=1)) < 0.5


@pytest.mark.parametrize("pixels", [1.0, TRAINING, 5.0])
def test_19_of_20_labelled_pairs_are_right(wall: Wall, pixels: float) -> None:
    right = true_overlaps(wall, Tolerance(pixels)) >= 0.5
    assert right.mean() > 0.95
    assert right.sum() > 400


def test_a_scene_prepared_again_has_the_same_bits(wall: Wall, tmp_path: Path) -> None:
    prepare(wall.sets.root / "wall", tmp_path)
    [first] = wall.sets.folder.glob("wall-*")
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) >= 5
    for file in files:
        assert (tmp_path / file).read_bytes() == (first / file).read_bytes(), file


def test_the_folder_has_phototours_format(wall: Wall, tmp_path: Path) -> None:
    prepared.write_place(tmp_path, [wall.scene], Tolerance(TRAINING))
    written = read_phototour(tmp_path, tmp_path / "decoded")
    scene = wall.scene
    label = classes(scene, Tolerance(TRAINING))
    assert len(written.patches) == (label >= 0).sum()
    assert sorted(Counter(written.point_ids.tolist()).values()) == sorted(
        Counter(label[label >= 0].tolist()).values()
    )
    frames = np.loadtxt(tmp_path / "interest.txt")
    for index in (0, 100, len(frames) - 1):
        image, x, y, _, octave = frames[index]
        near = np.linalg.norm(scene.keypoints.position - [x, y], axis=1) < 1e-3
        near &= np.abs(np.log2(scene.keypoints.scale) - octave) < 1e-3
        [keypoint] = np.flatnonzero(near & (scene.view_ids == image))
        assert label[keypoint] == written.point_ids[index]
        np.testing.assert_array_equal(
            wall.scene.patches(np.array([keypoint]))[0], written.patches[index]
        )


def test_two_scenes_of_a_place_share_neither_points_nor_images(wall: Wall, tmp_path: Path) -> None:
    prepared.write_place(tmp_path, [wall.scene] * 2, Tolerance(TRAINING))
    written = read_phototour(tmp_path, tmp_path / "decoded")
    half = len(written.patches) // 2
    assert set(written.point_ids[:half]).isdisjoint(written.point_ids[half:])
    assert set(written.image_ids[:half]).isdisjoint(written.image_ids[half:])
    np.testing.assert_array_equal(written.patches[:half], written.patches[half:])


def test_sets_are_named_by_pairs_and_tolerance(wall: Wall) -> None:
    random, wide = (wall.sets.load(name) for name in ("wall", "wall-wide"))
    np.testing.assert_array_equal(random.patches, wide.patches)
    assert wide.name == "wall-wide"
    loose = wall.sets.load("wall-wide-5px")
    assert len(loose.patches) != len(wide.patches)
    assert wall.sets.digest("wall-wide-5px") != wall.sets.digest("wall-wide")
    assert wall.sets.folder_of("wall-wide") == wall.sets.folder_of("wall")
    assert {"wall", "wall-wide", "wall-5px", "wall-wide-1.5px", "wall-images"} <= {*wall.sets.names}
    assert wall.sets.load("wall-images")[0].images == wall.scene.images


def test_a_photograph_that_is_replaced_by_one_of_its_size_makes_other_sets(
    wall: Wall, tmp_path: Path
) -> None:
    shutil.copytree(wall.sets.root / "wall", tmp_path / "wall")
    shutil.copytree(wall.sets.folder, tmp_path / "made")
    photograph = tmp_path / "wall" / IMAGES / "0001.png"
    content = photograph.read_bytes()
    names, digests, folders = ("wall", "wall-images", "wall-wide-5px"), [], []
    for held in (content, content[:-1] + b"!", content):
        photograph.write_bytes(held)
        sets = SceneSets(tmp_path, tmp_path / "made")
        digests.append([sets.digest(name) for name in names])
        folders.append({sets.folder_of(name) for name in names})
    # A copy of the photograph is the photograph.
    assert digests[0] == digests[2] == [wall.sets.digest(name) for name in names]
    assert not {*digests[0]} & {*digests[1]}
    assert not folders[0] & folders[1]


def test_only_sets_of_images_change_with_how_much_of_them_is_matched(wall: Wall, tmp_path: Path) -> None:
    (tmp_path / "wall").symlink_to(wall.sets.root / "wall")
    roles = {"places": {"wall": ["wall"]}, "train_and_test": ["wall"]}
    (tmp_path / "scenes.json").write_text(json.dumps(roles | {"most_images": 4, "most_keypoints": 50}))
    limited = SceneSets(tmp_path, wall.sets.folder)
    [scene] = limited.load("wall-images")
    assert scene.images == tuple(tmp_path / "wall" / IMAGES / f"{n:04}.png" for n in range(1, 5))
    assert np.bincount(scene.view_ids).tolist() == [50] * 4
    np.testing.assert_array_equal(scene.kept, replace(scene, kept=None).patches(np.arange(200)))
    changed = {name for name in limited.names if limited.digest(name) != wall.sets.digest(name)}
    assert changed == {"wall-images"}


def test_wide_pairs_are_a_classes_widest_by_viewing_angle(wall: Wall) -> None:
    patch_set, scene = wall.sets.load("wall-wide"), wall.scene
    label, pairs = classes(scene, Tolerance(TRAINING)), patch_set.pairs
    centres = [camera.centre for camera in wall.site.cameras]
    members = {number: np.flatnonzero(label == number) for number in range(label.max() + 1)}
    checked = 0
    for one, other in zip(pairs.first[pairs.match], pairs.second[pairs.match], strict=True):
        rows = members[patch_set.point_ids[one]]
        point = scene.points[rows].mean(axis=0)

        def angle(views: tuple[int, int], point: np.ndarray = point) -> float:
            first, second = (centres[view] - point for view in views)
            return np.arctan2(np.linalg.norm(np.cross(first, second)), first @ second)

        angles = {pair: angle(pair) for pair in combinations(sorted(scene.view_ids[rows].tolist()), 2)}
        chosen = tuple(sorted(patch_set.image_ids[[one, other]].tolist()))
        assert angles[chosen] == pytest.approx(max(angles.values()), abs=1e-9)
        checked += len(angles) > 1 and chosen != next(iter(angles))
    assert checked > 20


def test_poses_of_other_images_are_refused(wall: Wall, tmp_path: Path) -> None:
    scene = tmp_path / "wall"
    for folder in (IMAGES, CAMERAS):
        (scene / folder).mkdir(parents=True)
        for file in sorted((wall.sets.root / "wall" / folder).iterdir())[:4]:
            number, _, ending = file.name.partition(".")
            moved = int(number) % 4 + 1 if folder == CAMERAS else int(number)
            (scene / folder / f"{moved:04}.{ending}").write_bytes(file.read_bytes())
    (tmp_path / "made").mkdir()
    with pytest.raises(ValueError, match=f"{scene / CAMERAS} contradicts the images"):
        prepare(scene, tmp_path / "made")


def divided(root: Path, source: Path, images: dict[str, slice]) -> Path:
    """Write scenes with some images each of one scene."""
    for name, selection in images.items():
        (root / name / IMAGES).mkdir(parents=True)
        for file in sorted((source / IMAGES).iterdir())[selection]:
            (root / name / IMAGES / file.name).write_bytes(file.read_bytes())
    return root


def test_two_places_that_show_one_scene_are_refused_by_both_names(wall: Wall, tmp_path: Path) -> None:
    # No image is in both.
    halves = {"east": slice(0, 3), "west": slice(3, 6)}
    root = divided(tmp_path / "scenes", wall.sets.root / "wall", halves)
    with pytest.raises(ValueError, match=f"east and west in {root} share"):
        SceneSets(root, tmp_path / "made").load("west-wide")


def test_the_scene_of_most_images_stays_among_overlapping_ones_of_a_place(
    wall: Wall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"part": slice(0, 3), "whole": slice(0, 6)}
    root = divided(tmp_path / "scenes", wall.sets.root / "wall", parts)
    (root / "scenes.json").write_text(
        '{"places": {"wall": ["part", "whole"]}, "train_and_test": ["wall"]}'
    )
    monkeypatch.setattr(prepared, "prepare", lambda *_: None)
    monkeypatch.setattr(prepared, "open_scene", lambda source, _: source.name)
    assert SceneSets(root, tmp_path / "made").scenes("wall") == ("whole",)


def test_of_too_many_classes_some_are_drawn_and_keep_all_their_patches(
    wall: Wall, tmp_path: Path
) -> None:
    def written(name: str, *most_classes: int) -> list[frozenset[bytes]]:
        """Return the patches of each class."""
        folder = tmp_path / name
        prepared.write_place(folder, [wall.scene], Tolerance(TRAINING), *most_classes)
        patch_set = read_phototour(folder, folder / "decoded", name)
        points = patch_set.point_ids
        return [
            frozenset(patch.tobytes() for patch in patch_set.patches[points == point])
            for point in range(points.max() + 1)
        ]

    every, some = written("every"), written("some", FEWEST_CLASSES)
    assert len(some) == FEWEST_CLASSES < len(every)
    assert set(some) < set(every)
    assert written("again", FEWEST_CLASSES) == some
    assert written("enough", len(every)) == every

"""Embedded landmarks: the content of each city, and ground truth against cameras, texel by texel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from lib.data import whole_images as layout
from lib.data.cameras import Camera
from lib.data.sources import WholeImages
from lib.data.synthetic import ImagesSize
from lib.data.synthetic import whole_images as generator
from lib.data.synthetic.imaging import Plane, Site, render_views
from lib.data.synthetic.photographs import packaged_photographs
from lib.data.whole_images import City

SMALL = ImagesSize(longest_side=150)
SHOWN = WholeImages("mini", Path(), SMALL, packaged_photographs()).shown("landmarks")
# Texels that are sampled along each side of a plane; the generator samples fewer.
SAMPLES = 25


@dataclass(frozen=True)
class Made:
    """A set, and the walls that were photographed for it, in order."""

    cities: dict[str, City]
    sites: list[Site]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("landmarks") / "set"
    sites: list[Site] = []

    def record_site(site: Site, textures: list[np.ndarray]) -> list[np.ndarray]:
        sites.append(site)
        return render_views(site, textures)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator.imaging, "render_views", record_site)
        generator.write_landmarks(folder, SHOWN, SMALL)
    return Made(layout.read_landmarks(folder), sites)


def landmarks_of(city: City) -> list[str]:
    """Names of landmarks, in the order in which they were made."""
    order = [photograph.name for photograph in SHOWN]
    names = {query.name.rpartition("_")[0] for query in city.queries}
    return sorted(names, key=lambda name: (order.index(name.rpartition("_")[0]), name))


def test_both_cities_are_read_back(made: Made) -> None:
    walls = 0
    for name, city in made.cities.items():
        names = landmarks_of(city)
        assert len(names) == generator.TEXTURES * generator.LANDMARKS
        for query in city.queries:
            assert query.image in query.good
            assert not query.good & (query.ok | query.junk) | query.ok & query.junk
        streets = {image.rpartition("_")[0] for image in city.images if "_street_" in image}
        assert len(city.images) == (
            len(names) * generator.LANDMARK.views + len(streets) * generator.STREET.views
        )
        assert all(image.startswith(name) for image in city.images)
        walls += len(names) + len(streets)
    assert walls == len(made.sites)


def test_a_photograph_is_in_one_city_alone(made: Made) -> None:
    assert len({photograph.name for photograph in SHOWN}) == len(SHOWN) == 2 * generator.TEXTURES
    for city, photographs in zip(layout.CITIES, (SHOWN[:3], SHOWN[3:]), strict=True):
        for landmark in landmarks_of(made.cities[city]):
            assert any(landmark.startswith(photograph.name) for photograph in photographs)


def first_hit(site: Site, camera: Camera, rays: np.ndarray) -> np.ndarray:
    """How far along rays (N, 3) from a camera the first plane is, in rays, inf where there is none."""
    nearest = np.full(len(rays), np.inf)
    for plane in site.planes:
        axes = np.column_stack([plane.u_axis, plane.v_axis])
        normal = np.cross(plane.u_axis, plane.v_axis)
        lengths = normal @ (plane.origin - camera.centre) / (rays @ normal)
        offsets = camera.centre + lengths[:, None] * rays - plane.origin
        u, v = np.linalg.lstsq(axes, offsets.T, rcond=None)[0]
        hit = (u >= 0) & (v >= 0) & (u <= plane.width - 1) & (v <= plane.height - 1) & (lengths > 0)
        nearest = np.where(hit & (lengths < nearest), lengths, nearest)
    return nearest


def texels(plane: Plane) -> np.ndarray:
    """(SAMPLES², 3) points of a plane in space."""
    u, v = np.meshgrid(*(np.linspace(1, side - 2, SAMPLES) for side in (plane.width, plane.height)))
    return plane.origin + u.reshape(-1, 1) * plane.u_axis + v.reshape(-1, 1) * plane.v_axis


def shown_by(site: Site, camera: Camera) -> tuple[float, np.ndarray]:
    """The share of the middle photograph that a camera sees, and where, (N, 2) in px."""
    points = np.concatenate([texels(plane) for plane in site.planes if plane.photograph == 1])
    x, y, z = camera.intrinsics @ (camera.rotation @ points.T + camera.translation[:, None])
    pixels = np.stack([x / z, y / z], axis=1)
    inside = (pixels >= 0).all(axis=1) & (pixels <= [camera.width - 1, camera.height - 1]).all(axis=1)
    unoccluded = first_hit(site, camera, points - camera.centre) > 1 - 1e-6
    seen = inside & unoccluded & (z > 0)
    return float(seen.mean()), pixels[seen]


def test_grades_and_boxes_match_what_cameras_see(made: Made) -> None:
    sites, boxes = iter(made.sites), 0
    for name, city in made.cities.items():
        for landmark in landmarks_of(city):
            site = next(sites)
            queries = {q.image: q for q in city.queries if q.name.rpartition("_")[0] == landmark}
            graded = next(iter(queries.values()))
            for view, camera in enumerate(site.cameras):
                share, pixels = shown_by(site, camera)
                image = f"{name}_{landmark}_{view:06}"
                grades = [grade for grade in layout.GRADES if image in getattr(graded, grade)]
                # The generator samples fewer texels: a share near a bound may get either grade.
                allowed = {expected_grade(share + error) for error in (-0.03, 0.0, 0.03)}
                assert (grades or [None])[0] in allowed, (image, share)
                if image in queries:
                    box = np.array(queries[image].box)
                    assert share > 0.57
                    assert (box >= 0).all()
                    assert (box[2:] <= [camera.width - 1, camera.height - 1]).all()
                    bounds = [*pixels.min(axis=0), *pixels.max(axis=0)]
                    np.testing.assert_allclose(box, bounds, atol=8)
                    boxes += 1
        # Skip the sites of its streets.
        for _ in {image.rpartition("_")[0] for image in city.images if "_street_" in image}:
            next(sites)
    assert boxes == sum(len(city.queries) for city in made.cities.values())


def expected_grade(share: float) -> str | None:
    if share >= 0.6:
        return "good"
    if share >= 0.25:
        return "ok"
    return "junk" if share >= 0.02 else None

"""Figures of the data: photographs, a generated site and its views, and the classes of a patch set.

Sites and views are those of `lib.data.synthetic`; classes are drawn of any set in PhotoTour's format
(Brown, Hua and Winder, PAMI 2011).
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.data.patchset import PatchSet
from lib.data.synthetic.description import detections, read_sites, redraw_view, textures_of
from lib.data.synthetic.geometry import Camera, Plane, nearest_plane, orbiting_camera
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.photometry import Photometry
from lib.data.synthetic.scenes import Site, render_view
from lib.features.patches import PATCH_WIDTH
from lib.study.report.data.pictures import GAP, ON_GREY, beside, evenly, mosaic, outline, show
from lib.study.report.style import COLUMN_WIDTH, DOUBLE_WIDTH, GREY, PALETTE, panels

AS_IT_IS = Photometry(gain=1.0, gamma=1.0, blur=0.0, noise=0.0, noise_seed=0, jpeg_quality=100)
# Of the drawing in space: yaw and pitch in radians, distances of the reference camera, px.
VIEWER_ANGLES, VIEWER_DISTANCE, VIEWER_WIDTH = (-0.72, -0.42), 2.3, 1000
# The line from a camera to where it looks.
AIM = {"color": "#BBBBBB", "lw": 0.5, "ls": ":", "zorder": 0.5}
# Length of a drawn camera, in distances of the reference camera.
CAMERA_LENGTH = 0.11
# In a view, of the points that all views show.
MOST_CIRCLES = 60
# A way along all edges of a pyramid whose tip is corner 0.
EDGES = [1, 2, 0, 3, 4, 0, 1, 4, 3, 2]


def photographs_figure(groups: Mapping[str, Sequence[Photograph]], most: int = 4) -> Figure:
    """Thumbnails in grey, as the generator reads them, with names and licences; a row a group.

    Args:
        groups: photographs by what they serve, e.g. a scene's name.
        most: shown of a group; the row's label says how many there are where there are more.

    Raises:
        ValueError: a photograph cannot be read.
    """
    groups = {name: list(photographs) for name, photographs in groups.items() if photographs}
    columns = min(most, max(len(photographs) for photographs in groups.values()))
    with panels(DOUBLE_WIDTH, 1.5 * len(groups), columns, len(groups)) as (figure, rows):
        for axes_of_row, (name, photographs) in zip(rows, groups.items(), strict=True):
            shown = photographs[:columns]
            for axes in axes_of_row:
                axes.set_axis_off()
                axes.set_anchor("NW")
            for axes, photograph in zip(axes_of_row, shown, strict=False):
                show(axes, photograph.grey(400), DOUBLE_WIDTH / columns)
                axes.set_title(photograph.name, fontsize=8, loc="left", pad=3)
                licence = textwrap.fill(photograph.licence, 32, break_on_hyphens=False)
                beside(axes, licence, (0, 0), (0, -2), va="top", size=7, color=GREY)
            count = f"\n{len(shown)} of {len(photographs)}" if len(photographs) > columns else ""
            at = {"rotation": 90, "ha": "right", "va": "center", "multialignment": "center"}
            beside(axes_of_row[0], name + count, (0, 0.5), (-8, 0), weight="bold", **at)
    return figure


def site_figure(folder: Path, photographs: Sequence[Photograph]) -> Figure:
    """A scene's first site in space, textured, with the cameras that see it, and from straight above.

    Lengths are in distances of the reference camera from the site's middle. Planes are outlined in
    their photograph's colour; camera 0 is the reference view, in black.

    Args:
        folder: a generated scene.
        photographs: at least the site's.

    Raises:
        FileNotFoundError: the folder holds no generated scene.
        ValueError: a photograph of it is not among those given.
    """
    facts, sites = read_sites(folder)
    shown, textures = sites[0], textures_of(facts, 0, photographs)
    names = {index: p["name"] for index, p in enumerate(facts["sites"][0]["photographs"])}
    with panels(DOUBLE_WIDTH, 3.5, 2, legend=len(names), width_ratios=[1.75, 1]) as (
        figure,
        [[in_space, above]],
    ):
        _draw_in_space(in_space, shown, textures)
        _draw_from_above(above, shown, names)
    return figure


def views_figure(
    folder: Path, photographs: Sequence[Photograph], patch_set: PatchSet, images: Sequence[int]
) -> Figure:
    """Views of a site with the detections whose patches were cut from them.

    A circle has the width of the patch and points where the patch's x axis does. Circles are
    `MOST_CIRCLES` of the points that have a patch in every view shown, evenly spaced, one colour a
    point in all of them; dots are the other detections.

    Args:
        folder: a generated scene.
        photographs: at least the site's.
        patch_set: of the same scene.
        images: ids of the views to show.

    Raises:
        FileNotFoundError: the folder holds no generated scene.
        ValueError: no such image, or a photograph is missing.
    """
    views = [redraw_view(folder, photographs, image) for image in images]
    points = [patch_set.point_ids[patch_set.image_ids == image] for image in images]
    common = set.intersection(*(set(of.tolist()) for of in points))
    chosen = evenly(sorted(common), MOST_CIRCLES)
    colour = {point: ON_GREY[i % len(ON_GREY)] for i, point in enumerate(chosen)}
    height = sum(DOUBLE_WIDTH * v.shape[0] / v.shape[1] for v in views) + 0.25 * len(views)
    with panels(DOUBLE_WIDTH, height, rows=len(views)) as (figure, rows):
        for (axes,), view, of, image in zip(rows, views, points, images, strict=True):
            frames = detections(folder, image)
            circled = np.array([point in colour for point in of.tolist()], dtype=bool)
            show(axes, view, DOUBLE_WIDTH)
            axes.plot(*frames[~circled, :2].T, ".", color="white", ms=3.0, mec="black", mew=0.3)
            for (x, y, turn, octaves), point in zip(frames[circled], of[circled], strict=True):
                radius = PATCH_WIDTH / 2 * 2.0**octaves
                hand = radius * np.array([np.cos(turn), np.sin(turn)])
                outline(axes, np.array([[hand[0], -hand[1], x], [hand[1], hand[0], y]]), colour[point])
            axes.set_title(f"view {image}: {len(of)} patches", loc="left", pad=3, fontsize=8)
    return figure


def classes_figure(sets: Mapping[str, PatchSet], rows: int = 8, columns: int = 5) -> Figure:
    """Classes of patches: each row the patches of one 3D point, with the point's id before it.

    Points are evenly spaced through the set, so none is picked for its looks. Where a point has more
    patches than `columns`, the row ends with how many are not shown.

    Args:
        sets: patch sets by name, a block each.
        rows: points of a set.
        columns: patches of a point.
    """
    width = DOUBLE_WIDTH if len(sets) > 1 else COLUMN_WIDTH
    cell = (width / len(sets) - 0.4) / columns
    with panels(width, 0.3 + cell * rows, len(sets)) as (figure, [blocks]):
        for axes, (name, patch_set) in zip(blocks, sets.items(), strict=True):
            points, counts = np.unique(patch_set.point_ids, return_counts=True)
            chosen = evenly(range(len(points)), rows)
            side = patch_set.patches.shape[1]
            shown = np.full((len(chosen), columns, side, side), 255, np.uint8)
            for row, place in zip(shown, chosen, strict=True):
                of_point = np.flatnonzero(patch_set.point_ids == points[place])[:columns]
                row[: len(of_point)] = patch_set.patches[of_point]
            lefts = mosaic(axes, shown, points[chosen])
            for middle, place in zip(axes.get_yticks(), chosen, strict=True):
                if counts[place] > columns:
                    end = (lefts[-1] + side + GAP, middle)
                    axes.annotate(f"+{counts[place] - columns}", end, va="center", size=7, color=GREY)
            axes.set_title(name, loc="left", pad=4)
    return figure


def _draw_in_space(axes: Axes, site: Site, textures: Sequence[np.ndarray]) -> None:
    unit = _unit(site)
    planes = [piece.plane for piece in site.pieces]
    pyramids = [np.vstack([c.centre, _corners(c, CAMERA_LENGTH * unit)]) for c in site.cameras]
    viewer = _viewer(np.vstack([*map(_outline, planes), *pyramids]), unit)
    image = render_view(Site(site.pieces, (viewer,), (AS_IT_IS,)), textures, 0)
    pixels = np.argwhere(np.ones_like(image))[:, ::-1].astype(float)
    seen = nearest_plane(planes, viewer, pixels).reshape(image.shape)
    show(axes, np.where(seen >= 0, image, 255))
    for number, piece in enumerate(site.pieces):
        # Outlined by what is seen of it, so that hidden edges stay hidden.
        colour = PALETTE[piece.photograph % len(PALETTE)]
        axes.contour(seen == number, levels=[0.5], colors=[colour], linewidths=0.8)
    middle = np.array([[0, 0, unit]])
    for number, pyramid in enumerate(pyramids):
        places = _pixels(viewer, np.vstack([pyramid, middle]))
        axes.plot(*places[[0, -1]].T, **AIM)
        axes.plot(*places[EDGES].T, color="black" if number == 0 else GREY, lw=0.8)
        at = {"textcoords": "offset points", "va": "center", "size": 7}
        axes.annotate(str(number), places[0], (3, 0), **at)
    axes.set_anchor("N")
    axes.set_title("planes and cameras in space", loc="left", fontsize=8)


def _draw_from_above(axes: Axes, site: Site, names: Mapping[int, str]) -> None:
    unit, unnamed = _unit(site), dict(names)
    for piece in site.pieces:
        colour = PALETTE[piece.photograph % len(PALETTE)]
        x_and_z = _outline(piece.plane)[:, [0, 2]].T / unit
        # Of a photograph's pieces the first one names it in the legend.
        name = unnamed.pop(piece.photograph, "_")
        axes.fill(*x_and_z, fc=colour + "40", ec=colour, lw=0.7, label=name)
    for number, camera in enumerate(site.cameras):
        corners = _corners(camera, CAMERA_LENGTH * unit)
        left, right = corners[[0, 3]].mean(axis=0), corners[[1, 2]].mean(axis=0)
        triangle = np.array([camera.centre, left, right])[:, [0, 2]] / unit
        axes.plot(*zip(triangle[0], (0, 1), strict=True), **AIM)
        axes.fill(*triangle.T, fc="white", ec="black" if number == 0 else GREY, lw=0.8)
        under = {"textcoords": "offset points", "ha": "center", "va": "top", "size": 7}
        axes.annotate(str(number), triangle[0], (0, -3), **under)
    axes.set_aspect("equal")
    axes.margins(0.06, 0.08)
    axes.set(xlabel="x (distances of camera 0)", ylabel="z (distances of camera 0)")
    axes.set_title("from above", loc="left", fontsize=8)


def _viewer(points: np.ndarray, unit: float) -> Camera:
    """A camera aside and above that has all points (N, 3) in its image, which is just large enough."""
    yaw, pitch = VIEWER_ANGLES
    middle, wide = points.mean(axis=0), np.eye(3)
    viewer = orbiting_camera(middle, VIEWER_DISTANCE * unit, yaw, pitch, 0, wide, (1, 1))
    low, high = np.sort(_pixels(viewer, points), axis=0)[[0, -1]]
    focal = VIEWER_WIDTH / (1.08 * (high - low)[0])
    width, height = np.ceil(1.08 * focal * (high - low)).astype(int).tolist()
    x, y = np.array([width, height]) / 2 - focal * (low + high) / 2
    intrinsics = np.array([[focal, 0, x], [0, focal, y], [0, 0, 1]])
    return replace(viewer, intrinsics=intrinsics, width=width, height=height)


def _unit(site: Site) -> float:
    """Distance of the reference camera from the site's middle, which lies on its axis."""
    # Cameras orbit around that middle, which is as far from the origin as the focal length is long.
    return float(site.cameras[0].intrinsics[0, 0])


def _outline(plane: Plane) -> np.ndarray:
    """(4, 3) corners."""
    u, v = (plane.width - 1) * plane.u_axis, (plane.height - 1) * plane.v_axis
    return plane.origin + np.array([0 * u, u, u + v, v])


def _corners(camera: Camera, depth: float) -> np.ndarray:
    """(4, 3) where the rays of the image's corners are at a depth, clockwise from the upper left."""
    w, h = camera.width - 1, camera.height - 1
    rays = np.linalg.solve(camera.intrinsics, np.array([[0, w, w, 0], [0, 0, h, h], [1, 1, 1, 1]]))
    return (depth * rays).T @ camera.rotation + camera.centre


def _pixels(camera: Camera, points: np.ndarray) -> np.ndarray:
    """(N, 2) where points in space are seen."""
    seen = (points @ camera.rotation.T + camera.translation) @ camera.intrinsics.T
    return seen[:, :2] / seen[:, 2:]

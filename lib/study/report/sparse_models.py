"""Sparse models of one folder of images by several descriptors, side by side: table and figures."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import PIL.Image  # noqa: F401 (before pycolmap, as in lib.matching)
import pycolmap
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.data.images import read_grey, reduced
from lib.matching.folder import DATABASE
from lib.study.report.data.pictures import ON_GREY, beside, show
from lib.study.report.style import DOUBLE_WIDTH, GREY, PALETTE, panels

# Of the points, what lies farther out is not drawn.
DRAWN = 0.98
# Of an image that is drawn, px, and lines between two of them.
SIDE, LINES = 360, 80

Models = Mapping[str, pycolmap.Reconstruction | None]


def table(outs: Mapping[str, Path], models: Models) -> pd.DataFrame:
    """What each descriptor led to.

    Args:
        outs: by descriptor, the folder that `lib.matching.folder.describe_and_match` made.
        models: by descriptor, what `lib.matching.colmap.reconstruct` made of it.

    Returns:
        Index `Descriptor`. Columns `keypoints` an image, `matches` a pair before they are verified,
        `inliers` of them in percent by two-view geometry, `images` in the model, `points`,
        `observations` an image, `track length`, `error` of reprojection in px; NaN without a model.
    """
    rows = {}
    for name, model in models.items():
        with pycolmap.Database.open(outs[name] / DATABASE) as database:
            images, matches = database.num_images(), database.num_matches()
            rows[name] = {
                "keypoints": database.num_keypoints() / images,
                "matches": matches / (images * (images - 1) / 2),
                "inliers": 100 * database.num_inlier_matches() / max(matches, 1),
                "images": f"{model.num_reg_images() if model else 0} of {images}",
            }
        if model:
            rows[name] |= {
                "points": float(model.num_points3D()),
                "observations": model.compute_mean_observations_per_reg_image(),
                "track length": model.compute_mean_track_length(),
                "error": model.compute_mean_reprojection_error(),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("Descriptor")


def verified(out: Path) -> dict[tuple[str, str], np.ndarray]:
    """By pair of images, (M, 4) x and y in either of its verified matches, px, centres at 0.5."""
    found = {}
    with pycolmap.Database.open(out / DATABASE) as database:
        images = sorted(database.read_all_images(), key=lambda image: image.name)
        places = {of.image_id: database.read_keypoints(of.image_id)[:, :2] for of in images}
        for place, first in enumerate(images):
            for second in images[place + 1 :]:
                ids = first.image_id, second.image_id
                inliers = database.read_two_view_geometry(*ids).inlier_matches
                both = [places[of][inliers[:, side]] for side, of in enumerate(ids)]
                found[first.name, second.name] = np.concatenate(both, axis=1)
    return found


def typical_pair(out: Path) -> tuple[str, str]:
    """The pair of images with the median number of verified matches, of those that have any.

    Raises:
        ValueError: none has.
    """
    counts = {pair: len(of) for pair, of in verified(out).items() if len(of)}
    if not counts:
        raise ValueError(f"{out}: no pair of images has verified matches; take images that overlap more")
    return sorted(counts, key=lambda pair: (counts[pair], pair))[len(counts) // 2]


def matches_figure(images: Path, outs: Mapping[str, Path], pair: tuple[str, str]) -> Figure:
    """A pair of images with its verified matches, a row a descriptor; of many, every so many-th line."""
    # As COLMAP's places are, whatever a camera says of turning them.
    greys = [read_grey(images / name, orientation="stored") for name in pair]
    small = [reduced(grey, SIDE) for grey in greys]
    scales = [new.shape[1] / old.shape[1] for new, old in zip(small, greys, strict=True)]
    high, left = max(of.shape[0] for of in small), small[0].shape[1]
    canvas = np.full((high, left + small[1].shape[1]), 255, np.uint8)
    for grey, start in zip(small, (0, left), strict=True):
        canvas[: grey.shape[0], start : start + grey.shape[1]] = grey
    height = len(outs) * (DOUBLE_WIDTH * high / canvas.shape[1] + 0.25)
    with panels(DOUBLE_WIDTH, height, rows=len(outs)) as (figure, grid):
        for (axes,), (name, out) in zip(grid, outs.items(), strict=True):
            found = verified(out).get(pair, np.empty((0, 4)))
            lines = found[:: max(1, len(found) // LINES)] * np.repeat(scales, 2) + [0, 0, left, 0]
            show(axes, canvas)
            axes.plot(lines[:, ::2].T, lines[:, 1::2].T, color=ON_GREY[0], lw=0.5)
            beside(axes, f"{name}: {len(found)} verified matches", (0, 1), (0, 3), weight="bold")
    return figure


def models_figure(models: Models) -> Figure:
    """Points and cameras from above, a panel a descriptor, in units of the cameras' mean distance from
    their middle; up is where they look to."""
    look = {"xlabel": "to the right", "legend": 2, "sharex": True, "sharey": True}
    with panels(DOUBLE_WIDTH, 3.6, len(models), **look) as (figure, [row]):
        for axes, (name, model) in zip(row, models.items(), strict=True):
            axes.set_title(name if model else f"{name}: no model")
            axes.set_aspect("equal")
            if model:
                _draw(axes, model)
        row[0].set_ylabel("away from the cameras")
    return figure


def _draw(axes: Axes, model: pycolmap.Reconstruction) -> None:
    images = [model.image(number) for number in model.reg_image_ids()]
    turns = np.array([image.cam_from_world().rotation.matrix() for image in images])
    centres = np.array([image.projection_center() for image in images])
    points = np.array([point.xyz for point in model.points3D.values()])
    # The cameras' mean x and z axes, made orthogonal.
    right, ahead = turns.mean(axis=0)[[0, 2]]
    right -= ahead * (right @ ahead) / (ahead @ ahead)
    onto = np.stack([of / np.linalg.norm(of) for of in (right, ahead)], axis=1)
    middle = centres.mean(axis=0)
    unit = np.linalg.norm(centres - middle, axis=1).mean()
    seen, stand = ((of - middle) @ onto / unit for of in (points, centres))
    far = np.linalg.norm(seen - np.median(seen, axis=0), axis=1)
    axes.plot(*seen[far <= np.quantile(far, DRAWN)].T, ".", ms=1.2, color=GREY, label="points")
    axes.quiver(*stand.T, *(turns[:, 2] @ onto).T, color=PALETTE[1], width=0.006, scale=12)
    axes.plot(*stand.T, "o", ms=3, color=PALETTE[1], label="cameras and where they look")

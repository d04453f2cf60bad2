"""What notebooks on data show in numbers: what sets hold, how hard they are, and what is where."""

import json
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pandas as pd

from lib.data.hpatches.building import REPORT, Plan
from lib.data.hpatches.release import FILES
from lib.data.synthetic.geometry import Camera
from lib.data.synthetic.scenes import Piece
from lib.study.open import Record
from lib.study.report import frames
from lib.study.report.phototour import roles_of

DETECTORS = {"hessian": "Hessian", "harris": "Harris", "dog": "DoG"}
_COUNTS = ["patches", "points", "matching_pairs", "non_matching_pairs"]


def counts_table(run: Record) -> pd.DataFrame:
    """What each set holds, a row a set: counts, and shares of points by number of patches in percent.

    Args:
        run: with the measure `set_statistics`.
    """
    numbers = frames.tidy([run], "set_statistics")
    numbers = numbers.pivot(index="test_set", columns="metric", values="value").rename_axis("Set")
    counts = numbers[_COUNTS].astype(int)
    counts.columns = counts.columns.str.removesuffix("_pairs").str.replace("_", "-")
    shares = {f"share_of_{n}": f"{n} (%)" for n in (2, 3, 4, 5, "more")}
    shares = (100 * numbers[list(shares)]).rename(columns=shares)
    return counts.assign(**{"patches a point": counts["patches"] / counts["points"]}).join(shares)


def difficulty_table(runs: Sequence[Record], sets: Sequence[str], printed: pd.DataFrame) -> pd.DataFrame:
    """FPR95 in percent, a row a set and one of the mean: the papers' SIFT and ours.

    Args:
        runs: of descriptors, a column each.
        sets: the data source's three sets, in the order of their roles.
        printed: the papers' values of SIFT, as `lib.study.printed` reads them.
    """
    ours = frames.fpr95(runs).pivot(index="test_set", columns="label", values="value")
    roles, papers = roles_of(sets), printed.set_index("test")["value"]
    table = ours.loc[list(sets), [run.job.label for run in runs]].rename_axis("Set")
    table.columns.name = None
    table.insert(0, "SIFT, papers", [papers[role] for role in roles.values()])
    table.loc["mean"] = table.mean()
    table.insert(0, "beside", [*roles.values(), ""])
    return table


def filled_bins_table(runs: Sequence[Record]) -> pd.DataFrame:
    """What one threshold for all pairs costs, a row a descriptor.

    Args:
        runs: with the probe `filled_bins` on the sets that they have FPR95 on.

    Returns:
        FPR95 in percent on each set and its mean; the same mean if pairs have a threshold by their
        filled bins, "own thresholds"; the correlation of distance and filled bins over non-matching
        pairs, "r", the mean over sets.
    """
    rows = {}
    for run in runs:
        by_set = run.fpr95s()
        probes = [run.probe("filled_bins", name) for name in by_set]
        rows[run.job.label] = {
            **by_set,
            "mean": np.mean(list(by_set.values())),
            "own thresholds": np.mean([probe["own_thresholds"] for probe in probes]),
            "r": np.mean([probe["correlation"] for probe in probes]),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("FPR95 (%)")


def build_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What a build of HPatches' patches kept of each sequence, and what it left out.

    Args:
        folder: has the ``build.json``.

    Returns:
        A row a sequence, and last of the first one of what was intended: `patches`, those by detector,
        and the median overlap of jittered and detected regions at each level. And: detections by
        detector; left out since they overlap another one, leave an image, have no contrast, or were
        beyond the limit; and the patches that remain.
    """
    report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    table = pd.json_normalize(report["sequences"]).set_index("name").rename_axis("Sequence")
    heads = {"thinned": "overlapping", "beyond_limit": "beyond limit", **DETECTORS}
    parts = table.rename(columns=lambda name: name.split(".")[-1]).rename(columns=heads)
    detected, kept, overlap = (
        parts.loc[:, table.columns.str.startswith(f"{part}.")]
        for part in ("detected", "patches", "median_overlap")
    )
    kept.insert(0, "patches", kept.sum(axis=1))
    overlap.loc["intended"] = report["intended_overlap"]
    left_out = parts[["overlapping", "outside", "faint", "beyond limit"]]
    overlaps = kept.astype("Int64").reindex(overlap.index).join(overlap)
    return overlaps, detected.join([left_out, kept["patches"]])


def regions_apart(plan: Plan, shape: tuple[int, int], reach: float, most: int) -> list[int]:
    """A plan's regions, the largest first, whose surroundings are in the image (H, W) and disjoint;
    these are squares of `reach` radii to each side."""
    position = plan.frames.position
    reach = reach * np.linalg.norm(plan.regions(FILES[0])[:, :, 0], axis=1)
    border = np.minimum(position, np.array(shape[::-1]) - 1 - position).min(axis=1)
    chosen: list[int] = []
    for index in np.argsort(-reach, kind="stable"):
        away = np.abs(position[chosen] - position[index]).max(axis=1)
        if border[index] >= reach[index] and (away >= reach[chosen] + reach[index]).all():
            chosen.append(int(index))
    return chosen[:most]


def textured(
    piece: Piece, photographs: Sequence[np.ndarray], cells: int
) -> tuple[np.ndarray, np.ndarray]:
    """(3, cells + 1, cells + 1) the corners of a piece's cells in space, and (cells, cells) the grey
    values that they show."""
    plane = piece.plane
    u, v = (np.linspace(0, side - 1, cells + 1) for side in (plane.width, plane.height))
    origin, u_axis, v_axis = (of[:, None, None] for of in (plane.origin, plane.u_axis, plane.v_axis))
    part = photographs[piece.photograph][piece.top :, piece.left :][: plane.height, : plane.width]
    grey = cv2.resize(part, (cells, cells), interpolation=cv2.INTER_AREA)
    return origin + u_axis * u + v_axis * v[:, None], grey


def camera_corners(camera: Camera, depth: float) -> np.ndarray:
    """(4, 3) where the rays of the image's corners are at a depth, clockwise from the upper left."""
    w, h = camera.width - 1, camera.height - 1
    rays = np.linalg.solve(camera.intrinsics, np.array([[0, w, w, 0], [0, 0, h, h], [1, 1, 1, 1]]))
    return (depth * rays).T @ camera.rotation + camera.centre

"""Which triplets each loss of the papers weights: tables and figures of `lib.theory.loss_shapes`.

`numbers` and `arrays` are what the computation returns (`Found.numbers`, `Found.arrays`).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from lib.study.report.style import DOUBLE_WIDTH, PALETTE, panels

# Pull or push over the mean pull of the state's triplets; what is even there lies within a level.
LEVELS = (0, 0.1, 0.3, 0.6, 0.9, 1.2, 1.8, 2.5, 4, 6, 9)
SIDES = {"pull": "pull on d$_{pos}$", "push": "push on d$_{neg}$"}


def table(numbers: Mapping[str, object]) -> pd.DataFrame:
    """What each loss does with the triplets of the state, a row a loss.

    Returns:
        `push / pull`, of their means; under `of the triplets (%)` the share that gets neither (`none`)
        and the share of the whole pull that the hardest quarter gets; under `r of the pull` Pearson's
        correlation with the two distances, missing where the pull is the same for all.
    """
    rows = pd.DataFrame(numbers["cases"]).set_index("label")
    columns = {
        ("", "push / pull"): rows["push"] / rows["pull"],
        ("of the triplets (%)", "none"): 100 * rows["none"],
        ("pull (%)", "hardest quarter"): 100 * rows["hardest"],
        ("r of the pull", "with d_pos"): rows["by_positive"].astype(float),
        ("r of the pull", "with d_neg"): rows["by_negative"].astype(float),
    }
    return pd.DataFrame(columns).rename_axis("loss")


def figure(numbers: Mapping[str, object], arrays: Mapping[str, np.ndarray], note: str = "") -> Figure:
    """Maps of the pull on d_pos and of the push on d_neg, two beside each other for each loss.

    All have one scale: over the mean pull of the state's triplets, which are drawn as dots, so that what
    a learning rate makes up for does not show. The line is the decision boundary.

    Args:
        numbers, arrays: of the computation.
        note: stands above.
    """
    cases, colours, along = numbers["cases"], colormaps["viridis"], arrays["distance"]
    rows = -(-len(cases) // 2)
    shared = {"xlabel": "d$_{pos}$", "ylabel": "d$_{neg}$", "sharex": True, "sharey": True}
    with panels(DOUBLE_WIDTH, 0.9 + 1.5 * rows, 4, rows, note=note, **shared) as (drawn, grid):
        norm = BoundaryNorm(LEVELS, colours.N, extend="max")
        pairs = grid.reshape(rows * 2, 2)
        for pair, case in zip(pairs, cases, strict=False):
            name = case["label"].replace("d_pos", "d$_{pos}$")
            for axes, (side, words) in zip(pair, SIDES.items(), strict=True):
                relative = arrays[f"{side}_{case['key']}"] / case["pull"]
                looks = {"shading": "nearest", "rasterized": True, "cmap": colours, "norm": norm}
                mesh = axes.pcolormesh(along, along, relative, **looks)
                state = arrays["positive"][::4], arrays["negative"][::4]
                axes.plot(*state, ".", color="white", ms=1.6, mew=0, alpha=0.9)
                axes.plot([0, 2], [0, 2], color=PALETTE[1], lw=1)
                axes.set(xlim=(0, 2), ylim=(0, 2), aspect="equal", xticks=(0, 1, 2), yticks=(0, 1, 2))
                # The name stands in the first line, across both.
                axes.set_title(f"{name if side == 'pull' else ''}\n{words}", fontsize=7.5)
        for axes in pairs[len(cases) :].flat:
            axes.set_axis_off()
        bar = drawn.colorbar(mesh, ax=grid, shrink=0.6, pad=0.01, ticks=LEVELS, format="{x:g}")
        bar.set_label("over the mean pull of the triplets drawn as dots")
    return drawn

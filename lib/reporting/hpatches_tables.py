"""Tables of HPatches (Balntas et al., CVPR 2017): AdaSample's Figure 2 in numbers, and its Table 2.

Numbers are those of `lib.evaluation.hpatches`, in percent. Papers' tables differ in the protocol, above
all in that of retrieval, so every head names it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

from lib.experiments.adasample import LAMBDAS, TRIPLET_LOSSES
from lib.experiments.adasample import lambda_name as lambda_recipe

if TYPE_CHECKING:
    from lib.study.open import Found

# As in lib.data.hpatches.release, which needs OpenCV.
LEVELS = ("easy", "hard", "tough")
TASKS = ("verification", "matching", "retrieval")
# By the key of a number, what it is. Imbalanced verification has 0.2 positives to a negative.
PROTOCOLS = {
    "verification": "verification: AP, 1 to 5",
    "matching": "matching: mAP",
    "retrieval": "retrieval: mAP, whole pool",
    "retrieval.pools": "retrieval: mAP, pool sizes",
}
ABOUT = ["key", "label", "train_set", "seed"]
METHOD = "Method (in %)"
# λ = 0 is ours alone.
PAPER_LAMBDAS = LAMBDAS[1:]
PAPER_BEST = 10.0


def numbers(found: Sequence[Found], test_set: str, hp_train: str | None = None) -> pd.DataFrame:
    """All numbers of runs on one set of HPatches patches.

    Args:
        found: records with the measure `hpatches`.
        test_set: the set they were measured on.
        hp_train: a set of HPatches patches; a method trained on it is a method of its own, with "_hp"
            behind its key and "-HP" behind its label.

    Returns:
        One row a run, in the records' order: `key`, `label`, `train_set`, `seed` (missing where there
        is none), then every number under its key in percent, NaN where a run does not have it.

    Raises:
        ValueError: no records, one without the numbers, or two of one method and seed.
    """
    rows = []
    for record in found:
        job = record.job
        metrics = record.content["metrics"].get(test_set, {})
        if "hpatches" not in metrics:
            raise ValueError(f"{job.title}: no HPatches numbers on {test_set}; measure it there")
        on_hpatches = hp_train is not None and job.train_set == hp_train
        rows.append(
            {
                "key": job.name + ("_hp" if on_hpatches else ""),
                "label": job.label + ("-HP" if on_hpatches else ""),
                "train_set": job.train_set,
                "seed": job.seed,
                **metrics["hpatches"],
            }
        )
    if not rows:
        raise ValueError("no records to lay out")
    frame = pd.DataFrame(rows).astype({"seed": "Int64"})
    twice = frame[frame.duplicated(["key", "seed"])]
    if len(twice):
        raise ValueError(f"two records of {twice['key'].iloc[0]}, seed {twice['seed'].iloc[0]}")
    return frame


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds: index `key` in the order given, `label`, then every number in percent.

    Args:
        frame: of `numbers`.
    """
    groups = frame.groupby("key", sort=False)
    return pd.concat([groups["label"].first(), groups[_keys(frame)].mean()], axis=1)


def deviations(frame: pd.DataFrame) -> pd.DataFrame:
    """Standard deviations over seeds (n − 1), NaN where a method has one run; index `key`.

    Args:
        frame: of `numbers`.
    """
    return frame.groupby("key", sort=False)[_keys(frame)].std(ddof=1)


def by_task(frame: pd.DataFrame) -> pd.DataFrame:
    """The three tasks, a row a method.

    Args:
        frame: of `numbers`.

    Returns:
        Index the methods' labels in the order given. Columns (protocol, `mean`) in percent and, where
        a method has several seeds, (protocol, `sd`) over them; (``, `n`) is the number of runs.
    """
    mean, deviation = means(frame), deviations(frame)
    count = frame.groupby("key", sort=False).size()
    columns = {}
    for key, protocol in PROTOCOLS.items():
        columns[(protocol, "mean")] = mean[key]
        if count.max() > 1:
            columns[(protocol, "sd")] = deviation[key]
    columns[("", "n")] = count
    return pd.DataFrame(columns).set_axis(pd.Index(mean["label"], name=METHOD), axis=0)


def by_level(frame: pd.DataFrame) -> pd.DataFrame:
    """One method's numbers, level by level: what each task's number is the mean of.

    Args:
        frame: of `numbers`, of one method.

    Returns:
        Index `level`; columns a task's part, e.g. "verification inter", in percent, means over seeds; a
        kind of sequences that there is none of is left out.

    Raises:
        ValueError: there are several methods.
    """
    mean = means(frame)
    if len(mean) != 1:
        raise ValueError(f"one method expected, got {', '.join(mean.index)}")
    parts = {
        "verification inter": "verification.{}.inter.ap",
        "verification intra": "verification.{}.intra.ap",
        "matching viewpoint": "matching.{}.viewpoint",
        "matching illumination": "matching.{}.illumination",
        "retrieval whole pool": "retrieval.{}.all",
        "retrieval pool of 100": "retrieval.{}.100",
    }
    there = {name: key for name, key in parts.items() if key.format(LEVELS[0]) in mean}
    values = {name: [mean[key.format(level)].iloc[0] for level in LEVELS] for name, key in there.items()}
    return pd.DataFrame(values, index=pd.Index(LEVELS, name="level"))


def printed_levels(**tables: tuple[str, pd.DataFrame]) -> pd.DataFrame:
    """What papers print for the three tasks, to see on what level each paper's numbers lie.

    Args:
        tables: by the name of the row, a method's key and the printed table it stands in.

    Returns:
        Index `printed`; a column a task, mAP in percent, and the pool that retrieval is over, where
        the paper states it.

    Raises:
        ValueError: a table has no such method, or not all tasks of it.
    """
    rows = {}
    for name, (key, table) in tables.items():
        of = table[(table["key"] == key) & (table["statistic"] == "map")].set_index("task")["value"]
        if not set(TASKS) <= set(of.index):
            raise ValueError(f"{name}: no three tasks printed of {key!r}")
        stated = set(table.get("protocol", pd.Series(dtype=str))) - {""}
        rows[name] = {**of[list(TASKS)], "retrieval over": ", ".join(stated) or "not stated"}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("printed")


def sequence_intervals(
    frame: pd.DataFrame,
    task: str,
    *,
    against: str | None = None,
    confidence: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """How far a mean over sequences carries to other sequences: percentile bootstrap intervals.

    What is shown is drawn, not sequences, since v_NAME and i_NAME may show one thing, and so may
    NAME_left and NAME_right; a drawn thing brings all of its sequences. A value is the mean over
    levels and seeds, so the interval leaves out the spread over seeds. All methods share the draws. Of
    a handful of things the interval is wide, and still narrower than it should be.

    Args:
        frame: of `numbers`.
        task: "matching", or "retrieval" (over the whole pool); verification has no sequences' numbers.
        against: a method's key: then what a method is better than it by, sequence by sequence.
            Sequences are shared, so such a difference is far surer than either mean.
        confidence: of the two-sided intervals, in (0, 1).
        resamples: number of bootstrap samples.
        seed: of the bootstrap.

    Returns:
        Index the methods' labels; columns `mean` in percent (or points), `from`, `to` (NaN for fewer
        than two things), `sequences`, `things`. The mean weighs all sequences equally, so it
        is not the task's number where there are more of one kind, or more queries of some.

    Raises:
        ValueError: the task has no sequences' numbers, or there is no such method.
    """
    mean = means(frame)
    values = pd.DataFrame(
        {name: mean[[f"{task}.{level}.{name}" for level in LEVELS]].mean(axis=1, skipna=False)
         for name in _sequences(frame, task)}
    )  # fmt: skip
    if against is not None:
        if against not in values.index:
            raise ValueError(f"no method {against!r}; there are: {', '.join(values.index)}")
        values = values - values.loc[against]
    rows = []
    for _, of_method in values.iterrows():
        known = of_method.dropna()
        things = known.groupby(known.index.str.replace(r"^[vi]_|_(left|right)$", "", regex=True))
        sums, counts = things.sum().to_numpy(), things.size().to_numpy()
        low = high = np.nan
        if len(sums) > 1:
            interval = stats.bootstrap(
                (sums, counts),
                _ratio,
                paired=True,
                vectorized=True,
                n_resamples=resamples,
                confidence_level=confidence,
                method="percentile",
                rng=np.random.default_rng(seed),
            ).confidence_interval
            low, high = interval
        rows.append((known.mean(), low, high, len(known), len(sums)))
    label = METHOD if against is None else f"Method (points above {mean.loc[against, 'label']})"
    columns = ["mean", "from", "to", "sequences", "things"]
    return pd.DataFrame(rows, index=pd.Index(mean["label"], name=label), columns=columns)


def lambda_name(lam: float) -> str:
    """How a λ is shown, e.g. "5" or "∞"."""
    return "∞" if math.isinf(lam) else f"{lam:g}"


def lambda_head(task: str, loss: str) -> str:
    """The head of a task and a loss in the table of `by_lambda`, e.g. "matching AHT"."""
    return f"{task} {loss}"


def printed_key(lam: float, loss: str) -> str:
    """The key of a λ and a loss in the printed table and in claims.csv, e.g. "lambda_10_aht".

    That of our run is `lib.experiments.adasample.lambda_name`, which differs at λ = 10.
    """
    return f"lambda_{lam:g}_{loss.lower()}"


def by_lambda(frame: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """Table 2, the paper's values and ours side by side.

    Args:
        frame: of `numbers`; runs that are none of the table's are left out.
        printed: `lib.reporting.printed.printed("adasample", "table2")`.

    Returns:
        Index `λ` as text, 0 to ∞; the paper has no 0. Columns (`lambda_head`, `paper` or `ours`) in
        percent, retrieval of ours over the whole pool, and `sd` over seeds where there are several.

    Raises:
        ValueError: no run of the table is among those given.
    """
    mean, deviation = means(frame), deviations(frame)
    recipes = {loss: [lambda_recipe(lam, loss) for lam in LAMBDAS] for loss in TRIPLET_LOSSES}
    ours = frame[frame["key"].isin([key for keys in recipes.values() for key in keys])]
    if ours.empty:
        raise ValueError(f"no run of AdaSample's Table 2 among {', '.join(mean.index)}")
    paper = _printed_grid(printed)
    columns = {}
    for task in TASKS:
        for loss, keys in recipes.items():
            head = lambda_head(task, loss)
            columns[(head, "paper")] = paper[head].reindex(LAMBDAS).to_numpy()
            columns[(head, "ours")] = mean[task].reindex(keys).to_numpy()
            if ours["key"].duplicated().any():
                columns[(head, "sd")] = deviation[task].reindex(keys).to_numpy()
    return pd.DataFrame(columns, index=pd.Index(map(lambda_name, LAMBDAS), name="λ"))


def best_lambda(table: pd.DataFrame) -> pd.DataFrame:
    """Where the highest mAP lies, and how far the next is from it.

    Args:
        table: of `by_lambda`.

    Returns:
        Index `mAP of` (`lambda_head`); columns (`paper` or `ours`, `best λ`), several where they share
        the top and nothing where no value is known, and (…, `gap`) to the second in points, 0 where the
        top is shared. Ours may be at λ = 0, which the paper does not have.
    """
    columns: dict[tuple[str, str], list] = {}
    heads = list(dict.fromkeys(head for head, _ in table.columns))
    for whose in ("paper", "ours"):
        found = [_top(table[head, whose].dropna()) for head in heads]
        columns[(whose, "best λ")] = [best for best, _ in found]
        columns[(whose, "gap")] = [gap for _, gap in found]
    return pd.DataFrame(columns, index=pd.Index(heads, name="mAP of"))


def printed_lambda_check(printed: pd.DataFrame) -> pd.DataFrame:
    """Count in the paper's own table what its two sentences on it say (Sec. 5.4).

    Args:
        printed: as in `by_lambda`.

    Returns:
        Index `Sec. 5.4`: what is counted; columns `cells`, `yes`, `tied`, `no`, and `most`: whether
        more than half of the cells are a yes.
    """
    grid = _printed_grid(printed)
    rest, best = grid.drop(index=PAPER_BEST), grid.loc[PAPER_BEST]
    above_rest = {
        loss: [best[lambda_head(t, loss)] - rest[lambda_head(t, loss)].max() for t in TASKS]
        for loss in TRIPLET_LOSSES
    }
    above_ht = {
        task: (grid[lambda_head(task, "AHT")] - grid[lambda_head(task, "HT")]).tolist() for task in TASKS
    }
    counted = {
        f"λ = {PAPER_BEST:g} is best": [gap for gaps in above_rest.values() for gap in gaps],
        **{f"… with {loss}": gaps for loss, gaps in above_rest.items()},
        "AHT is above HT": [gap for gaps in above_ht.values() for gap in gaps],
        **{f"… in {task}": gaps for task, gaps in above_ht.items()},
    }
    rows = []
    for gaps in counted.values():
        signs = np.sign(gaps)
        yes, tied, no = (int((signs == sign).sum()) for sign in (1, 0, -1))
        rows.append((len(gaps), yes, tied, no, yes > len(gaps) / 2))
    index = pd.Index(counted, name="Sec. 5.4")
    return pd.DataFrame(rows, index=index, columns=["cells", "yes", "tied", "no", "most"])


def values_of_methods(frame: pd.DataFrame, tasks: Sequence[str] = TASKS) -> dict[str, np.ndarray]:
    """Each method's tasks as `lib.reporting.claims.verdict` takes them.

    Args:
        frame: of `numbers`.
        tasks: the cells; of a claim on Figure 2 the one of `claim_task`.

    Returns:
        By key (seeds, tasks) in percent, seeds ascending, or (tasks,) for a method without seeds.

    Raises:
        ValueError: methods differ in their seeds.
    """
    values, seeds = {}, {}
    for key, of in frame.sort_values("seed", kind="stable").groupby("key", sort=False):
        array = of[list(tasks)].to_numpy(dtype=np.float64)
        if of["seed"].isna().all():
            values[key] = array[0]
            continue
        values[key] = array
        seeds[key] = tuple(of["seed"])
    if len(set(seeds.values())) > 1:
        listed = "; ".join(f"{key} {list(map(int, of))}" for key, of in seeds.items())
        raise ValueError(f"methods differ in their seeds: {listed}")
    return values


def claim_task(claim_id: str) -> str:
    """The task that a claim on Figure 2 is about, e.g. of "adasample-f2-matching".

    Raises:
        ValueError: it names none.
    """
    task = claim_id.rpartition("-")[2]
    if task not in TASKS:
        raise ValueError(f"claim {claim_id} names no task; its last word is to be one of {TASKS}")
    return task


def lambda_values(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """The values of the claims on Table 2, under its keys.

    Args:
        frame: of `numbers`.

    Returns:
        By `printed_key` (seeds, 3 tasks) of every λ there are runs of, λ = 0 too; by "aht" and "ht"
        (seeds, 18), the paper's λ by task, where there are runs of all of them.

    Raises:
        ValueError: methods differ in their seeds.
    """
    recipes = {(lam, loss): lambda_recipe(lam, loss) for loss in TRIPLET_LOSSES for lam in LAMBDAS}
    ours = values_of_methods(frame[frame["key"].isin(recipes.values())])
    found = {cell: ours[key] for cell, key in recipes.items() if key in ours}
    values = {printed_key(*cell): array for cell, array in found.items()}
    for loss in TRIPLET_LOSSES:
        cells = [(lam, loss) for lam in PAPER_LAMBDAS]
        if all(cell in found for cell in cells):
            values[loss.lower()] = np.concatenate([found[cell] for cell in cells], axis=1)
    return values


def _keys(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in ABOUT]


def _sequences(frame: pd.DataFrame, task: str) -> list[str]:
    # A sequence's name begins with its kind, which tells its key from those of kinds and pool sizes.
    pattern = re.compile(rf"{re.escape(task)}\.{LEVELS[0]}\.([vi]_.+)")
    names = [match[1] for key in _keys(frame) if (match := pattern.fullmatch(key))]
    if not names:
        raise ValueError(f"no sequences' numbers of {task!r}; give 'matching' or 'retrieval'")
    return names


def _ratio(sums: np.ndarray, counts: np.ndarray, axis: int) -> np.ndarray:
    return sums.sum(axis=axis) / counts.sum(axis=axis)


def _printed_grid(printed: pd.DataFrame) -> pd.DataFrame:
    """λ by `lambda_head`, in percent."""
    heads = [
        lambda_head(*cell) for cell in zip(printed["task"], printed["loss"].str.upper(), strict=True)
    ]
    cells = printed.assign(head=heads, lam=printed["lambda"].astype("float64"))
    return cells.pivot(index="lam", columns="head", values="value")


def _top(values: pd.Series) -> tuple[str | None, float]:
    if values.empty:
        return None, np.nan
    ranked = values.sort_values(ascending=False)
    gap = ranked.iloc[0] - ranked.iloc[1] if len(ranked) > 1 else np.nan
    return ", ".join(values.index[values == values.max()]), gap

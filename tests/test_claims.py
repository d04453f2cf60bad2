"""The claims: quoted in the papers' words, complete, answered as printed values and numbers say; and our
effects on them, against a literal computation."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import papers_text
import pytest
from scipy import stats

from lib.statistics import holm
from lib.study.claims import FLOOR, PAPERS, SIDES, effects, in_print, pairs, read
from lib.study.printed import PRINTED

ROWS = read()
SAID = ROWS[ROWS["quote"] != ""]
COMPARED = pairs(ROWS)
KINDS = ("comparison", "count", "proof", "no claim")
ANSWERS = ("true", "partly", "not so")
OVER = ("mean", "each", "most", "any", "best", "worst", "optimum", "spread", "significant", "yosemite")


# --- the rows


def test_every_row_has_a_comparison_an_answer_or_a_reason():
    assert ROWS["id"].is_unique
    assert ROWS["kind"].isin(KINDS).all()
    assert (ROWS[["section", "artefact", "sentence"]] != "").all(axis=None)
    by_kind = dict(iter(ROWS.groupby("kind")))
    for name in ("method", "measure", "direction", "over", "unit"):
        assert (by_kind["comparison"][name] != "").all()
    for kind in ("count", "proof"):
        assert by_kind[kind]["answer"].isin(ANSWERS).all()
        assert (by_kind[kind]["why"] != "").all()
    assert (by_kind["no claim"]["why"] != "").all()
    for kind in ("comparison", "no claim"):
        assert (by_kind[kind]["answer"] == "").all()
    # A value is compared with a bound, a method with another.
    values = COMPARED[COMPARED["rival"] == ""]
    assert (values["bound"] != "").all()
    assert COMPARED["direction"].isin(SIDES).all()
    assert COMPARED["over"].isin(OVER).all()


def test_rows_of_a_sentence_have_its_quote_and_no_other_rows_have():
    assert ((ROWS["quote"] == "") == (ROWS["sentence_id"] == "")).all()
    assert SAID.groupby("sentence_id")["quote"].nunique().eq(1).all()
    assert SAID.groupby(["paper", "quote"])["sentence_id"].nunique().eq(1).all()
    assert SAID["id"].str.partition("-")[0].eq(SAID["paper"]).all()


def test_reading_by_artefact_and_a_wrong_name():
    assert set(read("dsm", "Table 3")["artefact"]) == {"Table 3"}
    with pytest.raises(ValueError, match="hynet has no row on Table 9"):
        read("hynet", "Table 9")


# --- printed values, literally


def literal_cells(pair: pd.Series, key: str) -> dict[tuple[str, ...], float]:
    """A printed row's values by the other columns that tell its cells apart."""
    table, statistic, *_ = pair["provenance"].split(":")
    with (PRINTED / f"{pair['paper']}_{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["statistic"] == statistic]
    tasks = [measure.removeprefix("hpatches.") for measure in pair["measure"].split(";")]
    if any(row.get("task") in tasks for row in rows):
        rows = [row for row in rows if row["task"] in tasks]
    if pair["over"] == "yosemite":
        rows = [row for row in rows if row["test"] == "yosemite"]
    trains = {}
    for row in rows:
        if row["train"]:
            trains.setdefault(row["test"], set()).add(row["train"])
    cells = {}
    for row in rows:
        if row["key"] == key:
            # SIFT is trained on no set and stands in the columns of all.
            for train in [row["train"]] if row["train"] else trains.get(row["test"], {""}):
                cell = train, row["test"], row.get("task", ""), row.get("protocol", "")
                cells[cell] = float(row["value"])
    return cells


def literal_effect(pair: pd.Series) -> tuple[float, list[float]]:
    """The printed effect, and the differences or log ratios of the cells."""
    method, rival = (pair[name].split(" over ")[0] for name in ("printed_method", "printed_rival"))
    first, second = literal_cells(pair, method), literal_cells(pair, rival)
    if pair["provenance"].endswith("gain"):
        [gain] = first.values()
        [other] = second.values() if " over " in pair["rival"] else [0.0]
        return gain - other, [gain - other]
    shared = first.keys() & second.keys()
    if pair["over"] == "spread":
        squares = [sum(own[cell] ** 2 for cell in shared) for own in (first, second)]
        return math.sqrt(squares[0] / squares[1]), []
    if pair["unit"] == "ratio":
        apart = [math.log(first[cell] / second[cell]) for cell in shared]
        chosen = min(apart) if pair["over"] == "any" else sum(apart) / len(apart)
        return math.exp(chosen), apart
    apart = [first[cell] - second[cell] for cell in shared]
    return sum(apart) / len(apart), apart


PRINTED_PAIRS = COMPARED[COMPARED["printed_effect"].notna()]


def test_printed_effects_and_counts_are_those_of_the_printed_tables():
    assert len(PRINTED_PAIRS) > 300
    for _, pair in PRINTED_PAIRS.iterrows():
        effect, apart = literal_effect(pair)
        assert pair["printed_effect"] == pytest.approx(effect, abs=6e-5), pair["id"]
        computed, cells = in_print(pair)
        assert computed == pytest.approx(effect, abs=1e-9), pair["id"]
        assert pair["counted"] in ("", cells), pair["id"]
        if pair["counted"]:
            sign = {"lower": -1, "not higher": -1, "higher": 1, "not lower": 1}[pair["direction"]]
            least = 1e-9 if pair["direction"] in ("lower", "higher") else -1e-9
            right = sum(sign * difference > least for difference in apart)
            assert pair["counted"] == f"{right} of {len(apart)}", pair["id"]


def test_answers_follow_from_the_counts_of_printed_cells():
    counts = PRINTED_PAIRS[PRINTED_PAIRS["kind"] == "count"]
    for name, of_row in counts.groupby("id"):
        cells = [tuple(map(int, counted.split(" of "))) for counted in of_row["counted"]]
        if of_row["over"].iloc[0] == "most":
            cells = [(2 * right > of, 1) for right, of in cells]
        right, total = (sum(numbers) for numbers in zip(*cells, strict=True))
        answer = "true" if right == total else "partly" if right else "not so"
        assert of_row["answer"].iloc[0] == answer, name


# --- proofs, in numbers

DRAW = np.random.default_rng(0)


def norm(x: np.ndarray) -> np.ndarray:
    return np.linalg.norm(x, axis=-1, keepdims=True)


def slope(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """The gradient of a function of rows, by central differences."""
    steps = 1e-6 * np.eye(x.shape[-1])
    return np.stack([(function(x + step) - function(x - step)) / 2e-6 for step in steps], axis=-1)


def gradient_at_the_positive() -> list[bool]:
    """AdaSample's Eq. 24, d Euclidean, with the negative on the anchor's side and on the positive's."""
    anchor, positive, negative = DRAW.normal(size=(3, 4))
    outcomes = []
    for near in ("anchor", "positive"):

        def loss(x: np.ndarray, near: str = near) -> np.ndarray:
            side = anchor if near == "anchor" else x
            return ((x - anchor) ** 2).sum(-1) - ((side - negative) ** 2).sum(-1)

        outcomes.append(
            bool(np.isclose(np.linalg.norm(slope(loss, positive)), 2 * norm(anchor - positive)[0]))
        )
    return outcomes


def always_nearest_by_eq_14() -> list[bool]:
    """Whether Eq. 14 takes the nearest of all other patches, in all of fifty batches of four pairs."""
    nearest = []
    for _ in range(50):
        anchors, positives = DRAW.normal(size=(2, 4, 2))
        within = [norm(side[0] - side[1:])[:, 0] for side in (anchors, positives)]
        between = [
            norm(one[0] - other[1:])[:, 0] for one, other in itertools.permutations((anchors, positives))
        ]
        nearest.append(bool(np.min(within) <= np.min(between)))
    return [all(nearest)]


def least_variance(weights: np.ndarray) -> bool:
    """Whether p proportional to the weights has the least sum of squares over p, of all p of sum one."""
    p = weights / weights.sum()
    others = DRAW.dirichlet(np.ones(len(p)), size=200)
    return bool(((weights**2 / others).sum(-1) >= (weights**2 / p).sum() - 1e-12).all())


def trace_of_variance() -> list[bool]:
    """AdaSample's Eq. 16 on drawn gradients: R_t by its definition, and by the equation."""
    gradients, theta, best = DRAW.normal(size=(6, 3)), DRAW.normal(size=3), DRAW.normal(size=3)
    p, rate = DRAW.dirichlet(np.ones(6)), 0.1
    stepped = (((theta - rate * gradients - best) ** 2).sum(-1) * p).sum()
    mean = p @ gradients
    trace = (p * ((gradients - mean) ** 2).sum(-1)).sum()
    by_equation = 2 * rate * (theta - best) @ mean - rate**2 * (mean @ mean + trace)
    return [bool(np.isclose(((theta - best) ** 2).sum() - stepped, by_equation))]


def solutions_of_least_squares() -> list[bool]:
    """TCDesc: a descriptor in the span of independent neighbours has one solution, and one outside the
    span of dependent neighbours has many; the rank alone decides."""
    independent = DRAW.normal(size=(8, 3))
    dependent = independent[:, [0, 1, 1]]
    return [bool(np.linalg.matrix_rank(dependent) < 3), bool(np.linalg.matrix_rank(independent) < 3)]


def weights_of(centre: list[float], *neighbours: list[float]) -> np.ndarray:
    """TCDesc's Eq. 6."""
    return np.linalg.lstsq(np.transpose(neighbours), np.array(centre), rcond=None)[0]


def pushed_weights() -> list[bool]:
    """By Eq. 8 a weight is drawn to 0; a neighbour whose weight is 0 is far away."""
    drawn = abs(weights_of([1, 0], [1, 0.1], [1, 1])[1]) > 0
    near_and_zero = np.isclose(weights_of([1, 0], [1, 0], [1, 0.01])[1], 0)
    return [bool(drawn), not near_and_zero]


CENTRE, N = DRAW.normal(size=8), DRAW.normal(size=(8, 3))
FITTED = np.linalg.lstsq(N, CENTRE, rcond=None)[0]
LOSSES, NORMS = DRAW.uniform(0.1, 2, size=(2, 6))
UNIT = [x / norm(x) for x in DRAW.normal(size=(2, 50, 8))]
SIGNS = np.sign(DRAW.normal(size=(2, 50, 16)))
ANGLES = np.linspace(0.01, np.pi / 2, 200)
CHECKS: dict[str, Callable[[], list[bool]]] = {
    "adasample-s42-bound": lambda: [
        bool(
            np.linalg.norm(np.outer(a @ b, c), 2)
            <= np.linalg.norm(a, 2) * norm(b)[0] * norm(c)[0] + 1e-9
        )
        for a, b, c in zip(
            *(DRAW.normal(size=(20, *shape)) for shape in ((4, 5), (5,), (3,))), strict=True
        )
    ],
    "adasample-p-optimal": lambda: [least_variance(NORMS)],
    "adasample-p-eq-11": lambda: [
        least_variance(LOSSES**2 * NORMS),
        np.allclose((3 * LOSSES**2) / (LOSSES**2 * NORMS) * NORMS, 3),
    ],
    "adasample-p-eq-14": always_nearest_by_eq_14,
    "adasample-p-theorem-1": trace_of_variance,
    "adasample-p-eq-24": gradient_at_the_positive,
    # With α = 3 the estimator's mean is that of the gradients of the cubed losses, not of the losses;
    # it is the same for all probabilities.
    "adasample-p-proof": lambda: [
        bool(np.isclose((3 * LOSSES**2 * NORMS).mean(), NORMS.mean())),
        np.allclose(
            [p @ (3 * LOSSES**2 / (6 * p) * NORMS) for p in DRAW.dirichlet(np.ones(6), size=5)],
            (3 * LOSSES**2 * NORMS).mean(),
        ),
    ],
    "adasample-p-sufficient": lambda: [
        corrected < 0.05 for corrected, p in zip(holm(P_VALUES), P_VALUES, strict=True) if p < 0.05
    ],
    "dsm-p-eq-1": lambda: [
        np.allclose(norm(UNIT[0] - UNIT[1])[:, 0] ** 2, 2 - 2 * (UNIT[0] * UNIT[1]).sum(1))
    ],
    "dsm-p-eq-3": lambda: [
        np.array_equal((SIGNS[0] != SIGNS[1]).sum(1), (16 - (SIGNS[0] * SIGNS[1]).sum(1)) / 2)
    ],
    # |sin θ| and |cos(θ/2)| after a turn by π.
    "hynet-s23-period": lambda: [
        np.allclose(np.abs(np.sin(ANGLES + np.pi)), np.sin(ANGLES)),
        np.allclose(np.abs(np.cos((ANGLES + np.pi) / 2)), np.cos(ANGLES / 2)),
    ],
    "hynet-s23-rising": lambda: [bool((np.diff(np.sin(ANGLES)) > 0).all())],
    "hynet-s23-falling": lambda: [bool((np.diff(np.cos(ANGLES / 2)) < 0).all())],
    "hynet-gm-hinge-d": lambda: [bool(np.cos(np.pi / 6) < np.cos(np.pi / 12))],
    # Whether L_A and the two terms of L_B (HyNet's Eq. 9) fall as the positive comes closer.
    "hynet-p-eq-9": lambda: [
        derivative(0.4) > 0
        for derivative in (
            lambda angle: -np.sin(angle),
            lambda angle: -np.sin(angle),
            lambda angle: np.cos(angle / 2),
        )
    ],
    "tcdesc-s1-closed-form": lambda: [bool(np.allclose(N.T @ N @ FITTED, N.T @ CENTRE))],
    "tcdesc-s3-countless": solutions_of_least_squares,
    "tcdesc-s3-pushed": pushed_weights,
    "tcdesc-t3-hard-one": lambda: [math.exp(-2 / 1000) > 0.997],
}
P_VALUES = [
    float(row["value"])
    for row in csv.DictReader((PRINTED / "adasample_table3.csv").open(encoding="utf-8", newline=""))
    if row["statistic"] == "p_value"
]


@pytest.mark.parametrize("name", CHECKS)
def test_numbers_confirm_the_answers(name):
    checks = CHECKS[name]()
    outcome = "true" if all(checks) else "partly" if any(checks) else "not so"
    assert ROWS.set_index("id").loc[name, "answer"] == outcome


# --- our effects


def frame(values: dict[tuple[str, str, str, float | None, str], float]) -> pd.DataFrame:
    """Tidy runs from values by method, train set, test set, seed and measure."""
    rows = [
        {"method": method, "train": train or None, "test": test, "seed": seed, "measure": measure}
        for method, train, test, seed, measure in values
    ]
    return pd.DataFrame(rows).assign(value=list(values.values()), run="", label="", stage=np.nan)


def drawn(methods: dict[str, tuple[int, ...]], measure: str = "fpr95") -> pd.DataFrame:
    """Runs of methods with their seeds on three places, each tested on the other two."""
    places = ("a", "b", "c")
    return frame(
        {
            (method, train, test, seed, measure): DRAW.uniform(0.5, 9)
            for method, seeds in methods.items()
            for train in places
            for test in places
            if test != train
            for seed in seeds
        }
    )


def row(**columns: str) -> pd.DataFrame:
    """One comparison, as `read` returns it."""
    default = dict.fromkeys(ROWS.columns, "") | {"kind": "comparison", "measure": "fpr95"}
    return pd.DataFrame([default | {"direction": "lower", "over": "mean", "unit": "ratio"} | columns])


def value(runs: pd.DataFrame, method: str, train: str, test: str, seed: int) -> float:
    [found] = runs.query("method == @method and train == @train and test == @test and seed == @seed")[
        "value"
    ]
    return found


def literal_logs(
    runs: pd.DataFrame, first: str, second: str, seeds: tuple[int, ...]
) -> list[list[float]]:
    """Log ratios of the two test sets, by train set and seed."""
    return [
        [
            math.log(max(value(runs, first, train, test, seed), FLOOR))
            - math.log(max(value(runs, second, train, test, seed), FLOOR))
            for test in "abc"
            if test != train
        ]
        for train in "abc"
        for seed in seeds
    ]


def test_a_ratio_is_paired_by_train_place_and_seed():
    runs = drawn({"m": (0, 1), "r": (0, 1, 2)})
    [got] = effects(row(method="m", rival="r", over="each"), runs).to_dict("records")
    logs = literal_logs(runs, "m", "r", (0, 1))
    means = [sum(two) / 2 for two in logs]
    mean, deviation = np.mean(means), np.std(means, ddof=1)
    half = stats.t.ppf(0.975, 5) * deviation / math.sqrt(6)
    assert got["n"] == 6
    assert got["effect"] == pytest.approx(math.exp(mean))
    assert [got["low"], got["high"]] == pytest.approx([math.exp(mean - half), math.exp(mean + half)])
    # A cell is a train and a test set; its seeds are averaged.
    cells = [(np.array(logs[i]) + np.array(logs[i + 1])) / 2 for i in (0, 2, 4)]
    cells = np.concatenate(cells)
    assert got["share"] == pytest.approx((cells < 0).mean())
    assert got["cell_effect"] == pytest.approx(math.exp(cells.max()))
    names = ["a > b", "a > c", "b > a", "b > c", "c > a", "c > b"]
    assert got["cell"] == names[int(cells.argmax())]


def test_seeds_as_replicates_are_averaged_over_their_train_places():
    runs = drawn({"m": (0, 1, 2), "r": (0, 1, 2)})
    [got] = effects(row(method="m", rival="r"), runs, replicate=["seed"]).to_dict("records")
    # By train place and seed, then by seed alone.
    means = np.array(literal_logs(runs, "m", "r", (0, 1, 2))).mean(axis=1).reshape(3, 3).mean(axis=0)
    half = stats.t.ppf(0.975, 2) * means.std(ddof=1) / math.sqrt(3)
    assert got["n"] == 3
    assert got["effect"] == pytest.approx(math.exp(means.mean()))
    ends = [math.exp(means.mean() - half), math.exp(means.mean() + half)]
    assert [got["low"], got["high"]] == pytest.approx(ends)


def test_methods_without_a_common_seed_have_welchs_interval():
    runs = drawn({"m": (0, 1), "r": (2, 3)})
    [got] = effects(row(method="m", rival="r"), runs).to_dict("records")
    means = {
        method: [
            np.mean([math.log(value(runs, method, t, test, seed)) for test in "abc" if test != t])
            for t in "abc"
            for seed in seeds
        ]
        for method, seeds in (("m", (0, 1)), ("r", (2, 3)))
    }
    interval = stats.ttest_ind(means["m"], means["r"], equal_var=False).confidence_interval()
    assert got["effect"] == pytest.approx(math.exp(np.mean(means["m"]) - np.mean(means["r"])))
    assert [got["low"], got["high"]] == pytest.approx([math.exp(interval.low), math.exp(interval.high)])


def test_an_untrained_rival_is_a_constant_and_a_rate_of_zero_has_a_floor():
    runs = drawn({"m": (0, 1)})
    runs.loc[0, "value"] = 0.0
    sift = frame(
        {("sift", "", test, None, "fpr95"): rate for test, rate in zip("abc", (20, 30, 40), strict=True)}
    )
    [got] = effects(row(method="m", rival="sift"), pd.concat([runs, sift])).to_dict("records")
    rates = dict(zip("abc", (20, 30, 40), strict=True))
    means = [
        np.mean(
            [
                math.log(max(value(runs, "m", train, test, seed), FLOOR) / rates[test])
                for test in "abc"
                if test != train
            ]
        )
        for train in "abc"
        for seed in (0, 1)
    ]
    interval = stats.ttest_1samp(means, 0).confidence_interval()
    assert got["effect"] == pytest.approx(math.exp(np.mean(means)))
    assert [got["low"], got["high"]] == pytest.approx([math.exp(interval.low), math.exp(interval.high)])


def test_points_gains_signs_bounds_and_spreads():
    measure = "hpatches.matching"
    runs = drawn({"m": (0, 1), "r": (0, 1), "s": (0, 1)}, measure)
    at = runs.pivot_table("value", ["train", "seed"], "method", aggfunc="mean")
    points = row(method="m", rival="r", measure=measure, direction="higher", unit="points")
    assert effects(points, runs)["effect"][0] == pytest.approx((at["m"] - at["r"]).mean())
    gains = points.assign(method="m over r", rival="r over s")
    expected = (at["m"] - at["r"]) - (at["r"] - at["s"])
    interval = stats.ttest_1samp(expected, 0).confidence_interval()
    [got] = effects(gains, runs).to_dict("records")
    assert [got["effect"], got["low"], got["high"]] == pytest.approx([expected.mean(), *interval])

    signs = runs.query("method == 'r'").assign(measure="hpatches by sign.matching", method="t")
    [got] = effects(points.assign(rival="t by sign"), pd.concat([runs, signs])).to_dict("records")
    assert got["effect"] == pytest.approx((at["m"] - at["r"]).mean())

    bound = points.assign(rival="", bound="4", over="each")
    [got] = effects(bound, runs).to_dict("records")
    cells = runs.query("method == 'm'").groupby(["train", "test"])["value"].mean()
    assert [got["effect"], got["share"]] == pytest.approx([cells.mean(), (cells > 4).mean()])

    by_cell = runs.pivot_table("value", ["train", "test"], "method")
    [got] = effects(points.assign(bound="1.5"), runs).to_dict("records")
    assert got["share"] == pytest.approx((by_cell["m"] - by_cell["r"] > 1.5).mean())

    spread = points.assign(over="spread", unit="ratio", measure=measure)
    deviations = runs.groupby(["method", "train", "test"])["value"].var().groupby("method").mean() ** 0.5
    assert effects(spread, runs)["effect"][0] == pytest.approx(deviations["m"] / deviations["r"])


@pytest.mark.parametrize(
    ("direction", "right"),
    [("lower", 1), ("not higher", 3), ("same", 4), ("not lower", 5), ("higher", 3)],
)
def test_the_share_of_cells_on_the_sentences_side(direction, right):
    """Of six cells one is lower by half, two are equal, two are higher by a tenth and one by half."""
    cells = [(train, test) for train in "abc" for test in "abc" if test != train]
    ratios = dict(zip(cells, (0.5, 1, 1, 1.1, 1.1, 1.5), strict=True))
    runs = frame(
        {
            (method, train, test, 0, "fpr95"): ratio if method == "m" else 1.0
            for method in "mr"
            for (train, test), ratio in ratios.items()
        }
    )
    [got] = effects(row(method="m", rival="r", direction=direction, over="any"), runs).to_dict("records")
    assert got["share"] == pytest.approx(right / 6)
    best = 0.5 if direction in ("lower", "not higher", "same") else 1.5
    assert got["cell_effect"] == pytest.approx(best)
    assert got["cell"] == ("a > b" if best == 0.5 else "c > b")
    # A sentence about one test set.
    [got] = effects(row(method="m", rival="r", over="c"), runs).to_dict("records")
    assert got["effect"] == pytest.approx((ratios["a", "c"] * ratios["b", "c"]) ** 0.5)


def test_one_pair_has_no_interval_and_what_is_missing_is_named():
    runs = drawn({"m": (0,), "r": (0,)}).query("train == 'a'")
    [got] = effects(row(method="m", rival="r"), runs).to_dict("records")
    assert got["n"] == 1
    assert math.isfinite(got["effect"])
    assert math.isnan(got["low"])
    assert math.isnan(got["high"])
    lacking = effects(row(method="m;x", rival="r;y", measure="w1bs.mauc", printed_effect=";1.5;;"), runs)
    assert lacking["effect"].isna().all()
    assert lacking["missing"].tolist() == [
        "w1bs.mauc of m; w1bs.mauc of r",
        "w1bs.mauc of m; y",
        "x; w1bs.mauc of r",
        "x; y",
    ]
    assert lacking["printed"].tolist() == pytest.approx([math.nan, 1.5, math.nan, math.nan], nan_ok=True)


# --- the texts

TEXTS = {"adasample": "adasample.md", "dsm": "dsm.md", "hynet": "hynet.txt", "tcdesc": "tcdesc.md"}
with_texts = pytest.mark.skipif(not papers_text.FOLDER, reason="PAPERS names no folder with the texts")


def excluded(paper: str) -> list[dict[str, str]]:
    path = Path(__file__).with_name("excluded_sentences.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["paper"] == paper]


def pieces(quote: str, plain: Callable[[str], str] = papers_text.plain) -> list[str]:
    """The pieces between marks of omission, letters and digits alone."""
    return [part for piece in quote.split("…") if (part := plain(piece))]


def uncited(words: str) -> str:
    """The words without citations, whose numbers a paper's transcriptions sort differently."""
    return re.sub(papers_text.CITATION, "", words)


def test_quotes_are_whole_or_say_where_they_are_cut():
    assert SAID["quote"].str.match(r"…|[A-Z“(]|3\) ").all()
    assert SAID["quote"].str.contains(r"[.:…”]$").all()


@with_texts
@pytest.mark.parametrize("paper", PAPERS)
def test_every_sentence_with_a_number_or_a_comparison_is_listed_or_excluded(paper):
    quotes = SAID["quote"][SAID["paper"] == paper].unique()
    # A piece of two words is in many sentences.
    parts = [pieces(uncited(quote)) for quote in quotes]
    parts = [[part for part in quote_parts if len(part) > 24] or quote_parts for quote_parts in parts]
    rules = excluded(paper)
    unlisted = [
        sentence
        for heading, sentence in papers_text.sentences(TEXTS[paper])
        if papers_text.speaks_of_more(sentence)
        and not any(part in papers_text.plain(uncited(sentence)) for part in itertools.chain(*parts))
        and not any(
            re.search(rule["section"], heading) and re.search(rule["pattern"], sentence)
            for rule in rules
        )
    ]
    assert unlisted == []


@with_texts
@pytest.mark.parametrize("paper", PAPERS)
def test_every_quote_is_in_the_paper_and_every_exclusion_excludes(paper):
    # AdaSample has two transcriptions; arXiv's decides.
    arxiv = paper == "adasample"
    plain = papers_text.plain_once if arxiv else papers_text.plain
    whole = plain(papers_text.text("adasample_arxiv_html.txt" if arxiv else TEXTS[paper]))
    for claim in SAID[SAID["paper"] == paper].itertuples():
        assert all(piece in whole for piece in pieces(claim.quote, plain)), claim.id
    sentences = [
        section
        for section in papers_text.sentences(TEXTS[paper])
        if papers_text.speaks_of_more(section[1])
    ]
    for rule in excluded(paper):
        matched = [
            re.search(rule["section"], section) and re.search(rule["pattern"], sentence)
            for section, sentence in sentences
        ]
        assert rule["reason"]
        assert any(matched), rule

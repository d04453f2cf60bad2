"""The study that a notebook's parameters name, and the runs that its `runs` cell asks for.

    study = open_study("adasample/table3", profile, data, results, seeds)
    runs = study.runs(["hardnet_aug_gen", "adasample_aug_gen"], seeds=study.test_seeds)
    runs.query("measure == 'fpr95'").pivot_table("value", "label", ["train", "test"])

`Study.runs` looks each run up (`lib.study.store`), trains what is missing (`lib.study.making`), and
returns one tidy frame.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib import profiles
from lib.benchmarks import MEASURES
from lib.data.hpatches import RELEASE, TASKS
from lib.data.scenes.sets import IMAGES_OF, WIDE
from lib.data.sources import FREE, KINDS, Source, open_source
from lib.files import check_name
from lib.profiles import Profile
from lib.recipes import COMPARED, RECIPES, Recipe, at_rate, changed, find, part, shared
from lib.statistics import NEGATIVES
from lib.study import searches, show
from lib.study.descriptors import published, untrained_descriptor
from lib.study.requests import (
    BY_SIGN,
    Refused,
    Request,
    configuration,
    identity,
    in_one_line,
    merged,
)
from lib.study.store import CURVES, METRICS, NUMBERS, RUNS, Reference, Run, Store, rows_of

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "results" / "reference"
# In `measures` and `probes`: the set that the run was trained on.
TRAIN_SET = "the train set"
SEEDS = ("grid_seeds", "table_seeds", "test_seeds")
# A method by name, or rows of a notebook's own.
Methods = Iterable[str] | Mapping[str, Recipe]
# Modules, applied to a run's own sets; or the sets of each module.
OnSets = Iterable[str] | Mapping[str, Sequence[str]]


class Absent(Refused):
    """The study's data or profile lack what a notebook needs, so that the notebook is left out."""


class Runs(pd.DataFrame):
    """Numbers of runs as a tidy frame, a row a number, with the columns `lib.study.store.METRICS`.

    What pandas makes of it is a plain frame.

    Attributes:
        found: the runs, by identity, each with its request.
    """

    # The attributes that pandas keeps on the frame.
    _metadata: ClassVar[list[str]] = ["found"]

    @property
    def table(self) -> pd.DataFrame:
        """A row a run: names, learning rate, steps, batch, commit, device, seconds, configuration."""
        rows = [
            {**run.about, "run": name, "method": request.method, "label": request.label}
            for name, (run, request) in self.found.items()
        ]
        return pd.DataFrame(rows, columns=RUNS).astype({"seed": "Int64"})

    @property
    def curves(self) -> pd.DataFrame:
        """Training curves, a row a value: step, curve, value, run, method, label, train, seed."""
        parts = []
        for name, (run, request) in self.found.items():
            curves = run.probe(CURVES, "")
            for curve in sorted(curves.keys() - {"step"}):
                values = curves[curve]
                # A curve that begins later, such as one that needs an average, ends with the others.
                steps = curves["step"][-len(values) :]
                drawn = pd.DataFrame({"step": steps, "curve": curve, "value": values})
                parts.append(
                    drawn.assign(
                        run=name,
                        method=request.method,
                        label=request.label,
                        train=request.train,
                        seed=request.seed,
                    )
                )
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def arrays(self, probe: str, test: str | None = None) -> dict[str, dict[str, np.ndarray]]:
        """Return the arrays of a probe by run, for the runs that have it.

        Args:
            probe: a module of `lib.analysis`.
            test: the set it was applied to; by default each run's own train set, or else the first set.
        """
        arrays = {}
        for name, (run, request) in self.found.items():
            sets = [own for module, own in request.probes if module == probe]
            if not sets:
                continue
            chosen = test
            if chosen is None:
                chosen = request.train if request.train in sets else sets[0]
            if chosen in sets:
                arrays[name] = run.probe(probe, chosen)
        return arrays

    def computed(self, computation: str) -> tuple[dict, dict[str, np.ndarray]]:
        """Return the numbers, tables included, and the arrays of a computation.

        Args:
            computation: a module of `lib.analysis` among those asked for.
        """
        [arrays] = self.arrays(computation, "").values()
        return json.loads(str(arrays.pop(NUMBERS))), arrays


@dataclass(frozen=True, kw_only=True)
class Study:
    """Profile, data and folders of a notebook.

    Attributes:
        name: the notebook's path below notebooks/, without the extension.
        profile: the size of the runs.
        source: the data.
        data: as `open_study` takes it.
        results: the folder results/<profile>, where runs are made.
        reference: the committed numbers of the profile.
        reading: whether the reference is read, and only what it lacks is looked up in `results`.
        grid_seeds, table_seeds, test_seeds: the seeds asked for, or the profile's: for a grid over a
            parameter, for a table of methods, and for a comparison that needs a spread.
        device: for runs that are made.
        jobs: how many runs are made at once; None is as many as the cores hold.
        address: of a Dask scheduler whose workers make the runs; None makes them here.
        plan: collects what `runs` asks for while a study is planned, and nothing is looked up.
        searched: collects, likewise, the methods whose learning rates are needed, with their recipes.
    """

    name: str
    profile: Profile
    source: Source
    data: str
    results: Path
    reference: Reference
    reading: bool
    grid_seeds: tuple[int, ...]
    table_seeds: tuple[int, ...]
    test_seeds: tuple[int, ...]
    device: str = "cpu"
    jobs: int | None = None
    address: str | None = None
    plan: list | None = field(default=None, repr=False, compare=False)
    searched: dict[str, Recipe] | None = field(default=None, repr=False, compare=False)

    @property
    def store(self) -> Store:
        """The runs that were made here."""
        return Store(self.results / "runs")

    @property
    def places(self) -> tuple[str, ...]:
        """The sets to train on, the first three in the roles of Liberty, Notre Dame and Yosemite."""
        return self.source.sets

    @property
    def first(self) -> tuple[str, ...]:
        """The first of `places`, on which tables of many rows are trained; all of them where the
        replicate is the place."""
        return self.places if self.profile.by_place else self.places[:1]

    @property
    def grid_places(self) -> tuple[str, ...]:
        """As many of `places` as the profile trains the papers' main tables on."""
        return self.places if self.profile.by_place else self.places[: self.profile.grid_sets]

    @property
    def counted_places(self) -> tuple[str, ...]:
        """Those of `places` on which FPR95 of random pairs counts (`counted`), for a table that tests on
        the places it trains on."""
        rule = _counting_rule()
        left_out = rule.index[rule["counts random"] == "no"]
        return tuple(place for place in self.places if place not in left_out)

    @property
    def tests(self) -> tuple[str, ...]:
        """`places`, then the places that are only tested on."""
        return self.source.tested

    @property
    def quick(self) -> bool:
        """Whether this is the smoke test."""
        return self.profile.name == "quick"

    @property
    def on_places(self) -> bool:
        """Whether the data are photographs of real places."""
        return self.source.scenes is not None

    @property
    def where(self) -> str:
        """Profile and data in two words, for a figure's note."""
        return f"{self.profile.name}, {self.source.name}"

    @property
    def replicate(self) -> str:
        """What a single dot of a figure is, for its legend."""
        return "one place to train on" if self.profile.by_place else "one seed"

    @property
    def heading(self) -> str:
        """Profile and data in one line."""
        return f"profile {self.profile.name}, data {self.source.name} ({', '.join(self.tests)})"

    def counted(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of runs without FPR95 on the places of the evidence where it counts for no
        comparison: those on which HardTFeat, which nobody here trained, has less than 0.01%. An FPR95 of
        0, which has no logarithm, becomes that of half a false positive.

        Which places these are was recorded before anything was trained there
        (``results/reference/places/counted.csv``), for random and for wide pairs.
        """
        rule = _counting_rule()
        left_out = [
            *rule.index[rule["counts random"] == "no"],
            *(rule.index[rule["counts wide"] == "no"] + WIDE),
        ]
        is_rate = runs["measure"] == "fpr95"
        kept = runs[~(is_rate & runs["test"].isin(left_out))].copy()
        none = (kept["measure"] == "fpr95") & (kept["value"] == 0)
        kept.loc[none, "value"] = [self._half_a_pair(test) for test in kept.loc[none, "test"]]
        return kept

    def _half_a_pair(self, test: str) -> float:
        """Return FPR95 in percent for no false positive on a set: (0 + ½) / (N + 1) of its N pairs.

        On places these are all pairs of different points, elsewhere listed ones.
        """
        if not self.on_places:
            return 50 / (NEGATIVES + 1)
        place = test.removesuffix(WIDE)
        known = self.reference.sets if self.reference.exists else pd.DataFrame(columns=["data", "name"])
        known = known[(known["data"] == self.source.name) & (known["name"] == place)]
        if len(known) and known["classes"].iloc[0]:
            classes = int(known["classes"].iloc[0])
        else:
            classes = len(np.unique(self.source.load(place).point_ids))
        return 50 / (classes * (classes - 1) / 2 + 1)

    def seed_at(self, place: str, seed: int) -> int:
        """Return the seed of a run on a place: `seed` itself, or, where the replicate is the place, one
        that no other place has."""
        if self.profile.by_place and place in self.places:
            return seed * len(self.places) + self.places.index(place)
        return seed

    def compared(self, names: Iterable[str], optimizer: str) -> dict[str, Recipe]:
        """Return methods as a paper's table compares them, by name.

        At most sizes each keeps its own setting. Where the replicate is the place, those of
        `lib.recipes.COMPARED` share one setting and optimiser, and others are not trained.

        Args:
            names: in `lib.recipes.RECIPES`.
            optimizer: as `lib.recipes.shared` takes it.
        """
        if self.profile.by_place:
            return shared([name for name in names if name in COMPARED], optimizer)
        return {name: RECIPES[name] for name in names}

    def require(self, *names: str) -> None:
        """Leave the notebook out of a study at any other profile.

        Raises:
            Absent: the study has another profile.
        """
        if self.profile.name not in names:
            raise Absent(f"its runs are made at {', '.join(names)}, not at {self.profile.name}")

    def hpatches(self, split: str) -> str:
        """Return the study's own HPatches test set of a split, e.g. "a" or "full".

        Raises:
            Absent: the data have no HPatches patches.
        """
        return self._own_hpatches().test_set(split)

    def hpatches_train(self, split: str) -> str:
        """Return the study's own HPatches train set of a split; raises as `hpatches`."""
        return self._own_hpatches().train_set(split)

    def _own_hpatches(self):
        if self.source.own_hpatches is None:
            raise Absent(f"{self.data} holds no {RELEASE} with {TASKS}")
        return self.source.own_hpatches

    def images(self, kind: str) -> list[str]:
        """Return the sets of whole images of a kind (`lib.data.sources.KINDS`): the study's own, and
        real ones where it was given some.

        Raises:
            Absent: the data have none.
        """
        sets = [sets.name(kind) for sets in self.source.whole_images if kind in sets.kinds]
        if not sets:
            raise Absent(f"{self.data} holds no {kind}")
        return sets

    def runs(
        self,
        methods: Methods = (),
        *,
        seeds: Sequence[int] | int | None = None,
        places: Sequence[str] | None = None,
        measures: OnSets = (),
        probes: OnSets = (),
        untrained: Iterable[str] = (),
        checkpoints: Sequence[str | Path] = (),
        compute: Mapping[str, str] | Iterable[str] = (),
        changes: Mapping[str, object] | None = None,
        tested: bool = True,
        as_stated: bool = False,
        **size: object,
    ) -> Runs | None:
        """Return the numbers of runs; runs that are missing are trained and measured first.

        Trained runs and untrained descriptors are measured by FPR95 on each test set that the run was
        not trained on. On real places, and above the smoke test's size, FPR95 of wide pairs and matching
        of photographs are measured too.

        A reference whose replicate is the place grows place by place. Where only it is at hand, the
        runs are those of the places at which it has every method asked for.

        Args:
            methods: names in `lib.recipes.RECIPES`, or recipes by name (`lib.recipes.variants`).
            seeds: the seeds, or how many of the study's `test_seeds`; by default `table_seeds`.
            places: the sets to train on; by default `first`.
            measures: further modules of `lib.benchmarks`, on each run's test sets; or the sets of each
                module, among which `TRAIN_SET` is the run's own. The suffix " by sign" measures the
                signs of descriptors.
            probes: modules of `lib.analysis` that return arrays, on each run's train set; or the sets
                of each module.
            untrained: descriptors that are not trained here, by name (`lib.study.descriptors`).
            checkpoints: files of networks that others trained, or that were exported here.
            compute: modules of `lib.analysis` that need no data, with their labels.
            changes: axes changed once a recipe has its rate and the profile's schedule
                (`lib.recipes.changed`).
            tested: whether FPR95 is measured at all.
            as_stated: whether recipes keep the rate and schedule that their authors state.
            size: new values for fields of the profile, e.g. `width`, `budget`, `stages`.

        Returns:
            One tidy frame, in the order asked for; None while the study is planned.

        Raises:
            Refused: an unknown method, a missing search, or a run that cannot be made here. The message
                says what to do.
        """
        try:
            asked = self._requests(
                methods,
                seeds=self._seeds(seeds),
                places=self.first if places is None else tuple(places),
                untrained=untrained,
                checkpoints=checkpoints,
                compute=compute,
                changes=changes or {},
                tested=tested,
                as_stated=as_stated,
                size=size,
            )
            asked = [self._with(request, measures, probes) for request in asked]
            if self.profile.by_place and self.source.recorded:
                asked = self._on_record(asked)
            if self.plan is not None:
                self.plan.append((self, asked))
                return None
            return self._frame(asked)
        except KeyboardInterrupt:
            raise Refused("Stopped. What was done is kept; the same cell goes on.") from None
        except (ValueError, OSError) as error:
            if isinstance(error, Refused):
                raise
            raise Refused(str(error)) from None

    def _seeds(self, seeds: Sequence[int] | int | None) -> tuple[int, ...]:
        if seeds is None:
            return self.table_seeds
        if type(seeds) is int and seeds > 0:
            return self.test_seeds[:seeds]
        if not _are_seeds(seeds):
            raise ValueError(f"seeds is how many, or a list of different whole numbers, got {seeds!r}")
        return tuple(seeds)

    def _requests(
        self,
        methods: Methods,
        *,
        seeds: Sequence[int],
        places: Sequence[str],
        untrained: Iterable[str],
        checkpoints: Sequence[str | Path],
        compute: Mapping[str, str] | Iterable[str],
        changes: Mapping[str, object],
        tested: bool,
        as_stated: bool,
        size: Mapping[str, object],
    ) -> list[Request]:
        unknown = size.keys() - {field.name for field in fields(Profile)}
        if unknown:
            raise ValueError(f"study.runs takes no {min(unknown)!r}")
        computations = compute if isinstance(compute, Mapping) else {name: name for name in compute}
        requests = [
            Request(name, label, computation=part(name), probes=((name, ""),))
            for name, label in computations.items()
        ]
        described = [untrained_descriptor(name) for name in untrained]
        described += published(checkpoints)
        for request, train_sets in described:
            measures = self._default_measures(train_sets) if tested else ()
            requests.append(replace(request, measures=measures))
        for name, recipe in _by_name(methods).items():
            trained = recipe if as_stated else self._at_profile(name, recipe)
            if changes:
                trained = changed(trained, recipe.label, changes)
            profile = replace(self.profile.sized_for(trained), **size)
            for place in places:
                measures = self._default_measures(place.split("+")) if tested else ()
                requests += [
                    Request(
                        name,
                        recipe.label,
                        recipe=trained,
                        train=place,
                        seed=self.seed_at(place, seed),
                        profile=profile,
                        measures=measures,
                    )
                    for seed in seeds
                ]
        return requests

    def _on_record(self, asked: list[Request]) -> list[Request]:
        """Leave out the places at which the reference lacks a run; none if that leaves no trained run,
        so that what is missing is named."""
        lacking = {
            request.train
            for name, request in merged(asked, self.source).items()
            if request.recipe is not None and self.find(name, request, in_reference=True) is None
        }
        kept = [request for request in asked if request.train not in lacking]
        return kept if any(request.recipe is not None for request in kept) else asked

    def _at_profile(self, name: str, recipe: Recipe) -> Recipe:
        """Return a recipe at the rate that its search found, and with the profile's schedule, unless the
        recipe fixes them."""
        if self.profile.search is None:
            return recipe
        schedule = None if "schedule" in recipe.fixed else self.profile.schedule
        rate_of = recipe.rate_of or searches.inherited_from(name, recipe, self.profile.search)
        if "rate" in recipe.fixed:
            rate = recipe.optimizer.options["lr"]
        elif self.searched is None:
            rate = self.rate(rate_of or name)
        else:
            rate = 1.0
            if rate_of is None:
                self.searched[name] = recipe
        return at_rate(recipe, rate, schedule)

    def _default_measures(self, train_sets: Sequence[str]) -> tuple[tuple[str, str], ...]:
        pairs = []
        for name in self.tests:
            if name in train_sets:
                continue
            pairs.append(("fpr95", name))
            if self.on_places and not self.quick:
                # The wide pairs are of the same patches, which one after the other are described once.
                pairs.append(("fpr95", f"{name}{WIDE}"))
                pairs.append(("image_pairs", f"{name}{IMAGES_OF}"))
        return tuple(pairs)

    def _with(self, request: Request, measures: OnSets, probes: OnSets) -> Request:
        """Return a request with further measures and probes."""
        if request.computation is not None:
            return request
        own_tests = [name for module, name in request.measures if module == "fpr95"]
        own_tests = [name for name in own_tests if not name.endswith(WIDE)]
        measured = _on_sets(measures, own_tests, request.train)
        probed = _on_sets(probes, [request.train], request.train)
        return replace(
            request,
            measures=tuple(dict.fromkeys((*request.measures, *measured))),
            probes=tuple(dict.fromkeys((*request.probes, *probed))),
        )

    def _frame(self, asked: Sequence[Request]) -> Runs:
        """Return the frame of requests. What is missing is made first."""
        together = merged(asked, self.source)
        found = {name: self.find(name, request) for name, request in together.items()}
        missing = [name for name, run in found.items() if run is None]
        if missing:
            failures = self.make([together[name] for name in missing])
            if failures:
                reasons = "\n".join(f"  {title}: {why}" for title, why in failures)
                raise Refused(f"{len(failures)} of the runs cannot be made here:\n{reasons}")
            found |= {name: self.store.find(name) for name in missing}
        rows = []
        for request in asked:
            # Two methods may be one run at this size; each has its rows.
            name = identity(configuration(request, self.source))
            rows += rows_of(found[name], request, self.source)
        # Without any run the columns would hold objects.
        types = {"seed": "Int64", "stage": float, "value": float}
        frame = Runs(pd.DataFrame(rows, columns=METRICS).astype(types))
        frame.found = {name: (run, together[name]) for name, run in found.items()}
        if found:
            show.footer(f"{self.heading}; {self._provenance(found)}")
        return frame

    def find(self, name: str, request: Request, *, in_reference: bool = False) -> Run | None:
        """Return a run that has all that a request asks for, or None.

        Args:
            name: the run's identity.
            request: what is asked of it.
            in_reference: whether only the reference is looked up.
        """
        if self.reading or in_reference:
            run = self.reference.find(name, self.source.name)
            if run is not None and not run.lacks(request, self.source):
                return run
        if in_reference:
            return None
        run = self.store.find(name)
        if run is None or run.lacks(request, self.source):
            return None
        return run

    def _provenance(self, found: Mapping[str, Run]) -> str:
        commits = len({run.about["commit"] for run in found.values()})
        at = "1 commit" if commits == 1 else f"{commits} commits"
        here = sum(run.arrays_path.parent == self.store.folder for run in found.values())
        place = f"{here} of them made here" if here else "read from the reference"
        searched = searches.borrowed(self.searches, self.source.name)
        runs = "1 run" if len(found) == 1 else f"{len(found)} runs"
        return f"{runs}, recorded at {at}, {place}{searched}"

    def make(self, requests: Iterable[Request]) -> list[tuple[str, str]]:
        """Make runs in the study's own folder (`lib.study.making.make`), and return the titles of those
        that failed, each with the reason."""
        from lib.study.making import make  # imports the networks and measures

        return make(
            requests, self.source, self.store, self.profile, self.device, self.jobs, self.address
        )

    @property
    def searches(self) -> pd.DataFrame:
        """The learning rate searches that the study's rates come from, a row a run: method, label,
        optimizer, data, train, test, seed, rate, fpr95 in percent, and measures of the spread."""
        return searches.on_record(self.reference.searches, self.source.name)

    @property
    def _search_command(self) -> str:
        kind, _, folder = self.data.partition(":")
        where = f" --{kind} {folder}" if folder else ""
        return f".venv/bin/python -m lib.commands search --profile {self.profile.name}{where}"

    def _by_rate(self, method: str) -> pd.Series:
        return searches.by_rate(self.searches, method, self._search_command)

    def rate(self, method: str) -> float:
        """Return the learning rate at which a method's search did best, or that of its family
        (`searches.family_rate`).

        Raises:
            NoSearch: a search is not on record; the message names the command that makes it.
        """
        families = self.profile.search.families if self.profile.search else ()
        family = next((names for names in families if method in names), None)
        if family:
            return searches.family_rate(self.searches, method, family, self._search_command)
        return float(self._by_rate(method).idxmin())

    def searched_fpr95(self, method: str) -> float:
        """Return the mean FPR95 that a method's search reached at its best rate, in percent; 0 while
        the study is planned for its searches.

        Raises:
            NoSearch: its search is not on record; the message names the command that makes it.
        """
        if self.searched is not None:
            return 0.0
        return float(self._by_rate(method).min())

    def best_of(self, candidates: Mapping[str, Recipe]) -> dict[str, Recipe]:
        """Return the candidate whose search did best, e.g. a loss at its best margin, as a row for
        `runs`.

        Candidates without a search on record are left out. Of those that tie, and where a profile has
        no searches, the last one is taken. While the study is planned for its searches, all are
        returned.

        Args:
            candidates: recipes by name.

        Raises:
            NoSearch: no candidate's search is on record.
        """
        if self.searched is not None:
            return dict(candidates)
        last = list(candidates)[-1]
        if self.profile.search is None:
            return {last: candidates[last]}
        on_record = set(self.searches["method"])
        reached = {name: self.searched_fpr95(name) for name in candidates if name in on_record}
        if not reached:
            reached = {last: self.searched_fpr95(last)}
        best = min(reversed(reached), key=reached.__getitem__)
        return {best: candidates[best]}

    def show(
        self,
        table: pd.DataFrame,
        name: str = "",
        decimals: int | Mapping[str, int] = 2,
        caption: str = "",
    ) -> None:
        """Show a table, and save it as CSV unless the reference is read (`lib.study.show.table`)."""
        show.table(table, self._saved("tables", name), decimals, caption)

    def save(self, figure: Figure, alt: str, frame: pd.DataFrame | None = None, name: str = "") -> None:
        """Show a figure, and save it as PNG with its data as CSV unless the reference is read
        (`lib.study.show.figure`).

        Args:
            figure: the figure, which is closed here.
            alt: a description of the picture for readers who do not see it.
            frame: the data drawn; None if a table of the notebook holds them.
            name: appended to the notebook's name in the file names.
        """
        data = self._saved("tables", f"{name}_figure" if name else "figure")
        show.figure(figure, alt, self._saved("figures", name), frame, data)

    def _saved(self, kind: str, name: str) -> Path | None:
        # A notebook may name its files after methods and sets that its own rows or real data bring.
        named = [*(self.name.split("/") if self.name else ()), *([name] if name else ())]
        for component in named:
            try:
                check_name(component, f"{kind} of {self.name}")
            except ValueError as error:
                raise Refused(str(error)) from None
        if self.reading:
            return None
        stem = f"{self.name}_{name}" if name else self.name
        return self.results / kind / stem


def _counting_rule() -> pd.DataFrame:
    """Return, by place, whether its FPR95 counts ("yes" or "no"), for random and for wide pairs."""
    return pd.read_csv(REFERENCE / "places" / "counted.csv", index_col="place")


def _by_name(methods: Methods) -> dict[str, Recipe]:
    if isinstance(methods, str):
        raise ValueError(f"methods is a list of names: give [{methods!r}]")
    if isinstance(methods, Mapping):
        return dict(methods)
    return {name: find(name) for name in dict.fromkeys(methods)}


def _on_sets(wanted: OnSets, own: Sequence[str | None], train: str | None) -> list[tuple[str, str]]:
    """Return (module, set) pairs; sets that a request does not have are left out."""
    if isinstance(wanted, str):
        raise ValueError(f"measures and probes are lists of names: give [{wanted!r}]")
    sets = wanted if isinstance(wanted, Mapping) else {module: own for module in wanted}
    pairs = []
    for module, names in sets.items():
        if module.removesuffix(BY_SIGN) not in MEASURES:
            raise ValueError(f"unknown measure {module!r}; there are: {', '.join(MEASURES)}")
        chosen = [train if name == TRAIN_SET else name for name in names]
        pairs += [(module, name) for name in chosen if name is not None]
    return pairs


class Plan:
    """Takes the place of a notebook's `results` while the study is planned: what the notebook's `runs`
    cell asks for is collected, and nothing is looked up or made.

    Attributes:
        study: the study that is planned. A notebook may open a second one, e.g. on other data.
        asked: what was asked for: studies, each with its requests.
    """

    def __init__(self, study: Study):
        self.study = study
        self.asked: list[tuple[Study, list[Request]]] = []

    def open(self, name: str, profile: str, data: str, seeds: Sequence[int] | None) -> Study:
        """Return the study as a notebook opens it."""
        own = self.study
        if (profile, data) != (own.profile.name, own.data):
            kept = "reference" if own.reading else str(own.results.parent)
            own = _open(name, profile, data, kept, seeds, own.device, own.jobs, own.address, None)
        chosen = {} if seeds is None else dict.fromkeys(SEEDS, tuple(seeds))
        return replace(own, name=name, plan=self.asked, **chosen)


def open_study(
    name: str = "",
    profile: str = "quick",
    data: str = FREE,
    results: str | Plan = "reference",
    seeds: Sequence[int] | None = None,
    *,
    device: str = "cpu",
    jobs: int | None = None,
    address: str | None = None,
    real: str | None = None,
) -> Study:
    """Open the study that a notebook's parameters name.

    Args:
        name: the notebook's path below notebooks/, e.g. "adasample/table1".
        profile: a key of `lib.profiles.PROFILES`.
        data: "free", the repository's places; "places:DIR", or a folder of PhotoTour sets. "places" are
            those of the profile's reference, whose pixels need not be here.
        results: "reference" reads the committed numbers and makes missing runs in results/. Any other
            value is the folder of results to read and write, relative to the repository.
        seeds: replace the profile's.
        device, jobs, address: as in `Study`.
        real: a folder of real homography sequences, up to two levels deep, for a further set of HPatches
            patches; or of released sets of whole images, each in a folder named by its kind.

    Raises:
        Refused: an unknown profile or device, a parameter that is an empty text or no text, seeds that
            are not a list of different whole numbers of 0 or more, or data that are missing.
    """
    with in_one_line():
        if isinstance(results, Plan):
            return results.open(name, profile, data, seeds)
        return _open(name, profile, data, results, seeds, device, jobs, address, real)


def _open(
    name: str,
    profile: str,
    data: str,
    results: str,
    seeds: Sequence[int] | None,
    device: str,
    jobs: int | None,
    address: str | None,
    real: str | None,
) -> Study:
    for parameter, value in {"profile": profile, "data": data, "results": results}.items():
        if not isinstance(value, str) or not value:
            raise ValueError(f"{parameter} is a text, got {value!r}")
    if real is not None and not isinstance(real, str | Path):
        raise ValueError(f"real is the path of a folder, got {real!r}")
    chosen = profiles.find(profile)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"unknown device {device!r}; there are: cpu, cuda, cuda:N")
    if seeds is not None and not _are_seeds(seeds):
        raise ValueError(f"seeds is a list of different whole numbers of 0 or more, got {seeds!r}")
    reading = results == "reference"
    made = ROOT / ("results" if reading else results) / profile
    if not reading and made.is_relative_to(REFERENCE):
        raise ValueError(f"results names the committed reference, {REFERENCE.relative_to(ROOT)}")
    if any(folder.exists() and not folder.is_dir() for folder in (made, *made.parents)):
        raise ValueError(f"results = {results!r} is no folder")
    reference = Reference(REFERENCE / profile)
    recorded = reference.recorded(data)
    if data in ("photos", "places") and not recorded:
        raise FileNotFoundError(
            f"there is no reference of {profile} with {data}: set both profile and data to what is in "
            'results/reference, or name a folder of places: data = "places:DIR"'
        )
    show.use_style()
    source = open_source(
        data,
        made / "data",
        chosen.sequences,
        _sequences_in(real),
        images=None if real is None else Path(real).resolve(),
        recorded=recorded,
        places=reference.places(data),
    )
    return Study(
        name=name,
        profile=chosen,
        source=source,
        data=data,
        results=made,
        reference=reference,
        reading=reading,
        **{kind: tuple(seeds or getattr(chosen, kind)) for kind in SEEDS},
        device=device,
        jobs=jobs,
        address=address,
    )


def _are_seeds(numbers: object) -> bool:
    if not isinstance(numbers, list | tuple) or not numbers:
        return False
    # bool is a subclass of int; the generators of numpy and torch take 63 bits.
    whole = all(type(number) is int and 0 <= number < 2**63 for number in numbers)
    return whole and len(set(numbers)) == len(numbers)


def _sequences_in(real: str | None) -> tuple[Path, ...]:
    if real is None:
        return ()
    from lib.data.hpatches.homographies import sequence_folders

    folders = tuple(path.resolve() for path in sequence_folders(Path(real)))
    if not folders and not any(Path(real, kind).is_dir() for kind in KINDS):
        raise FileNotFoundError(
            f"real = {real!r} is no folder with homography sequences in it, or with {', '.join(KINDS)}"
        )
    return folders

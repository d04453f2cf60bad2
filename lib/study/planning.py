"""What the notebooks need: their `runs` cells, executed with a study that only takes notes.

A notebook's cell with the tag `parameters` holds its parameters, and the one with the tag `runs` holds
imports, rows of methods and calls of `Study.runs`.
"""

import ast
import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import nbformat

from lib.recipes import Recipe
from lib.study.requests import Refused, Request, merged
from lib.study.runs import ROOT, Absent, Plan, Study

NOTEBOOKS = ROOT / "notebooks"


@dataclass(frozen=True)
class Planned:
    """What a notebook needs.

    Attributes:
        name: its path below notebooks/, without the extension.
        asked: studies, each with its requests; a notebook may open two.
        lacking: why the notebook is left out of this study; "" if it is not.
        failure: why its `runs` cell failed; "" if it did not.
    """

    name: str
    asked: Sequence[tuple[Study, Sequence[Request]]] = field(default_factory=list)
    lacking: str = ""
    failure: str = ""

    def is_on_record(self) -> bool:
        """Whether all that it needs is on record."""
        return all(study.find(run, request) is not None for study, run, request in self._needed())

    def lacking_in_reference(self) -> Iterator[str]:
        """Yield a line for each run that the reference lacks, or lacks a part of.

        Raises:
            FileNotFoundError, ValueError: as `lib.study.store.Reference`.
        """
        for study, run, request in self._needed():
            if study.find(run, request, in_reference=True) is None:
                yield f"{study.reference.folder} lacks a part of run {run}: {request.title}"

    def _needed(self) -> Iterator[tuple[Study, str, Request]]:
        for study, requests in self.asked:
            for run, request in merged(requests, study.source).items():
                yield study, run, request


def names(pattern: str = "*") -> list[str]:
    """Return the names of the notebooks that match a pattern, e.g. "adasample/*"."""
    paths = sorted(NOTEBOOKS.glob("*/*.ipynb"))
    every = [path.relative_to(NOTEBOOKS).with_suffix("").as_posix() for path in paths]
    return fnmatch.filter(every, pattern)


def path_of(name: str) -> Path:
    """Return the path of a notebook."""
    return NOTEBOOKS / f"{name}.ipynb"


def plan(name: str, study: Study) -> Planned:
    """Return what a notebook needs in a study."""
    noted = Plan(study)
    namespace = {**parameters(name, study), "results": noted}
    try:
        for source in cells(name, "runs"):
            exec(compile(source, f"notebooks/{name}.ipynb", "exec"), namespace)
    except Absent as absent:
        return Planned(name, lacking=str(absent))
    except Refused as refused:
        return Planned(name, failure=str(refused))
    except Exception as error:
        return Planned(name, failure=f"its runs cell ended in {type(error).__name__}: {error}")
    return Planned(name, noted.asked)


def cells(name: str, tag: str) -> list[str]:
    """Return the sources of a notebook's cells with a tag."""
    notebook = nbformat.read(path_of(name), as_version=4)
    return [cell.source for cell in notebook.cells if tag in cell.metadata.get("tags", ())]


def own_parameters(name: str) -> dict[str, object]:
    """Return a notebook's parameters with the values written in it.

    Raises:
        ValueError: a value is not a literal.
    """
    values = {}
    for source in cells(name, "parameters"):
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Assign):
                values[statement.targets[0].id] = ast.literal_eval(statement.value)
    return values


def parameters(name: str, study: Study) -> dict[str, object]:
    """Return the values that a study gives to a notebook's parameters.

    Profile and data are the study's. Where these are not the notebook's own, its other parameters are
    empty, so that a value chosen for its committed data does not get into another study.
    """
    own = own_parameters(name)
    at = {"profile": study.profile.name, "data": study.data}
    is_own = all(own.get(key) == value for key, value in at.items())
    if is_own:
        return own
    emptied = {key: _empty(value) for key, value in own.items()}
    return {**emptied, "seeds": None, **at}


def _empty(value: object) -> object:
    """Return what a parameter is without a choice: no list, no text; numbers and switches stay."""
    if isinstance(value, list):
        return []
    return value if isinstance(value, bool | int | float) else None


def together(planned: Iterable[Planned]) -> list[tuple[Study, dict[str, Request]]]:
    """Merge what notebooks need: studies that differ in profile or data, each with its requests by
    run."""
    by_data: dict[tuple[str, str], tuple[Study, list[Request]]] = {}
    for notebook in planned:
        for study, requests in notebook.asked:
            at = (study.profile.name, study.data)
            _, asked = by_data.setdefault(at, (study, []))
            asked.extend(requests)
    return [(study, merged(requests, study.source)) for study, requests in by_data.values()]


def one_name_each(asked: Iterable[tuple[Study, Mapping[str, Request]]]) -> None:
    """Check that a method's name stands for one configuration, whatever its seed and train set.

    Raises:
        ValueError: two runs of one name differ in their recipes.
    """
    recipes: dict[tuple[str, str, str], Recipe] = {}
    for study, requests in asked:
        for request in requests.values():
            if request.recipe is None:
                continue
            key = (study.profile.name, study.data, request.method)
            first = recipes.setdefault(key, request.recipe)
            # A label is the caller's.
            if first != replace(request.recipe, label=first.label):
                raise ValueError(f"{request.method!r} names two configurations")


def searched(study: Study) -> dict[str, Recipe]:
    """Return the methods that notebooks need a learning rate of in a study, by name."""
    recipes: dict[str, Recipe] = {}
    for name in names():
        plan(name, replace(study, searched=recipes))
    return recipes

"""Search methods' learning rates on the reserve, and put the searches on record.

``.venv/bin/python -m lib.commands.search`` makes the searches that the notebooks' `runs` cells need and
that are not on record; ``--methods`` names others. ``--rates`` adds rates. While the best rate is at an
end of those tried, the search goes on there. No set that a table uses is looked at.
"""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence

from lib.commands.options import add_study_options, check_device, data_of, exit_status
from lib.profiles import PROFILES
from lib.recipes import Recipe
from lib.study import planning, searches
from lib.study.runs import Study, open_study


def main(arguments: Sequence[str] | None = None) -> int:
    """Search the methods that the command line names and return the exit status of `exit_status`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sized = [name for name, profile in PROFILES.items() if profile.search]
    add_study_options(parser, "where the runs go", sized)
    text = "methods to search, anew if need be (default: those without a search on record)"
    parser.add_argument("--methods", nargs="+", metavar="NAME", help=text)
    rates = {"type": float, "choices": searches.GRID, "default": [], "metavar": "RATE"}
    parser.add_argument("--rates", nargs="+", help="tried too", **rates)
    return exit_status(parser, arguments, _search)


def _search(options: argparse.Namespace) -> None:
    study = open_study(
        "", options.profile, data_of(options), options.results, device=options.device, jobs=options.jobs
    )
    check_device(options.device)
    known = planning.searched(study)
    if options.methods is None:
        held = set(searches.on_record(study)["method"])
        wanted = [name for name in known if name not in held]
    else:
        wanted = options.methods
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"unknown method {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    for name in wanted:
        _search_one(study, name, known, options.rates)
    if not wanted:
        print("All searches that the notebooks need are on record.")


def _search_one(study: Study, name: str, known: Mapping[str, Recipe], rates: Sequence[float]) -> None:
    rows = searches.search(study, name, known[name], rates)
    searches.record(study, rows)
    means = rows.groupby("rate")["fpr95"].mean().round(4)
    print(f"{name}: {means.to_dict()} best: {means.idxmin()}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())

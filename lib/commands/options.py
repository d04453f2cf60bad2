"""Options that the commands of the study share: data, machine and folder."""

import argparse
from pathlib import Path


def add_study_options(parser: argparse.ArgumentParser, results: str) -> None:
    """Add which data a command takes, where it runs and where its results lie.

    Args:
        parser: of the command.
        results: what lies in the folder of results.
    """
    data = parser.add_mutually_exclusive_group().add_argument
    data("--data", metavar="DIR", help="folder with liberty, notredame and yosemite as downloaded")
    data("--photos", metavar="DIR", help="folder of photographs to make the embedded data from")
    data("--scenes", metavar="DIR", help="folder of real multi-view photographs, a folder a scene")
    add = parser.add_argument
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--jobs", type=int, metavar="N", help="runs at once (default: as many as the cores hold)")
    add("--results", default="results", metavar="DIR", help=f"{results} (default: results)")


def data_of(options: argparse.Namespace) -> str:
    """The data that the options name, as `lib.study.open.open_study` takes it; "mini" by default."""
    for kind in ("photos", "scenes"):
        if folder := getattr(options, kind):
            return f"{kind}:{Path(folder).resolve()}"
    return str(Path(options.data).resolve()) if options.data else "mini"

"""Options that the command lines share, for data and machine, and their exit status."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lib.data.sources import FREE
from lib.profiles import PROFILES


def exit_status(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, run: Callable | None = None
) -> int:
    """Run a command and report errors on stderr.

    Args:
        parser: the command's parser.
        arguments: the command's arguments, by default those of the process.
        run: takes the options and returns None or an exit status; by default the options' own ``run``.

    Returns:
        The exit status: that of ``run``, 1 if something failed, 130 after Ctrl-C.
    """
    options = parser.parse_args(arguments)
    try:
        return (run or options.run)(options) or 0
    except KeyboardInterrupt:
        print("\nStopped. What was done is kept, nothing is half-written; the same command continues.")
        return 130
    except (ValueError, OSError, KeyError, RuntimeError, AssertionError) as error:
        # torch raises the last two for a missing device.
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def stated(text: str) -> str:
    """Return the text of an option. Reject an empty one, e.g. of an unset variable."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def positive(text: str) -> int:
    """Return the number that an option gives, 1 or more."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_study_options(
    parser: argparse.ArgumentParser, results: str, profiles: Iterable[str] = PROFILES
) -> None:
    """Add the options for a command's size and data, where it runs and where its results are.

    Args:
        parser: the command's parser.
        results: what the results folder contains, for the help text.
        profiles: the sizes that the command offers.
    """
    text = "size (default: quick)"
    parser.add_argument("--profile", default="quick", choices=list(profiles), help=text)
    data = parser.add_mutually_exclusive_group().add_argument
    sets = {"type": stated, "metavar": "DIR"}
    data("--data", help="folder with liberty, notredame and yosemite as downloaded", **sets)
    data("--places", help="folder of multi-view photographs, a folder a scene", **sets)
    add = parser.add_argument
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    text = "runs at once (default: as many as the cores hold)"
    add("--jobs", type=positive, metavar="N", help=text)
    add("--results", default="results", help=f"{results} (default: results)", **sets)


def data_of(options: argparse.Namespace) -> str:
    """Return the data that the options name, as `lib.study.open_study` takes it; by default `FREE`."""
    if options.places:
        return f"places:{Path(options.places).resolve()}"
    if options.data:
        return str(Path(options.data).resolve())
    return FREE


def check_device(device: str) -> None:
    """Raise torch's error for a missing device before any work starts."""
    if device != "cpu":
        import torch

        torch.empty(0, device=device)

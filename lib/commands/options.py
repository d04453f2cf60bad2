"""What the command lines share: options that name data and machine, and the exit status."""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lib.profiles import PROFILES


def exit_status(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, run: Callable | None = None
) -> int:
    """Does what a command line asks and says on stderr why it could not.

    Args:
        parser: of the command.
        arguments: those of the process by default.
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
        # The last two are torch's, of a device that is not there.
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1


def folder(text: str) -> str:
    """The folder that an option names; an empty text, as of an unset variable, names none."""
    if not text:
        raise ValueError
    return text


def positive(text: str) -> int:
    """The number that an option names, 1 or more."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def add_study_options(
    parser: argparse.ArgumentParser, results: str, profiles: Iterable[str] = PROFILES
) -> None:
    """Add which size and data a command takes, where it runs and where its results lie.

    Args:
        parser: of the command.
        results: what lies in the folder of results.
        profiles: sizes that the command has.
    """
    text = "size (default: quick)"
    parser.add_argument("--profile", default="quick", choices=list(profiles), help=text)
    data = parser.add_mutually_exclusive_group().add_argument
    sets = {"type": folder, "metavar": "DIR"}
    data("--data", help="folder with liberty, notredame and yosemite as downloaded", **sets)
    data("--photos", help="folder of photographs to make the embedded data from", **sets)
    data("--scenes", help="folder of real multi-view photographs, a folder a scene", **sets)
    add = parser.add_argument
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    text = "runs at once (default: as many as the cores hold)"
    add("--jobs", type=positive, metavar="N", help=text)
    add("--results", default="results", help=f"{results} (default: results)", **sets)


def data_of(options: argparse.Namespace) -> str:
    """The data that the options name, as `lib.study.open.open_study` takes it; "mini" by default."""
    for kind in ("photos", "scenes"):
        if getattr(options, kind):
            return f"{kind}:{Path(getattr(options, kind)).resolve()}"
    return str(Path(options.data).resolve()) if options.data else "mini"


def check_device(device: str) -> None:
    """Raises as torch does where a device is not there, before any work."""
    if device != "cpu":
        import torch

        torch.empty(0, device=device)

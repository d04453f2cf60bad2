"""The study's commands in one: ``python -m lib.commands COMMAND …``."""

import argparse
import sys
from collections.abc import Sequence

COMMANDS = {
    "study": "make missing runs, execute the notebooks, build the report (./run_all.sh)",
    "search": "search learning rates",
    "describe": "describe photographs for other pipelines",
    "hpatches": "cut HPatches' patches, describe them, score descriptors",
    "fetch": "fetch the released patch sets and the study's places",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 130 after Ctrl-C, whenever that comes."""
    lines = [f"  {name:10}{what}" for name, what in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m lib.commands",
        description="\n".join(["commands:", *lines]),
        epilog="COMMAND --help lists a command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", metavar="COMMAND", choices=list(COMMANDS))
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of the command")
    chosen = parser.parse_args(arguments)
    try:
        # The import takes seconds, because of torch and OpenCV.
        from importlib import import_module

        from lib.files import ended_cleanly

        command = import_module(f"lib.commands.{chosen.command}")
    except KeyboardInterrupt:
        print("\nStopped before anything was done.")
        return 130
    # On SIGTERM everything unwinds, as on Ctrl-C.
    with ended_cleanly():
        return command.main(chosen.options)


if __name__ == "__main__":
    sys.exit(main())

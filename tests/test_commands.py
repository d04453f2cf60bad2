"""What all commands share: how they end on signals, and options that are left empty."""

from __future__ import annotations

import importlib
import signal
from functools import partial
from pathlib import Path

import pytest
import small_files

from lib.commands.__main__ import COMMANDS, main


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_libraries_are_imported_ends_in_a_line(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        assert name == f"lib.commands.{command}"
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert main([command]) == 130
    assert capsys.readouterr() == ("\nStopped before anything was done.\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_prints_its_own_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    name = "./run_all.sh" if command == "study" else f"python -m lib.commands {command}"
    assert capsys.readouterr().out.startswith(f"usage: {name} ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["study", "--cluster", ""],
        ["study", "--results", ""],
        ["study", "--places", ""],
        ["describe", "folder", "images", "out", "--descriptor", "sift", "--camera", ""],
    ],
)
def test_an_empty_option_is_refused_by_name(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"argument {arguments[-2]}: it is empty\n")


def test_sigterm_ends_a_description_without_a_word_and_keeps_what_is_described(tmp_path: Path) -> None:
    images = small_files.photo_folder(tmp_path / "images", count=60)
    out = tmp_path / "out"
    command = ["lib.commands", "describe", "folder", str(images), str(out)]
    described = partial(out.glob, "parts/" + 64 * "?" + ".part")
    status, _, stderr = small_files.interrupted(
        [*command, "--descriptor", "sift"], lambda: [*described()], signal.SIGTERM
    )
    assert (status, stderr) == (128 + signal.SIGTERM, "")
    assert [*described()]
    assert sorted(path.name for path in out.iterdir()) == ["describe.json", "parts"]

"""requirements.txt is the one list of versions; services and hooks call what the README names."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import conftest
import pytest
import yaml
from packaging.requirements import Requirement
from pre_commit.clientlib import load_config

ROOT = Path(__file__).resolve().parents[1]
REQUIRED = [
    Requirement(line)
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
# Of what this machine and its Python can have.
PINS = {
    of.name: str(of.specifier).removeprefix("==")
    for of in REQUIRED
    if of.marker is None or of.marker.evaluate()
}
# The name that is imported, where it is not the distribution's.
IMPORTED = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "faiss": "faiss-cpu",
    "IPython": "ipython",
    "PIL": "pillow",
    "pre_commit": "pre-commit",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}

WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "study.yml").read_text())
OURS = {"lib", *(file.stem for file in (ROOT / "tests").glob("*.py"))}


def test_every_requirement_is_pinned_exactly() -> None:
    assert REQUIRED
    assert all(re.fullmatch(r"==[\w.]+", str(of.specifier)) for of in REQUIRED)


def test_the_environment_holds_the_pinned_versions() -> None:
    # A local label such as +cpu names a build of the same version.
    found = {name: metadata.version(name).partition("+")[0] for name in PINS}
    assert found == PINS


def test_conda_and_pip_make_the_same_environment() -> None:
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in conda["dependencies"] if isinstance(entry, dict)]
    assert pip == ["-r requirements.txt", "-e ."]
    others = [entry for entry in conda["dependencies"] if isinstance(entry, str)]
    assert [entry.partition("=")[0] for entry in others] == ["python", "pip"], (
        "versions stand in one place"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["dependencies"]["file"] == ["requirements.txt"]
    python = [entry for entry in others if entry.startswith("python=")]
    lowest = project["project"]["requires-python"].removeprefix(">=")
    assert python == [f"python={lowest}"]


def test_the_python_that_every_requirement_is_for_is_tried_first() -> None:
    found = re.search(r"for candidate in (.*); do", (ROOT / "run_all.sh").read_text()).group(1)
    first = found.split()[0].removeprefix("python")
    there = {"python_version": first, "sys_platform": "linux", "platform_machine": "x86_64"}
    assert [of.name for of in REQUIRED if of.marker and not of.marker.evaluate(there)] == []


def test_a_built_package_holds_the_files_that_are_no_code() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["lib"]
    files = {
        file
        for file in (ROOT / "lib").rglob("*")
        if file.is_file() and file.suffix not in (".py", ".pyc") and file.name[0] != "."
    }
    assert files
    assert files == {file for pattern in patterns for file in (ROOT / "lib").glob(pattern)}


@pytest.mark.parametrize("folder", ["lib", "tests"])
def test_what_is_imported_is_pinned(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top in sys.stdlib_module_names or top in OURS:
                    continue
                assert IMPORTED.get(top, top) in PINS, f"{file.name} imports {top}, which is not pinned"


def commands_of_the_readme() -> set[str]:
    """Command lines of README's shell blocks, without their comments."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return {line for line in lines if line}


def test_both_services_call_what_the_readme_tells_a_visitor_to_call() -> None:
    steps = WORKFLOW["jobs"]["ubuntu"]["steps"]
    called = {step["run"]: step["if"] for step in steps if "run" in step}
    assert called == {
        "./run_all.sh test": "github.event_name != 'schedule'",
        "./run_all.sh": "github.event_name == 'schedule'",
    }
    assert called.keys() <= commands_of_the_readme()
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec ./run_all.sh test"


def test_every_push_is_tested_and_the_study_made_once_a_week() -> None:
    # "on" is YAML's word for true.
    events = WORKFLOW[True]
    assert {"push", "pull_request", "schedule"} <= events.keys()
    assert events["push"] is None, "every branch"
    ((_, _, of_month, month, of_week),) = [entry["cron"].split() for entry in events["schedule"]]
    assert (of_month, month) == ("*", "*")
    assert of_week.isdigit()


def test_the_environment_is_cached_by_what_it_is_made_from() -> None:
    cached = used("actions/cache")
    assert cached["path"] == ".venv"
    by = re.findall(r"'([^']+)'", re.search(r"hashFiles\((.*?)\)", cached["key"]).group(1))
    made_from = re.search(r"cat (.*) >\"\$stamp\"", (ROOT / "run_all.sh").read_text()).group(1)
    assert by == made_from.split()
    assert used("actions/setup-python")["python-version"] == "3.11"


def test_the_weekly_study_keeps_its_report_and_tables() -> None:
    kept = used("actions/upload-artifact")["path"].split()
    assert kept == ["results/quick/report.html", "results/quick/tables"]


def test_actions_are_pinned_to_a_major_version() -> None:
    steps = WORKFLOW["jobs"]["ubuntu"]["steps"]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)


def used(action: str) -> dict[str, str]:
    """What the workflow hands to an action."""
    steps = WORKFLOW["jobs"]["ubuntu"]["steps"]
    (found,) = [step["with"] for step in steps if step.get("uses", "").startswith(f"{action}@")]
    return found


def test_a_commit_is_checked_with_the_environments_own_programs() -> None:
    config = load_config(ROOT / ".pre-commit-config.yaml")
    (ours,) = config["repos"]
    assert ours["repo"] == "local"
    called = {hook["id"]: hook["entry"] for hook in ours["hooks"]}
    assert called == {
        "ruff-check": ".venv/bin/ruff check --force-exclude",
        "ruff-format": ".venv/bin/ruff format --force-exclude",
        "notebooks": ".venv/bin/python -m pytest -p no:nbval tests/test_notebooks.py",
    }
    (notebooks,) = [hook["files"] for hook in ours["hooks"] if hook["id"] == "notebooks"]
    assert re.match(notebooks, "notebooks/adasample/table1.ipynb")


def test_the_files_that_go_first_are_there() -> None:
    there = {file.name for folder in ("tests", "notebooks") for file in (ROOT / folder).rglob("*.*")}
    assert set(conftest.LONGEST) <= there


def test_as_many_tests_run_at_once_as_this_process_may_use_cores(monkeypatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {5}, raising=False)
    assert conftest.pytest_xdist_auto_num_workers() == 1


def test_the_tests_said_to_be_fast_are_there() -> None:
    told = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = re.search(r"tests/test_\{(.*?)\}\.py", told).group(1).split(",")
    assert [name for name in names if not (ROOT / "tests" / f"test_{name}.py").is_file()] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_files_and_modules_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {link for link in re.findall(r"\]\(([^)#]+)\)", text) if not link.startswith("http")}
    named |= {f"{name.replace('.', '/')}.py" for name in re.findall(r"-m (lib[\w.]+)", text)}
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []

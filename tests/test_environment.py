"""requirements.txt is the one list of versions."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "notebooks" / "README.md"]
PAGES += sorted((ROOT / "docs").glob("*.md"))
REQUIRED = [
    Requirement(line)
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
# Those that apply to this machine and its Python.
PINS = {
    requirement.name: str(requirement.specifier).removeprefix("==")
    for requirement in REQUIRED
    if requirement.marker is None or requirement.marker.evaluate()
}
# Distributions by the name that is imported, where the two differ.
IMPORTED = {
    "cv2": "opencv-contrib-python-headless",
    "faiss": "faiss-cpu",
    "IPython": "ipython",
    "PIL": "pillow",
    "pre_commit": "pre-commit",
    "pytorch_metric_learning": "pytorch-metric-learning",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}

OURS = {"lib", *(file.stem for file in (ROOT / "tests").glob("*.py"))}


def test_every_requirement_is_pinned_exactly() -> None:
    assert REQUIRED
    assert all(re.fullmatch(r"==[\w.]+", str(requirement.specifier)) for requirement in REQUIRED)


def test_the_environment_holds_the_pinned_versions() -> None:
    # A local label such as +cpu names a build of the same version.
    installed = {name: metadata.version(name).partition("+")[0] for name in PINS}
    assert installed == PINS


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


def test_a_built_package_holds_the_files_that_are_not_code() -> None:
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
def test_every_import_is_pinned(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                if top in sys.stdlib_module_names or top in OURS:
                    continue
                assert IMPORTED.get(top, top) in PINS, f"{file.name} imports {top}, which is not pinned"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_modules_and_headings_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = {link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")}
    paths = {page.parent / link for link in links}
    paths |= {
        ROOT / "lib/commands" / f"{name}.py" for name in re.findall(r"-m lib\.commands (\w+)", text)
    }
    assert [str(path) for path in sorted(paths) if not path.exists()] == []
    for name, anchor in re.findall(r"\]\(([\w/.]*\.md)?#([\w-]+)\)", text):
        linked = ((page.parent / name) if name else page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", linked, flags=re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in headings}

"""Descriptors that others trained: a checkpoint from outside is a row of a table like SIFT's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lib.experiments.rows import handcrafted_job
from lib.files import sha256
from lib.recipes import part
from lib.study.jobs import Job
from lib.study.open import Study


def published_jobs(study: Study, checkpoints: Sequence[str | Path] = ()) -> list[Job]:
    """Rows of published checkpoints, measured as handcrafted descriptors are.

    They are known by their content: the same file elsewhere, on another machine too, is the same row.

    Args:
        study: whose data it takes.
        checkpoints: files in one of `lib.models.published.LAYOUTS`; a row is labelled by the file's
            name without its ending.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: two files of one name, or a text in place of a list of texts.
    """
    if isinstance(checkpoints, str | Path):
        raise ValueError(f"checkpoints is a list of files: give [{str(checkpoints)!r}]")
    paths = [Path(path).expanduser().resolve() for path in checkpoints]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint at {path}; give the path of a published one")
        if [other.stem for other in paths].count(path.stem) > 1:
            raise ValueError(f"two checkpoints are called {path.stem}: rename one, since rows are")
    return [_published_job(study, path) for path in paths]


def _published_job(study: Study, path: Path) -> Job:
    content = sha256(path)
    return replace(
        handcrafted_job(study, "sift"),
        name=f"{re.sub(r'[^A-Za-z0-9._-]', '_', path.stem)}-{content[:8]}",
        label=f"{path.stem} (published)",
        descriptor=part("published", sha256=content),
        paths={"weights": str(path)},
    )

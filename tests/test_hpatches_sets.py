"""Sets of HPatches patches by name, what a study asks of them, and the command line on files."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_study import make_one, name_of, requests_of

from lib.commands import hpatches, study
from lib.data.hpatches import RELEASE, TASKS
from lib.data.hpatches.release import FILES, read_sequences
from lib.data.hpatches.tasks import HPatchesSplit
from lib.data.patchset import PatchSet
from lib.data.sources import HPatchesSets, Source, open_source
from lib.data.synthetic import SequencesSize
from lib.data.synthetic.photographs import packaged_photographs
from lib.profiles import find
from lib.recipes import Budget
from lib.study import Study, open_study
from lib.study.requests import Refused, Request

SMALL = SequencesSize(
    longest_side=200, patches_per_sequence=24, pairs=60, queries=12, distractors=40, seed=1
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> HPatchesSets:
    """Sets of three photographs, generated."""
    photographs = packaged_photographs()[:3]
    sets = HPatchesSets("free-hp", tmp_path_factory.mktemp("data"), SMALL, photographs)
    sets.load("free-hp-full")
    return sets


@pytest.fixture
def real(made: HPatchesSets, tmp_path: Path) -> Path:
    """The same files, laid out as an unpacked release."""
    for part in (RELEASE, TASKS):
        shutil.copytree(made.root / part, tmp_path / "real" / part)
    return tmp_path / "real"


def test_a_split_tests_on_tasks_and_trains_on_classes_of_sixteen(made: HPatchesSets) -> None:
    split, patch_set = made.load("free-hp-a"), made.load("free-hp-a-train")
    assert isinstance(split, HPatchesSplit)
    assert isinstance(patch_set, PatchSet)
    assert (split.name, patch_set.name) == ("free-hp-a", "free-hp-a-train")
    assert len(split.tasks.positives) > 0
    classes, sizes = np.unique(patch_set.point_ids, return_counts=True)
    assert set(sizes) == {16}
    counts = {name: sequence.count for name, sequence in read_sequences(made.root / RELEASE).items()}
    assert len(classes) == sum(counts.values()) - sum(sequence.count for sequence in split.sequences)


def test_generated_patches_are_decoded_once_and_a_releases_each_time(
    real: Path, made: HPatchesSets, tmp_path: Path
) -> None:
    sets = HPatchesSets("hpatches", tmp_path / "cache", SMALL, real=real)
    ours, theirs = (item.load(f"{item.stem}-full").sequences[0] for item in (made, sets))
    np.testing.assert_array_equal(ours.patches("e2"), theirs.patches("e2"))
    again = next(item for item in made.load("free-hp-full").sequences if item.name == ours.name)
    assert again.patches("e2") is ours.patches("e2")
    assert theirs.patches("e2") is not theirs.patches("e2")
    with pytest.raises(ValueError, match="read-only"):
        ours.patches("e2")[:] = 0


def test_a_users_homographies_become_one_split_of_all(made: HPatchesSets, tmp_path: Path) -> None:
    sets = HPatchesSets(
        "real-hp", tmp_path, replace(SMALL, queries=6), homographies=(made.root / "sequences",)
    )
    assert sets.names == ("real-hp-full", "real-hp-images")
    split = sets.load("real-hp-full")
    assert sorted(sequence.name for sequence in split.sequences) == sorted(
        read_sequences(made.root / RELEASE)
    )
    assert len(split.tasks.queries) == 6


def test_images_are_the_sequences_of_the_patches_and_a_release_has_none(
    made: HPatchesSets, real: Path, tmp_path: Path
) -> None:
    folders = (made.root / "sequences",)
    custom = HPatchesSets("real-hp", tmp_path / "own", replace(SMALL, queries=6), homographies=folders)
    for sets in (made, custom):
        images = sets.load(sets.images)
        assert {sequence.name for sequence in images} == set(read_sequences(made.root / RELEASE))
        assert {sequence.folder.parent for sequence in images} == set(folders)
    release = HPatchesSets("hpatches", tmp_path / "cache", SMALL, real=real)
    assert release.images is None
    assert not [name for name in release.names if "images" in name]


def real_source(real: Path, tmp_path: Path) -> Source:
    for name in ("liberty", "notredame", "yosemite"):
        (real / name).mkdir()
    return open_source(str(real), tmp_path / "data", SMALL)


def test_a_study_without_the_release_leaves_out_what_needs_it(
    real: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(real / RELEASE)
    real_source(real, tmp_path)
    arguments = ["--profile", "paper", "--data", str(real), "--results", str(tmp_path), "--plan"]
    assert study.main([*arguments, "--only", "adasample/t*[2y]"]) == 0
    stdout = capsys.readouterr().out
    assert "left out: adasample/table2, since" in stdout
    assert "holds no hpatches-release with tasks" in stdout
    planned = [line.split()[0] for line in stdout.splitlines() if line.startswith("adasample/")]
    assert planned == ["adasample/theory"]


def test_real_sequences_are_found_one_and_two_levels_below(made: HPatchesSets, tmp_path: Path) -> None:
    sequences = made.root / "sequences"
    shutil.copytree(sequences / "i_coins", tmp_path / "i_coins")
    shutil.copytree(sequences / "v_coins", tmp_path / "more" / "v_coins")
    (tmp_path / "photos" / "2020").mkdir(parents=True)
    (tmp_path / "README.md").write_text("loose")
    opened = open_study(real=str(tmp_path))
    folders = opened.source.real_hpatches.homographies
    assert [path.name for path in folders] == ["i_coins", "v_coins"]
    with pytest.raises(Refused, match=r"photos' is no folder with homography sequences"):
        open_study(real=str(tmp_path / "photos"))


@pytest.fixture(scope="module")
def trained(made: HPatchesSets, tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Request, str]:
    """A run of four steps on HPatches' own patches, measured on the other side of the split."""
    profile = replace(
        find("quick"),
        width=1 / 16,
        budget=Budget(batch_pairs=8, epoch_pairs=16, epochs=2),
        stages=(1.0,),
        sequences=SMALL,
    )
    source = replace(open_source("free", made.folder, SMALL), own_hpatches=made)
    opened = replace(open_study(), profile=profile, source=source)
    opened = replace(opened, results=tmp_path_factory.mktemp("results"), reading=False)
    tested = {"hpatches": ["free-hp-a"]}
    [request] = requests_of(
        opened,
        ["adasample_aug_gen"],
        seeds=[0],
        places=["free-hp-a-train"],
        measures=tested,
        tested=False,
    )
    return opened, request, make_one(opened, request)


def test_a_network_trains_on_classes_of_sixteen_and_is_measured_in_all_tasks(trained) -> None:
    opened, _, name = trained
    measured = opened.store.find(name).metrics["hpatches", "free-hp-a"]["values"]
    assert {"verification", "matching", "retrieval", "retrieval.pools"} <= set(measured)
    assert all(0 <= value <= 100 for value in measured.values())


def test_other_test_data_costs_an_evaluation_and_other_training_data_a_training(
    trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, request, name = trained
    run, digest = opened.store.find(name), Source.digest

    def with_other(changed: str) -> None:
        monkeypatch.setattr(
            Source, "digest", lambda own, asked: "0" * 8 if asked == changed else digest(own, asked)
        )

    with_other("free-hp-a")
    assert run.lacks(request, opened.source) == [("hpatches", "free-hp-a")]
    assert name_of(opened, request) == name
    with_other("free-hp-a-train")
    assert run.lacks(request, opened.source) == []
    assert name_of(opened, request) != name


def test_written_descriptors_score_as_they_were_measured(
    trained, made: HPatchesSets, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened, _, name = trained
    path = opened.store.json_path(name)
    out, numbers = tmp_path / "descriptors", tmp_path / "numbers.json"
    assert hpatches.main(["describe", str(made.root), str(out), "--run", str(path)]) == 0
    assert sorted(p.name for p in (out / "v_coins").iterdir()) == sorted(f"{f}.csv" for f in FILES)
    score = ["score", str(made.root), str(out), "--split", "a", "--json", str(numbers)]
    assert hpatches.main(score) == 0
    measured = opened.store.find(name).metrics["hpatches", "free-hp-a"]["values"]
    scored = json.loads(numbers.read_text())
    assert scored.pop("retrieval.ties") == pytest.approx(0, abs=1e-5)
    # The command leaves out the pools that so small a task does not have.
    assert "retrieval" in scored
    assert scored == pytest.approx({key: measured[key] for key in scored}, abs=1e-5)
    assert f"{measured['matching']:.2f}" in capsys.readouterr().out

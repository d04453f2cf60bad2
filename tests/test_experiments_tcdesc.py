"""TCDesc's runs: the jobs of each artefact, their differences, learning rates and batch sizes."""

from __future__ import annotations

from pathlib import Path

from paper_records import changed, rate_of

from lib import profiles
from lib.recipes import RECIPES, TCDESC_BUDGET, TCDESC_DSM, TCDESC_HN, values
from lib.study.artefacts import tcdesc, together
from lib.study.artefacts.searches import search_jobs
from lib.study.catalogue import SEARCHED
from lib.study.jobs import Job, configuration, merged, record_path
from lib.study.open import Study, open_study

EVERY = {**RECIPES, **tcdesc.VARIANTS}


def pairs(job: Job, study: Study) -> int:
    return configuration(job, study)["profile"]["budget"]["batch_pairs"]


def test_each_pair_of_tcdesc_differs_only_in_the_topology() -> None:
    for loss, (with_it, without) in tcdesc.TOPOLOGY_PAIRS.items():
        ours, theirs = ({**EVERY, **together.EQUAL}[key] for key in (with_it, without))
        assert changed(ours, theirs) == {"positive"}, loss
        assert theirs.positive.name == "pair"
    assert EVERY["hardnet_long"].loss == RECIPES["hardnet_aug"].loss
    assert changed(EVERY["dsm_long"], RECIPES["dsm_aug"]) == {"budget"}


def test_ablations_change_only_the_positive_of_tcdesc_dsm_and_all_differ() -> None:
    varied = {key: recipe for key, recipe in tcdesc.VARIANTS.items() if key not in tcdesc.SEARCHED}
    assert len(varied) == 8 + 6 + 6
    for key, recipe in varied.items():
        assert changed(recipe, TCDESC_DSM) == {"positive"}, key
        assert recipe.positive.name == "topology"
    for entries in ([str(values(r)) for r in EVERY.values()], [r.label for r in EVERY.values()]):
        assert len(set(entries)) == len(entries)


def test_tcdesc_and_equally_long_runs_have_larger_batches_only_in_quick(study: Study) -> None:
    table = merged(tcdesc.table2(study), study)
    sizes = {job.name: pairs(job, study) for job in table if job.recipe}
    assert {name for name, size in sizes.items() if size == 128} == set(tcdesc.METHODS)
    assert {size for size in sizes.values()} == {64, 128}
    assert {pairs(job, study) for job in tcdesc.table1(study)} == {128}
    long = [
        profiles.find("evening").sized_for(recipe).budget_for(recipe)
        for recipe in (TCDESC_DSM, RECIPES["dsm_aug"])
    ]
    assert long[0] == long[1]
    paper = profiles.find("paper")
    assert paper.sized_for(TCDESC_HN).budget_for(TCDESC_HN) == TCDESC_BUDGET


def test_searches_have_the_batches_that_tables_train_with(study: Study) -> None:
    for name, size in (("dsm_long", 128), ("tcdesc_hn_aug", 128), ("dsm_aug", 64), ("sosnet", 64)):
        jobs = search_jobs(study, name, SEARCHED[name], 0.1)
        assert {pairs(job, study) for job in jobs} == {size}
    assert set(tcdesc.SEARCHED) <= set(SEARCHED)


def test_topology_on_other_losses_has_the_batches_of_its_own_rows(study: Study) -> None:
    """Of 63 others, 16 neighbours are a quarter, and as many match by chance."""
    jobs = tcdesc.other_losses(study)
    assert {pairs(job, study) for job in jobs} == {128}
    equal = {record_path(job, study) for job in together.equal_footing(study)}
    baselines = [job for job in jobs if job.name in ("equal_adasample_aug_gen", "equal_hynet_aug")]
    assert {record_path(job, study) for job in baselines} <= equal
    assert all(rate_of(job) == job.name for job in jobs)


def test_real_images_are_matched_alongside_the_study_s_own(study: Study, tmp_path: Path) -> None:
    for name in ("v_one", "v_two"):
        folder = tmp_path / name
        folder.mkdir()
        for number in range(1, 7):
            (folder / f"{number}.ppm").touch()
        (folder / "H_1_2").touch()
    opened = open_study(real=str(tmp_path))
    assert tcdesc.image_sets(opened) == ["mini-hp-images", "real-hp-images"]

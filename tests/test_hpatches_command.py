"""The command line on HPatches files: what it writes, and what it refuses before any work."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pandas as pd
import pytest
import torch

from lib.benchmarks.subject import describe
from lib.commands import hpatches
from lib.data.hpatches import RELEASE
from lib.data.hpatches.descriptors import read_descriptors
from lib.data.hpatches.homographies import write_homography_sequence
from lib.data.hpatches.release import as_64, read_sequences
from lib.data.images import read_grey
from lib.models import handcrafted, published, tfeat

AMOUNTS = ["--patches", "8", "--pairs", "20", "--queries", "3", "--distractors", "20"]
STILL = np.repeat(np.eye(3)[None], 5, axis=0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Patches and tasks of two sequences of blobs, built by the command."""
    folder = tmp_path_factory.mktemp("hpatches")
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:200, :260]
    for name in ("i_one", "v_two"):
        image = np.full(y.shape, 110.0)
        for _ in range(60):
            cx, cy, size = rng.uniform(0, 260), rng.uniform(0, 200), rng.uniform(2, 6)
            image += rng.uniform(-90, 90) * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * size**2))
        images = [image.clip(0, 255).astype(np.uint8)] * 6
        write_homography_sequence(folder / "sequences" / name, images, STILL)
    output = str(folder / "made")
    assert hpatches.main(["build", output, str(folder / "sequences"), *AMOUNTS]) == 0
    return folder / "made"


@pytest.fixture(scope="module")
def described(data: Path) -> Path:
    out = data.parent / "sift"
    assert hpatches.main(["describe", str(data), str(out), "--descriptor", "sift"]) == 0
    return out


def check_written(data: Path, out: Path, model: torch.nn.Module) -> None:
    for sequence in read_sequences(data / RELEASE).values():
        written = read_descriptors(out, [sequence])
        expected = describe(model, as_64(sequence.patches("t3")))
        np.testing.assert_allclose(written[13], expected, atol=1e-5)


def test_written_descriptors_are_those_of_sift(data: Path, described: Path) -> None:
    check_written(data, described, handcrafted.Sift())


def test_written_descriptors_are_those_of_rootsift_or_a_published_network(
    data: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "rootsift")
    assert hpatches.main(["describe", str(data), out, "--descriptor", "rootsift"]) == 0
    check_written(data, tmp_path / "rootsift", handcrafted.Sift(root=True))
    weights = tmp_path / "weights.pth"
    torch.save({"epoch": 3, "state_dict": tfeat.TFeat().state_dict()}, weights)
    out = str(tmp_path / "published")
    assert hpatches.main(["describe", str(data), out, "--descriptor", str(weights)]) == 0
    check_written(data, tmp_path / "published", published.load(weights))


def test_numbers_go_to_a_file_in_a_new_folder(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "numbers.json"
    assert hpatches.main(["score", str(data), str(described), "--json", str(path)]) == 0
    numbers = json.loads(path.read_text())
    stdout = capsys.readouterr().out
    assert f"{numbers['matching']:.2f}" in stdout
    assert "ties" not in stdout


def test_pools_that_a_small_task_has_not_are_left_out_and_said(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = scores(data, described, tmp_path)
    assert not [key for key in numbers if key.endswith((".100", ".20000", ".pools"))]
    assert "retrieval.easy.all" in numbers
    stdout = capsys.readouterr().out
    assert "pool sizes" not in stdout
    (line,) = [line for line in stdout.splitlines() if "the whole pools are" in line]
    assert line.endswith("; pools of 100, 500, 1000, 5000, 10000, 15000, 20000 are left out")


def copies(described: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file of descriptors, and the path of its changed copy."""
    for path in described.rglob("*.csv"):
        copy = folder / path.relative_to(described)
        copy.parent.mkdir(parents=True, exist_ok=True)
        yield path, copy


def test_the_share_of_retrieval_due_to_ties_is_printed(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, copy in copies(described, tmp_path):
        copy.write_text("0.6,0.8\n" * len(path.read_text().splitlines()))
    assert hpatches.main(["score", str(data), str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("ties decide ")
    assert float(lines[-1].split()[2]) > 50, (
        "the benchmark ranks views before equally distant distractors"
    )


def test_the_file_of_numbers_has_the_share_of_retrieval_due_to_ties(
    data: Path, described: Path, tmp_path: Path
) -> None:
    assert scores(data, described, tmp_path)["retrieval.ties"] == pytest.approx(0, abs=1e-6)
    for path, copy in copies(described, tmp_path / "alike"):
        copy.write_text("0.6,0.8\n" * len(path.read_text().splitlines()))
    numbers = scores(data, tmp_path / "alike", tmp_path)
    assert 50 < numbers["retrieval.ties"] <= numbers["retrieval"]


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused_to_describe(data: Path, out: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Describe into a folder, check that this is refused and changes nothing, and return the message."""
    before = contents(out)
    assert hpatches.main(["describe", str(data), str(out), "--descriptor", name]) == 1
    assert contents(out) == before
    (line,) = capsys.readouterr().err.splitlines()
    assert str(out) in line
    assert "name" in line
    assert "or remove it" in line
    return line


def test_a_folder_of_another_descriptor_is_not_written_into(
    data: Path, described: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "descriptor" in refused_to_describe(data, described, "rootsift", capsys)


def test_a_folder_of_other_weights_of_the_same_name_is_not_written_into(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights, out = tmp_path / "weights.pth", tmp_path / "out"
    torch.save(tfeat.TFeat().state_dict(), weights)
    assert hpatches.main(["describe", str(data), str(out), "--descriptor", str(weights)]) == 0
    torch.save(tfeat.TFeat().state_dict(), weights)
    assert "weights" in refused_to_describe(data, out, str(weights), capsys)


def test_descriptors_of_a_release_are_not_those_of_the_same_release_with_another_seed(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuilt, sequences = tmp_path / "rebuilt", data.parent / "sequences"
    assert hpatches.main(["build", str(rebuilt), str(sequences), *AMOUNTS, "--seed", "1"]) == 0
    assert "release" in refused_to_describe(rebuilt, described, "sift", capsys)
    assert str(described) in refusal(rebuilt, described, capsys)


def test_a_folder_whose_descriptor_nothing_names_is_scored_but_not_written_into(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = tmp_path / "foreign"
    for path, copy in copies(described, foreign):
        copy.write_bytes(path.read_bytes())
    assert scores(data, foreign, tmp_path) == scores(data, described, tmp_path)
    refused_to_describe(data, foreign, "sift", capsys)
    (foreign / "format.json").write_text('{"packed": false}')
    assert scores(data, foreign, tmp_path) == scores(data, described, tmp_path)
    refused_to_describe(data, foreign, "sift", capsys)


def test_the_same_command_goes_on_after_an_interruption(
    data: Path, described: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "stopped"
    shutil.copytree(described, stopped)
    shutil.rmtree(stopped / "v_two")
    (stopped / "i_one" / "t5.csv").unlink()
    assert hpatches.main(["describe", str(data), str(stopped), "--descriptor", "sift"]) == 0
    assert contents(stopped) == contents(described)


def test_homographies_to_the_first_image_are_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forward = np.stack([[[1, 0.1 * k, 9 * k], [-0.1 * k, 1, 20], [0, 0, 1]] for k in range(1, 6)])
    for name, homographies in (("i_one", forward), ("v_two", np.linalg.inv(forward))):
        image = read_grey(data.parent / "sequences" / name / "1.ppm")
        images = [image, *(cv2.warpPerspective(image, matrix, image.shape[::-1]) for matrix in forward)]
        write_homography_sequence(tmp_path / "sequences" / name, images, homographies)
    assert hpatches.main(["build", str(tmp_path / "out"), str(tmp_path / "sequences")]) == 1
    stderr = capsys.readouterr().err
    assert f"{tmp_path / 'sequences' / 'v_two'}: 3.ppm contradicts its homography" in stderr
    assert "the homographies lead to the first image" in stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("delimiter", [";", " "])
def test_a_wrong_delimiter_gives_a_short_error(
    data: Path, described: Path, delimiter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hpatches.main(["score", str(data), str(described), "--delimiter", delimiter]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(described / "i_one") in line
    assert line.endswith("; or name another delimiter")
    assert len(line) < len(str(described)) + 180


def scores(data: Path, folder: Path, tmp_path: Path, *options: str) -> dict[str, float]:
    path = tmp_path / "numbers.json"
    assert hpatches.main(["score", str(data), str(folder), "--json", str(path), *options]) == 0
    return json.loads(path.read_text())


def refusal(data: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert hpatches.main(["score", str(data), str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_packed_descriptors_of_describe_are_scored_as_the_bits_that_they_are(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "orb"
    assert hpatches.main(["describe", str(data), str(out), "--descriptor", "orb"]) == 0
    numbers = scores(data, out, tmp_path)
    # The same CSVs as another program leaves them.
    (out / "format.json").unlink()
    assert "say --packed if" in refusal(data, out, capsys)
    assert scores(data, out, tmp_path, "--packed") == numbers
    assert scores(data, out, tmp_path, "--no-packed") != numbers


def test_sift_in_whole_numbers_is_scored_as_plain_numbers_on_request(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "opencv"
    for path, copy in copies(described, folder):
        whole = (512 * np.loadtxt(path, delimiter=",")).round().clip(0, 255)
        # The form of the benchmark's own program for OpenCV's SIFT.
        np.savetxt(copy, whole, delimiter=",", fmt="%10.5f")
    assert "or --no-packed if they are plain numbers, as SIFT's are" in refusal(data, folder, capsys)
    plain = scores(data, folder, tmp_path, "--no-packed")
    exact = scores(data, described, tmp_path)
    assert plain["matching"] == pytest.approx(exact["matching"], abs=5)


def test_descriptors_written_with_a_row_index_are_refused(
    data: Path, described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, copy in copies(described, tmp_path):
        pd.read_csv(path, header=None).to_csv(copy, header=False)
    line = refusal(data, tmp_path, capsys)
    assert f"{tmp_path / 'i_one' / 'ref.csv'}: column 1 of 129 numbers the rows" in line

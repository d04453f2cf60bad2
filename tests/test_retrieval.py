"""Image retrieval: the cities' layout, average precision, and both engines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import literal_retrieval as literal
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_matching_keypoints import texture

from lib.benchmarks import retrieval
from lib.benchmarks.retrieval import Inverted, average_precision, invert, learn
from lib.benchmarks.subject import Subject
from lib.data import whole_images as layout
from lib.data.whole_images import City, Query
from lib.features.patches import Features

GREY = np.full((60, 80), 90, np.uint8)


def query(good: str = "", ok: str = "", junk: str = "", name: str = "spire_1") -> Query:
    return Query(name, "a", (1.5, 2.0, 40.0, 50.0), *map(frozenset, (good, ok, junk)))


def write_city(
    folder: Path, images: Mapping[str, np.ndarray], queries: Sequence[Query], prefix: str = ""
) -> None:
    """Write photographs and ground truth as in Oxford5k, with a prefix before a query's photograph."""
    for subfolder in ("images", "gt_files"):
        (folder / subfolder).mkdir(parents=True)
    for name, grey in images.items():
        cv2.imwrite(str(folder / "images" / f"{name}.jpg"), grey)
    for entry in queries:
        box = " ".join(map(str, entry.box))
        (folder / "gt_files" / f"{entry.name}_query.txt").write_text(f"{prefix}{entry.image} {box}\n")
        for grade in ("good", "ok", "junk"):
            lines = "\n".join(getattr(entry, grade))
            (folder / "gt_files" / f"{entry.name}_{grade}.txt").write_text(lines)


@pytest.fixture
def city(tmp_path: Path) -> Path:
    queries = [query("ab", "c", "d"), query("b", "", "a", name="spire_2")]
    photographs = dict.fromkeys("abcde", GREY)
    write_city(tmp_path, photographs, queries, "oxc1_")
    return tmp_path


def test_a_city_is_read_in_its_released_layout(city: Path) -> None:
    loaded = layout.read_city(city)
    assert [*loaded.images] == list("abcde")
    assert loaded.queries == (query("ab", "c", "d"), query("b", "", "a", name="spire_2"))


def test_masks_and_thumbnails_are_no_photographs_of_a_city(city: Path) -> None:
    for folder in ("masks", ".thumbnails"):
        (city / folder).mkdir()
        cv2.imwrite(str(city / folder / "a.jpg"), GREY)
    assert layout.read_city(city).images["a"] == city / "images" / "a.jpg"


def test_photographs_of_a_city_may_have_any_ending_that_a_places_may_have(city: Path) -> None:
    for name, renamed in {"a": "a.JPG", "b": "b.jpeg"}.items():
        (city / "images" / f"{name}.jpg").rename(city / "images" / renamed)
    (city / "images" / "c.jpg").unlink()
    cv2.imwrite(str(city / "images" / "c.png"), GREY)
    # COLMAP's mask of a photograph.
    cv2.imwrite(str(city / "images" / "d.jpg.png"), GREY)
    names = [path.name for path in layout.read_city(city).images.values()]
    assert names == ["a.JPG", "b.jpeg", "c.png", "d.jpg", "e.jpg"]


def test_ground_truth_is_read_with_the_mark_of_windows_editors(city: Path) -> None:
    before = layout.read_city(city)
    for file in (city / "gt_files").iterdir():
        file.write_text(file.read_text(), encoding="utf-8-sig")
    assert layout.read_city(city) == before


@pytest.mark.parametrize("second", ["more/a.jpg", "images/a.png"])
def test_two_photographs_of_one_name_are_refused_by_name(city: Path, second: str) -> None:
    (city / "more").mkdir()
    cv2.imwrite(str(city / second), GREY)
    named = rf"images/a\.jpg and .*{second} are both a to the ground truth: rename"
    with pytest.raises(ValueError, match=named):
        layout.read_city(city)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("spire_1_good.txt", "nowhere"),
        ("spire_1_query.txt", "oxc1_a 3 2 1"),
    ],
)
def test_wrong_ground_truth_is_named(city: Path, file: str, content: str) -> None:
    (city / "gt_files" / file).write_text(content)
    with pytest.raises(ValueError, match="spire_1"):
        layout.read_city(city)


def literal_ap(ranked: Sequence[str], truth: Query) -> float:
    """Sum trapezoids from recall to recall, step by step, as the benchmark describes."""
    relevant = truth.good | truth.ok
    recall, precision, area, hits, rank = 0.0, 1.0, 0.0, 0, 0
    for name in ranked:
        if name in truth.junk:
            continue
        rank += 1
        hits += name in relevant
        point = hits / len(relevant), hits / rank
        area += (point[0] - recall) * (precision + point[1]) / 2
        recall, precision = point
    return area


@given(
    st.permutations("abcdefgh"),
    st.lists(st.sampled_from(["g", "o", "j", "", "gj", "oj"]), min_size=8, max_size=8),
)
def test_average_precision_is_the_published_one(ranked: list[str], grades: list[str]) -> None:
    """A photograph may be junk and right at once."""
    names = {
        g: "".join(n for n, grade in zip("abcdefgh", grades, strict=True) if g in grade) for g in "goj"
    }
    truth = query(names["g"], names["o"], names["j"])
    if not truth.good | truth.ok:
        with pytest.raises(ValueError, match="spire_1 has no good and no ok"):
            average_precision(ranked, truth)
        return
    assert average_precision(ranked, truth) == pytest.approx(literal_ap(ranked, truth))


def test_a_photograph_that_is_ranked_twice_is_refused() -> None:
    # Counted twice, it would come to an average precision of 2.
    with pytest.raises(ValueError, match="spire_1: a photograph is ranked twice"):
        average_precision([*"aaaaabcd"], query("abcd", "", ""))


@pytest.mark.parametrize("other", ["{}.jpg", "images/{}", "oxc1_{}", "images/oxc1_{}.jpg"])
def test_a_ranking_by_other_names_than_the_grades_is_refused(other: str) -> None:
    ranked = [other.format(name) for name in "abc"]
    with pytest.raises(ValueError, match="is ranked, which its grades call 'a'"):
        average_precision(ranked, query("ab", "", ""))


def test_a_ranking_of_indices_or_paths_is_refused() -> None:
    for ranked in ([0, 1], [Path("a"), Path("b")]):
        with pytest.raises(ValueError, match="spire_1: a ranking has names of photographs"):
            average_precision(ranked, query("ab", "", ""))


@pytest.fixture(scope="module")
def blobs() -> list[np.ndarray]:
    """Eight images of 30 features around six directions."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 16))
    return [
        (centres[rng.integers(6, size=30)] + 0.05 * rng.standard_normal((30, 16))).astype(np.float32)
        for _ in range(8)
    ]


def test_signatures_halve_a_words_features(blobs: list[np.ndarray]) -> None:
    vocabulary = learn(blobs, 12, 16)
    collection = invert(vocabulary, blobs)
    assert np.bincount(collection.image).tolist() == [30] * 8
    np.testing.assert_allclose(vocabulary.projection.T @ vocabulary.projection, np.eye(16), atol=1e-5)
    # A median splits a word's features in halves. Of an odd number, one is the median itself, which
    # rounding puts on either side.
    bits = np.unpackbits(collection.signature, axis=1)
    for word in range(12):
        signatures = bits[collection.word == word]
        assert set(signatures.sum(axis=0)) <= {len(signatures) // 2, (len(signatures) + 1) // 2}
    repeated = learn(blobs, 12, 16)
    np.testing.assert_array_equal(repeated.centres, vocabulary.centres)


def test_a_word_takes_twenty_features(blobs: list[np.ndarray]) -> None:
    assert len(learn(blobs, 10_000, 16).centres) == 8 * 30 // 20
    with pytest.raises(ValueError, match="19 features are too few for a visual word"):
        learn([blobs[0][:19]], 10, 16)


def placed(points: np.ndarray, frame: np.ndarray) -> retrieval.Placed:
    maps = np.concatenate([np.broadcast_to(frame, (len(points), 2, 2)), points[:, :, None]], axis=2)
    return np.arange(len(points)), maps.astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
def test_matches_agree_as_published(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(4, 40))
    points, linear = draw.uniform(0, 1000, (count, 2)), np.eye(2) + 0.1 * draw.standard_normal((2, 2))
    # Position errors near the tolerance, and errors of the frames too.
    moved = points @ linear.T + draw.uniform(2, 20) * draw.standard_normal((count, 2))
    one, other = placed(points, np.eye(2)), placed(moved, linear)
    other[1][:, :, :2] += 0.05 * draw.standard_normal((count, 2, 2))
    listed = [
        [(n, *map(float, region[:, 2]), region[:, :2].astype(float)) for n, region in enumerate(maps)]
        for _, maps in (one, other)
    ]
    assert retrieval.agreeing(one, other, 1024) == literal.verified(*listed, 1024)


Signed = list[tuple[int, list[int]]]


def signed_features(draw: np.random.Generator, centres: np.ndarray, count: int) -> Signed:
    """Draw words, the first more often than the last, with signatures near their words' or far."""
    frequencies = 1 / (np.arange(len(centres)) + 3)
    features = []
    for word in draw.choice(len(centres), count, p=frequencies / frequencies.sum()):
        flipped = draw.random(centres.shape[1]) < draw.uniform(0, 0.3)
        features.append((int(word), (centres[word] ^ flipped).astype(int).tolist()))
    return features


def parted(features: Signed) -> tuple[np.ndarray, np.ndarray]:
    """Return words and packed signatures."""
    word, bits = zip(*features, strict=True)
    return np.array(word), np.packbits(np.array(bits), axis=1)


def indexed(images: Sequence[Signed], words: int) -> Inverted:
    word, signature = parted([feature for image in images for feature in image])
    image = np.repeat(np.arange(len(images)), [*map(len, images)])
    return Inverted(word, image, signature, len(images), words)


def decided(words: int, bits: int) -> np.ndarray:
    """Draw the engine's decisions for bits that are set as often as not."""
    return np.random.default_rng(0).random((words, bits))


# More images than the shortlist takes, with reliable ones beyond it; and fewer, not all reliable.
@pytest.mark.parametrize(("count", "features"), [(200, 80), (60, 20)])
@pytest.mark.parametrize("seed", range(2))
def test_hamming_expansion_is_the_published_one(count: int, features: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    centres = draw.random((50, 128)) < 0.5
    images = [
        signed_features(draw, centres, draw.integers(features // 5, features)) for _ in range(count)
    ]
    images[7] = []
    query_features = signed_features(draw, centres, 12)
    counts = [literal.strict_matches(query_features, image) for image in images]
    ranking = literal.ranked([literal.similarity(query_features, image, [1.0] * 50) for image in images])
    if count > retrieval.AHEAD:
        assert any(counts[number] >= 5 for number in ranking[100:])
    else:
        assert 0 < sum(number >= 5 for number in counts) < sum(number > 0 for number in counts)
    scores = retrieval.hamming_expansion(*parted(query_features), indexed(images, 50))
    expected = literal.hamming_expansion(query_features, images, decided)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("numbers", [64, 128])
def test_descriptors_too_short_for_the_thresholds_of_128_bits_are_told(numbers: int) -> None:
    draw = np.random.default_rng(0)
    maps = np.tile(np.eye(2, 3, dtype=np.float32), (40, 1, 1))
    maps[:, :, 2] = draw.uniform(0, 300, (40, 2))
    described = draw.standard_normal((40, numbers)).astype(np.float32)
    city = [Features(maps, np.ones(40), described, (320, 320))]
    if numbers == retrieval.BITS:
        retrieval.engines(city, city)
    else:
        with pytest.raises(UserWarning, match="signatures of 64 bits"):
            retrieval.engines(city, city)


def seen_again(
    draw: np.random.Generator, base: np.ndarray, points: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Descriptors and frames of an image: landmarks that others share, some out of place."""
    landmarks = draw.choice(len(base), count)
    spread = draw.uniform(0, 0.06, (count, 1))
    descriptors = base[landmarks] + spread * draw.standard_normal((count, base.shape[1]))
    linear = np.eye(2) * draw.uniform(0.7, 1.4) + draw.uniform(-0.2, 0.2, (2, 2))
    moved = points[landmarks] @ linear.T + draw.uniform(0, 100, 2) + 4 * draw.standard_normal((count, 2))
    outliers = draw.random(count) < draw.random() / 2
    moved[outliers] = draw.uniform(0, 1000, (outliers.sum(), 2))
    frames = np.broadcast_to(linear, (count, 2, 2)) + 0.02 * draw.standard_normal((count, 2, 2))
    return descriptors.astype(np.float32), np.dstack([frames, moved]).astype(np.float32)


@pytest.mark.parametrize("seed", range(2))
def test_every_engine_is_the_published_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = draw.standard_normal((30, 128))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    points = draw.uniform(0, 1000, (30, 2))
    collection = [seen_again(draw, base, points, count) for count in [60, *draw.integers(5, 40, 49)]]
    collection[5] = (collection[5][0][:0], collection[5][1][:0])
    training = [seen_again(draw, base, points, 30) for _ in range(20)]
    sides = [int(side) for side in draw.integers(900, 1200, 50)]
    searched, learned_on = (
        [
            Features(maps, np.ones(len(maps)), descriptors, (side, 1))
            for (descriptors, maps), side in zip(photographs, sides, strict=False)
        ]
        for photographs in (collection, training)
    )
    engines = retrieval.engines(learned_on, searched)
    chosen = np.arange(len(collection[0][0])) % 4 > 0
    vocabulary = learn([f.descriptors for f in learned_on], retrieval.VISUAL_INDEX_WORDS, 128)

    word_images = [
        [
            (
                literal.nearest_words(descriptor, vocabulary.centres, 1)[0],
                *map(float, region[:, 2]),
                region[:, :2].astype(float),
            )
            for descriptor, region in zip(*image, strict=True)
        ]
        for image in collection
    ]
    query_features = [
        feature for feature, queried in zip(word_images[0], chosen, strict=True) if queried
    ]
    expected = literal.visual_index(query_features, word_images, sides)
    assert any(0 < value < 1 for value in expected)
    assert sum(value >= 6 for value in expected) > 1
    np.testing.assert_allclose(engines["visual_index"](0, chosen), expected, rtol=1e-9)

    def signed(descriptors: np.ndarray, count: int) -> Signed:
        return [
            (word, literal.signature(descriptor, word, vocabulary))
            for descriptor in descriptors
            for word in literal.nearest_words(descriptor, vocabulary.centres, count)
        ]

    images = [signed(descriptors, 1) for descriptors, _ in collection]
    scores = []
    for engine, count in (("hqe_single", 1), ("hqe_multiple", 3)):
        queried = signed(collection[0][0][chosen], count)
        scores.append(engines[engine](0, chosen))
        expected = literal.hamming_expansion(queried, images, decided)
        np.testing.assert_allclose(scores[-1], expected, rtol=1e-9, atol=1e-12)
    assert np.abs(scores[0] - scores[1]).max() > 0.01


@pytest.fixture(scope="module")
def two_cities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, City]:
    """Each with shifted crops of two landmarks, and with other textures."""
    root = tmp_path_factory.mktemp("cities")
    cities = {}
    for number, name in enumerate(layout.CITIES):
        photographs: dict[str, np.ndarray] = {}
        queries = []
        for landmark in range(2):
            image = texture(10 * number + landmark, 220)
            crops = {f"{name}_{landmark}_{n}": image[9 * n :][:150, 7 * n :][:, :160] for n in range(3)}
            photographs |= crops
            queries.append(
                Query(
                    f"l{landmark}_1",
                    min(crops),
                    (5, 5, 155, 145),
                    frozenset(crops),
                    frozenset(),
                    frozenset(),
                )
            )
        for n in range(4):
            photographs[f"{name}_other_{n}"] = texture(10 * number + 4 + n, 160)
        write_city(root / name, photographs, queries)
        cities[name] = layout.read_city(root / name)
    return cities


def test_every_engine_finds_the_images_of_a_landmark(two_cities: dict[str, City]) -> None:
    from functools import partial

    from lib.benchmarks.subject import describe
    from lib.models import handcrafted

    numbers = retrieval.measure(Subject(partial(describe, handcrafted.Sift(root=True))), two_cities)
    for engine in ("visual_index", "hqe_single", "hqe_multiple"):
        assert numbers[engine] > 90
        for name in layout.CITIES:
            precisions = [numbers[f"{engine}.{name}.l{landmark}_1"] for landmark in range(2)]
            assert numbers[f"{engine}.{name}"] == pytest.approx(np.mean(precisions))


def test_a_ranking_that_equal_scores_decide_is_told(two_cities: dict[str, City]) -> None:
    def constant(patches: np.ndarray) -> np.ndarray:
        return np.ones((len(patches), 128), np.float32)

    with pytest.warns(UserWarning, match="equal scores") as told:
        retrieval.measure(Subject(constant), two_cities)
    for engine in ("visual_index", "hqe_single", "hqe_multiple"):
        # By name a landmark's photographs come first or second, in the opposite order last.
        says = rf"{engine}: .* in the opposite order .* 20\.7% and not 65\.0%"
        assert any(re.match(says, str(warning.message)) for warning in told)

"""Image retrieval: the cities' layout, average precision, and both retrieval."""

from __future__ import annotations

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
    """Photographs and ground truth as Oxford5k has them, with a prefix before a query's photograph."""
    for part in ("images", "gt_files"):
        (folder / part).mkdir(parents=True)
    for name, grey in images.items():
        cv2.imwrite(str(folder / "images" / f"{name}.jpg"), grey)
    for asked in queries:
        box = " ".join(map(str, asked.box))
        (folder / "gt_files" / f"{asked.name}_query.txt").write_text(f"{prefix}{asked.image} {box}\n")
        for grade in ("good", "ok", "junk"):
            lines = "\n".join(getattr(asked, grade))
            (folder / "gt_files" / f"{asked.name}_{grade}.txt").write_text(lines)


@pytest.fixture
def city(tmp_path: Path) -> Path:
    asked = [query("ab", "c", "d"), query("b", "", "a", name="spire_2")]
    photographs = dict.fromkeys("abcde", GREY)
    write_city(tmp_path, photographs, asked, "oxc1_")
    return tmp_path


def test_a_city_is_read_in_its_released_layout(city: Path) -> None:
    found = layout.read_city(city)
    assert [*found.images] == list("abcde")
    assert found.queries == (query("ab", "c", "d"), query("b", "", "a", name="spire_2"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("spire_1_good.txt", "nowhere"),
        ("spire_1_query.txt", "oxc1_a 3 2 1"),
    ],
)
def test_ground_truth_that_is_wrong_is_named(city: Path, file: str, content: str) -> None:
    (city / "gt_files" / file).write_text(content)
    with pytest.raises(ValueError, match="spire_1"):
        layout.read_city(city)


def literal_ap(ranked: Sequence[str], of: Query) -> float:
    """Step by step, as the benchmark describes it: trapezoids from recall to recall."""
    right = of.good | of.ok
    recall, precision, area, hits, place = 0.0, 1.0, 0.0, 0, 0
    for name in ranked:
        if name in of.junk:
            continue
        place += 1
        hits += name in right
        now = hits / len(right), hits / place
        area += (now[0] - recall) * (precision + now[1]) / 2
        recall, precision = now
    return area


@given(st.permutations("abcdefgh"), st.lists(st.sampled_from("goj-"), min_size=8, max_size=8))
def test_average_precision_is_the_published_one(ranked: list[str], grades: list[str]) -> None:
    by = {
        g: "".join(n for n, grade in zip("abcdefgh", grades, strict=True) if grade == g) for g in "goj"
    }
    of = query(by["g"], by["o"], by["j"])
    if not of.good | of.ok:
        with pytest.raises(ValueError, match="spire_1 has no good and no ok"):
            average_precision(ranked, of)
        return
    assert average_precision(ranked, of) == pytest.approx(literal_ap(ranked, of))


@pytest.fixture(scope="module")
def blobs() -> list[np.ndarray]:
    """Eight images of 30 features around six directions."""
    rng = np.random.default_rng(0)
    middles = rng.standard_normal((6, 16))
    return [
        (middles[rng.integers(6, size=30)] + 0.05 * rng.standard_normal((30, 16))).astype(np.float32)
        for _ in range(8)
    ]


def test_words_are_where_features_are(blobs: list[np.ndarray]) -> None:
    vocabulary = learn(blobs, 12, 16)
    collection = invert(vocabulary, blobs)
    assert np.bincount(collection.image).tolist() == [30] * 8
    np.testing.assert_allclose(vocabulary.projection.T @ vocabulary.projection, np.eye(16), atol=1e-5)
    # A median parts a word's features in halves; of an odd number one is the median itself, which
    # rounding puts on either side.
    bits = np.unpackbits(collection.signature, axis=1)
    for word in range(12):
        of_word = bits[collection.word == word]
        assert set(of_word.sum(axis=0)) <= {len(of_word) // 2, (len(of_word) + 1) // 2}
    again = learn(blobs, 12, 16)
    np.testing.assert_array_equal(again.centres, vocabulary.centres)


def test_a_word_takes_twenty_features(blobs: list[np.ndarray]) -> None:
    assert len(learn(blobs, 10_000, 16).centres) == 8 * 30 // 20
    with pytest.raises(ValueError, match="19 features are too few for a visual word"):
        learn([blobs[0][:19]], 10, 16)


def placed(places: np.ndarray, turn: np.ndarray) -> retrieval.Placed:
    maps = np.concatenate([np.broadcast_to(turn, (len(places), 2, 2)), places[:, :, None]], axis=2)
    return np.arange(len(places)), maps.astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
def test_matches_agree_as_published(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(4, 40))
    places, frames = draw.uniform(0, 1000, (count, 2)), np.eye(2) + 0.1 * draw.standard_normal((2, 2))
    # About as far off as is tolerated, and frames that are wrong too.
    there = places @ frames.T + draw.uniform(2, 20) * draw.standard_normal((count, 2))
    one, other = placed(places, np.eye(2)), placed(there, frames)
    other[1][:, :, :2] += 0.05 * draw.standard_normal((count, 2, 2))
    listed = [
        [(n, *map(float, at[:, 2]), at[:, :2].astype(float)) for n, at in enumerate(maps)]
        for _, maps in (one, other)
    ]
    assert retrieval.agreeing(one, other, 1024) == literal.verified(*listed, 1024)


Signed = list[tuple[int, list[int]]]


def signed_features(draw: np.random.Generator, middles: np.ndarray, count: int) -> Signed:
    """Words, the first more often than the last, and signatures near those of their words or far."""
    often = 1 / (np.arange(len(middles)) + 3)
    features = []
    for word in draw.choice(len(middles), count, p=often / often.sum()):
        turned = draw.random(middles.shape[1]) < draw.uniform(0, 0.3)
        features.append((int(word), (middles[word] ^ turned).astype(int).tolist()))
    return features


def parted(features: Signed) -> tuple[np.ndarray, np.ndarray]:
    """Words, and packed signatures."""
    word, bits = zip(*features, strict=True)
    return np.array(word), np.packbits(np.array(bits), axis=1)


def indexed(images: Sequence[Signed], words: int) -> Inverted:
    word, signature = parted([feature for image in images for feature in image])
    image = np.repeat(np.arange(len(images)), [*map(len, images)])
    return Inverted(word, image, signature, len(images), words)


def decided(words: int, bits: int) -> np.ndarray:
    """As the engine decides of bits that are as often set as not."""
    return np.random.default_rng(0).random((words, bits))


# More images than the shortlist takes, of which more are reliable; and fewer, of which not all are.
@pytest.mark.parametrize(("count", "features"), [(200, 80), (60, 20)])
@pytest.mark.parametrize("seed", range(2))
def test_hamming_expansion_is_the_published_one(count: int, features: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    middles = draw.random((50, 128)) < 0.5
    images = [
        signed_features(draw, middles, draw.integers(features // 5, features)) for _ in range(count)
    ]
    images[7] = []
    query = signed_features(draw, middles, 12)
    strict = [literal.strict_matches(query, image) for image in images]
    ahead = literal.ranked([literal.similarity(query, image, [1.0] * 50) for image in images])
    if count > retrieval.AHEAD:
        assert any(strict[number] >= 5 for number in ahead[100:])
    else:
        assert 0 < sum(number >= 5 for number in strict) < sum(number > 0 for number in strict)
    found = retrieval.hamming_expansion(*parted(query), indexed(images, 50))
    expected = literal.hamming_expansion(query, images, decided)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def seen_again(
    draw: np.random.Generator, base: np.ndarray, places: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Descriptors and frames of an image: things that others have too, some where they belong."""
    things = draw.choice(len(base), count)
    spread = draw.uniform(0, 0.06, (count, 1))
    descriptors = base[things] + spread * draw.standard_normal((count, base.shape[1]))
    linear = np.eye(2) * draw.uniform(0.7, 1.4) + draw.uniform(-0.2, 0.2, (2, 2))
    at = places[things] @ linear.T + draw.uniform(0, 100, 2) + 4 * draw.standard_normal((count, 2))
    astray = draw.random(count) < draw.random() / 2
    at[astray] = draw.uniform(0, 1000, (astray.sum(), 2))
    frames = np.broadcast_to(linear, (count, 2, 2)) + 0.02 * draw.standard_normal((count, 2, 2))
    return descriptors.astype(np.float32), np.dstack([frames, at]).astype(np.float32)


@pytest.mark.parametrize("seed", range(2))
def test_every_engine_is_the_published_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = draw.standard_normal((30, 128))
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    places = draw.uniform(0, 1000, (30, 2))
    city = [seen_again(draw, base, places, count) for count in [60, *draw.integers(5, 40, 49)]]
    city[5] = (city[5][0][:0], city[5][1][:0])
    other = [seen_again(draw, base, places, 30) for _ in range(20)]
    sides = [int(side) for side in draw.integers(900, 1200, 50)]
    searched, learned_on = (
        [
            Features(maps, np.ones(len(maps)), descriptors, (side, 1))
            for (descriptors, maps), side in zip(photographs, sides, strict=False)
        ]
        for photographs in (city, other)
    )
    answers = retrieval._engines(learned_on, searched)
    chosen = np.arange(len(city[0][0])) % 4 > 0
    vocabulary = learn([f.descriptors for f in learned_on], retrieval.VISUAL_INDEX_WORDS, 128)

    placed = [
        [
            (
                literal.nearest_words(one, vocabulary.centres, 1)[0],
                *map(float, at[:, 2]),
                at[:, :2].astype(float),
            )
            for one, at in zip(*image, strict=True)
        ]
        for image in city
    ]
    query = [feature for feature, asked in zip(placed[0], chosen, strict=True) if asked]
    expected = literal.visual_index(query, placed, sides)
    assert any(0 < value < 1 for value in expected)
    assert sum(value >= 6 for value in expected) > 1
    np.testing.assert_allclose(answers["visual_index"](0, chosen), expected, rtol=1e-9)

    def signed(descriptors: np.ndarray, count: int) -> Signed:
        return [
            (word, literal.signature(one, word, vocabulary))
            for one in descriptors
            for word in literal.nearest_words(one, vocabulary.centres, count)
        ]

    images = [signed(descriptors, 1) for descriptors, _ in city]
    both = []
    for engine, count in (("hqe_single", 1), ("hqe_multiple", 3)):
        asked = signed(city[0][0][chosen], count)
        both.append(answers[engine](0, chosen))
        expected = literal.hamming_expansion(asked, images, decided)
        np.testing.assert_allclose(both[-1], expected, rtol=1e-9, atol=1e-12)
    assert np.abs(both[0] - both[1]).max() > 0.01


@pytest.fixture(scope="module")
def two_cities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, City]:
    """Each of two landmarks, shifted cuts of them, and other textures."""
    made = tmp_path_factory.mktemp("cities")
    cities = {}
    for number, name in enumerate(layout.CITIES):
        photographs: dict[str, np.ndarray] = {}
        asked = []
        for landmark in range(2):
            whole = texture(10 * number + landmark, 220)
            cuts = {f"{name}_{landmark}_{n}": whole[9 * n :][:150, 7 * n :][:, :160] for n in range(3)}
            photographs |= cuts
            asked.append(
                Query(
                    f"l{landmark}_1",
                    min(cuts),
                    (5, 5, 155, 145),
                    frozenset(cuts),
                    frozenset(),
                    frozenset(),
                )
            )
        for n in range(4):
            photographs[f"{name}_other_{n}"] = texture(10 * number + 4 + n, 160)
        write_city(made / name, photographs, asked)
        cities[name] = layout.read_city(made / name)
    return cities


def test_what_shows_a_landmark_is_found_by_every_engine(two_cities: dict[str, City]) -> None:
    from functools import partial

    from lib.benchmarks.subject import describe
    from lib.models import sift

    numbers = retrieval.measure(Subject(partial(describe, sift.build(root=True))), two_cities)
    for engine in ("visual_index", "hqe_single", "hqe_multiple"):
        assert numbers[engine] > 90
        for name in layout.CITIES:
            single = [numbers[f"{engine}.{name}.l{landmark}_1"] for landmark in range(2)]
            assert numbers[f"{engine}.{name}"] == pytest.approx(np.mean(single))

"""Image retrieval on Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), after DSM's Table 2.

Each city's photographs are asked for a landmark by the features in a query's box, with words learned
on the other city's. Two engines, each with its authors' defaults: `visual_index`, and
`hamming_expansion` with single and with multiple assignment. Where a city has too few features for the
engines' words, it has fewer (`lib.benchmarks.visual_words.learn`). DSM states no detector: keypoints
are DoG's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from lib.benchmarks import hamming_expansion, visual_index
from lib.benchmarks.sparse_models import STORED, regions
from lib.benchmarks.subject import Subject
from lib.benchmarks.visual_words import invert, learn
from lib.data.images import read_grey
from lib.data.landmarks import City, Landmarks, Query
from lib.features.description import image_features
from lib.features.detectors import Detector

DETECTOR = Detector("dog", most=3000)
# Columns of DSM's Table 2 in each city.
ENGINES = ("visual_index", "hqe_single", "hqe_multiple")


@dataclass(frozen=True)
class Described:
    """A city's features; descriptors lie in a file, since they may be more than memory holds.

    Attributes:
        descriptors: (n_i, k) float32 of each photograph.
        maps: (n_i, 2, 3) float32, as `lib.features.keypoints.Regions` has them.
        sides: the longest of each photograph, px.
    """

    descriptors: tuple[np.ndarray, ...]
    maps: tuple[np.ndarray, ...]
    sides: tuple[int, ...]


def measure(subject: Subject, test_set: Landmarks) -> dict[str, float]:
    """Mean average precision, in percent.

    Args:
        subject: what describes; real-valued.
        test_set: both cities.

    Returns:
        For each of `ENGINES` "ENGINE.CITY.QUERY", the average precision of each query, "ENGINE.CITY",
        their mean, and "ENGINE", the mean of both cities'.

    Raises:
        ValueError: packed bits, too few features for a word, or a query's box without any.
    """
    numbers, cities = {}, test_set.cities
    with tempfile.TemporaryDirectory() as folder:
        described = {name: _described(subject, cities[name], Path(folder, name)) for name in cities}
        for name, city in cities.items():
            [other] = described.keys() - {name}
            for engine, answers in _engines(described[other], described[name]).items():
                precisions = _precisions(city, described[name], answers)
                numbers |= {f"{engine}.{name}.{key}": 100 * value for key, value in precisions.items()}
                numbers[f"{engine}.{name}"] = 100 * float(np.mean([*precisions.values()]))
    means = {engine: np.mean([numbers[f"{engine}.{name}"] for name in cities]) for engine in ENGINES}
    return numbers | {engine: float(mean) for engine, mean in means.items()}


def _described(subject: Subject, city: City, file: Path) -> Described:
    maps, sides = [], []
    with file.open("wb") as descriptors:
        for path in city.images.values():
            image = read_grey(path, orientation=STORED)
            features = image_features(image, regions(path, DETECTOR), subject.describe)
            if features.descriptors.dtype == np.uint8:
                raise ValueError("visual words are of real-valued descriptors; these are packed bits")
            descriptors.write(features.descriptors.astype(np.float32).tobytes())
            maps.append(features.regions.maps)
            sides.append(max(features.size))
            length = features.descriptors.shape[1]
    ends = np.cumsum([0, *map(len, maps)])
    if not ends[-1]:
        raise ValueError(f"{city.name}: no photograph has any keypoints")
    stored = np.memmap(file, np.float32, "r", shape=(ends[-1], length))
    parts = tuple(stored[first:last] for first, last in pairwise(ends))
    return Described(parts, tuple(maps), tuple(sides))


# From the number of a photograph and which of its features are asked about to (images,) scores.
Answers = Callable[[int, np.ndarray], np.ndarray]


def _engines(learned_on: Described, searched: Described) -> dict[str, Answers]:
    """By engine what answers a query."""
    bits = min(hamming_expansion.BITS, learned_on.descriptors[0].shape[1])
    words = signing = learn(learned_on.descriptors, visual_index.WORDS, bits)
    inverted = collection = invert(words, searched.descriptors)
    # Of features too few for these words there are no more.
    if len(words.centres) == visual_index.WORDS:
        signing = learn(learned_on.descriptors, hamming_expansion.WORDS, bits)
        collection = invert(signing, searched.descriptors)
    images = zip(searched.descriptors, searched.maps, searched.sides, strict=True)
    placed = [visual_index.Placed(words.words(own)[:, 0], maps, side) for own, maps, side in images]

    def verified(image: int, chosen: np.ndarray) -> np.ndarray:
        asked = placed[image]
        query = visual_index.Placed(asked.word[chosen], asked.maps[chosen], asked.side)
        return visual_index.scores(query, inverted, placed)

    def expanded(image: int, chosen: np.ndarray, count: int) -> np.ndarray:
        own, several = searched.descriptors[image][chosen], min(count, len(signing.centres))
        word = signing.words(own, several).ravel()
        signed = signing.signatures(np.repeat(own, several, axis=0), word)
        return hamming_expansion.scores(word, signed, collection)

    assigned = (1, hamming_expansion.ASSIGNED)
    answering = (verified, *(partial(expanded, count=count) for count in assigned))
    return dict(zip(ENGINES, answering, strict=True))


def _precisions(city: City, described: Described, answers: Answers) -> dict[str, float]:
    names, precisions = [*city.images], {}
    for query in city.queries:
        image = names.index(query.image)
        x, y = described.maps[image][:, :, 2].T
        left, top, right, bottom = query.box
        chosen = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
        if not chosen.any():
            raise ValueError(f"{city.images[query.image]} has no keypoints in the box of {query.name}")
        ranked = np.argsort(-answers(image, chosen), kind="stable")
        precisions[query.name] = average_precision([names[place] for place in ranked], query)
    return precisions


def average_precision(ranked: Sequence[str], query: Query) -> float:
    """Of a ranking the area under precision over recall, by the trapezoid rule, 0 to 1.

    As Oxford5k's own program has it: good and ok are right, junk is as if it were not there, and before
    the first photograph precision is 1.

    Args:
        ranked: photographs, the best first.
        query: what is right.

    Raises:
        ValueError: the query has nothing right.
    """
    right = query.good | query.ok
    if not right:
        raise ValueError(f"{query.name} has no good and no ok photographs")
    hits = np.array([name in right for name in ranked if name not in query.junk], bool)
    precision = np.concatenate([[1.0], np.cumsum(hits) / np.arange(1, len(hits) + 1)])
    return float(((precision[1:] + precision[:-1]) / 2)[hits].sum() / len(right))

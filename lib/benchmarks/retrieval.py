"""Image retrieval on Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), after DSM's Table 2.

Each city's photographs are asked for a landmark by the features in a query's box, with words learned
on the other city's. Two engines (`lib.benchmarks.retrieval_engines`): VisualIndex, and Hamming query
expansion with single and with multiple assignment. Where a city has too few features for the engines'
words, it has fewer. DSM states no detector: keypoints are DoG's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from lib.benchmarks import retrieval_engines as engines
from lib.benchmarks.sfm import STORED, regions
from lib.benchmarks.subject import Subject
from lib.data.images import read_grey
from lib.data.whole_images import City, Query
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
        maps: (n_i, 2, 3) float32, as `lib.features.detectors.Regions` has them.
        sides: the longest of each photograph, px.
    """

    descriptors: tuple[np.ndarray, ...]
    maps: tuple[np.ndarray, ...]
    sides: tuple[int, ...]


def measure(subject: Subject, test_set: Mapping[str, City]) -> dict[str, float]:
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
    numbers = {}
    with tempfile.TemporaryDirectory() as folder:
        described = {
            name: _described(subject, city, Path(folder, name)) for name, city in test_set.items()
        }
        for name, city in test_set.items():
            [other] = described.keys() - {name}
            for engine, answers in _engines(described[other], described[name]).items():
                precisions = _precisions(city, described[name], answers)
                numbers |= {f"{engine}.{name}.{key}": 100 * value for key, value in precisions.items()}
                numbers[f"{engine}.{name}"] = 100 * float(np.mean([*precisions.values()]))
    means = {engine: np.mean([numbers[f"{engine}.{name}"] for name in test_set]) for engine in ENGINES}
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
    ends = np.cumsum([0, *map(len, maps)])
    if not ends[-1]:
        raise ValueError(f"{file.name}: no photograph has any keypoints")
    stored = np.memmap(file, np.float32, "r").reshape(ends[-1], -1)
    parts = tuple(stored[first:last] for first, last in pairwise(ends))
    return Described(parts, tuple(maps), tuple(sides))


# From the number of a photograph and which of its features are asked about to (images,) scores.
Answers = Callable[[int, np.ndarray], np.ndarray]


def _engines(learned_on: Described, searched: Described) -> dict[str, Answers]:
    """By engine what answers a query."""
    bits = min(engines.BITS, learned_on.descriptors[0].shape[1])
    words = signing = engines.learn(learned_on.descriptors, engines.VISUAL_INDEX_WORDS, bits)
    inverted = collection = engines.invert(words, searched.descriptors)
    # Of features too few for these words there are no more.
    if len(words.centres) == engines.VISUAL_INDEX_WORDS:
        signing = engines.learn(learned_on.descriptors, engines.HAMMING_WORDS, bits)
        collection = engines.invert(signing, searched.descriptors)
    images = zip(searched.descriptors, searched.maps, searched.sides, strict=True)
    placed = [engines.Placed(words.words(own)[:, 0], maps, side) for own, maps, side in images]

    def verified(image: int, chosen: np.ndarray) -> np.ndarray:
        asked = placed[image]
        query = engines.Placed(asked.word[chosen], asked.maps[chosen], asked.side)
        return engines.visual_index(query, inverted, placed)

    def expanded(image: int, chosen: np.ndarray, count: int) -> np.ndarray:
        own, several = searched.descriptors[image][chosen], min(count, len(signing.centres))
        word = signing.words(own, several).ravel()
        signed = signing.signatures(np.repeat(own, several, axis=0), word)
        return engines.hamming_expansion(word, signed, collection)

    answering = (verified, partial(expanded, count=1), partial(expanded, count=engines.ASSIGNED))
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
        precisions[query.name] = average_precision([names[number] for number in ranked], query)
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

"""Image retrieval on Oxford5k and Paris6k (Philbin et al., CVPR 2007 and 2008), as in DSM's Table 2.

A query searches its city's photographs for a landmark by the features in a box, with visual words (Sivic
and Zisserman, ICCV 2003) learned on the other city. A city with too few features for an engine's number
of words gives fewer words. DSM states no detector; keypoints are DoG's. The two engines use their
authors' defaults; k-means and nearest words are faiss'.

**VisualIndex** (Vedaldi) scores images by the cosine of tf-idf histograms of 10,000 words. For the best
40 images it adds the number of matches that agree in one transformation, if there are 6 or more. A match
is two features of one word, one match per word. The frames of each match give an affinity. The one that
most matches agree with is refitted to these; then a homography is fitted. The tolerances of 35, 30 and
25 px are for the 1024 px of Oxford5k's photographs; here they are the same shares of the longest side.

**Hamming query expansion** (Tolias and Jégou, Pattern Recognition 2014) uses signatures of b bits
(Hamming Embedding: Jégou, Douze and Schmid, ECCV 2008). Two features match if they have the same word
and signatures h ≤ h_t bits apart. A match weighs exp(−(h / (b / 4))²); the n matches of one feature with
one image weigh 1 / √n of their sum (burstiness). Images among the best 100 with 5 or more matches within
h_t* are reliable. The query then takes over signatures of words, those found in the most of these images
first, until it has half as many new words as it had words. Each word keeps one signature, the majority
bit by bit. The new query is scored again, and a match now weighs its word's squared idf too. As in the
authors' code, this idf affects neither the first ranking nor queries without reliable images. An image's
sum is divided by the root of the summed squared idf of its words, each counted once. With multiple
assignment, a query's feature is assigned to its three nearest words.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path, PurePath

import cv2
import faiss
import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from lib.benchmarks.sfm import features
from lib.benchmarks.subject import Subject
from lib.data.whole_images import PREFIXES, City, Query
from lib.features.detectors import Detector
from lib.features.patches import Features

DETECTOR = Detector("dog", most=3000)
# VisualIndex' k-means: features per word, and iterations.
SAMPLED, ITERATIONS = 20, 20

VISUAL_INDEX_WORDS, VERIFIED = 10_000, 40
TOLERANCES = (35 / 1024, 30 / 1024, 25 / 1024)
# More matches than these must agree, first to refit the affinity, then to fit a homography.
FITTED, REFINED = 8, 9
# Fewer agreeing matches say nothing: every match agrees with its own affinity.
FEWEST = 6

HAMMING_WORDS, BITS = 2**16, 128
# h_t and h_t*, of 128 bits.
LOOSE, STRICT = 48, 32
_SHORT = """descriptors of {bits} numbers have signatures of {bits} bits, but the thresholds of Hamming \
query expansion are those of 128: most unrelated signatures pass, so that its numbers mean little"""
AHEAD, STRONG = 100, 5
# Points by which the order of photographs with equal scores may move a mean unsaid.
MOST_BY_TIES = 0.5
_TIES = """{engine}: photographs with equal scores are ranked by their names; in the opposite order its \
mean average precision is {reverse:.1f}% and not {value:.1f}%"""
# α of the paper.
NEW = 0.5
ASSIGNED = 3


def measure(subject: Subject, test_set: Mapping[str, City]) -> dict[str, float]:
    """Compute the mean average precision, in percent.

    Args:
        subject: the descriptor; real-valued.
        test_set: both cities.

    Returns:
        For each ENGINE of DSM's Table 2 ("visual_index", and "hqe_single" and "hqe_multiple", Hamming
        query expansion with single and multiple assignment): "ENGINE.CITY.QUERY", the average precision
        of each query, "ENGINE.CITY", their mean, and "ENGINE", the mean of both cities.

    Raises:
        ValueError: packed bits, too few features for a word, or a query's box without features.

    Warns:
        UserWarning: an engine gives photographs equal scores, and the mean depends on their order.
    """
    precisions = {}
    with tempfile.TemporaryDirectory() as folder:
        described = {
            name: _described(subject, city, Path(folder, name)) for name, city in test_set.items()
        }
        for name, city in test_set.items():
            [other] = described.keys() - {name}
            names = [*city.images]
            answering = engines(described[other], described[name])
            for query in city.queries:
                image = names.index(query.image)
                (x, y), (left, top, right, bottom) = described[name][image].position.T, query.box
                chosen = (x >= left) & (x <= right) & (y >= top) & (y <= bottom)
                if not chosen.any():
                    path = city.images[query.image]
                    raise ValueError(f"{path} has no keypoints in the box of {query.name}")
                for engine, answers in answering.items():
                    scores = answers(image, chosen)
                    by_name = _ranked(names, scores)
                    reverse = _ranked(names[::-1], scores[::-1])
                    precisions[engine, name, query.name] = {
                        "value": 100 * average_precision(by_name, query),
                        "reverse": 100 * average_precision(reverse, query),
                    }
    # The rows are queries. Photographs of equal scores are by name in "value", as reported.
    single = pd.DataFrame(precisions).T
    cities = single.groupby(level=[0, 1]).mean()
    means = cities.groupby(level=0).mean()
    for engine, mean in means.iterrows():
        if abs(mean["reverse"] - mean["value"]) > MOST_BY_TIES:
            warnings.warn(_TIES.format(engine=engine, **mean), stacklevel=2)
    reported = (*single["value"].items(), *cities["value"].items())
    return {".".join(key): value for key, value in reported} | means["value"].to_dict()


def _ranked(names: Sequence[str], scores: np.ndarray) -> list[str]:
    """Return the names by descending score; equal scores keep the order given."""
    return [names[number] for number in np.argsort(-scores, kind="stable")]


def _described(subject: Subject, city: City, folder: Path) -> list[Features]:
    """Describe each photograph; descriptors lie in files because memory may not hold them all."""
    folder.mkdir()
    photographs = []
    for name, path in city.images.items():
        photograph, file = features(subject, path, DETECTOR), folder / f"{name}.npy"
        if photograph.descriptors.dtype == np.uint8:
            raise ValueError("visual words are of real-valued descriptors; these are packed bits")
        np.save(file, photograph.descriptors.astype(np.float32))
        photographs.append(replace(photograph, descriptors=np.load(file, mmap_mode="r")))
    return photographs


# From a photograph's index and a mask of its queried features to (images,) scores.
Answers = Callable[[int, np.ndarray], np.ndarray]


def engines(learned_on: Sequence[Features], searched: Sequence[Features]) -> dict[str, Answers]:
    """Return the function that answers queries, by the name of its engine (`measure`).

    Args:
        learned_on: the photographs of the city that visual words are learned on.
        searched: those of the city that is searched.

    Warns:
        UserWarning: descriptors have fewer than 128 numbers.
    """
    learned, described = ([f.descriptors for f in city] for city in (learned_on, searched))
    bits = min(BITS, learned[0].shape[1])
    if bits < BITS:
        warnings.warn(_SHORT.format(bits=bits), stacklevel=2)
    verifying, signing = (learn(learned, words, bits) for words in (VISUAL_INDEX_WORDS, HAMMING_WORDS))
    inverted, collection = invert(verifying, described), invert(signing, described)

    def expanded(image: int, chosen: np.ndarray, count: int) -> np.ndarray:
        own, several = described[image][chosen], min(count, len(signing.centres))
        word = signing.words(own, several).ravel()
        signed = signing.signatures(np.repeat(own, several, axis=0), word)
        return hamming_expansion(word, signed, collection)

    return {
        "visual_index": partial(visual_index, photographs=searched, collection=inverted),
        "hqe_single": partial(expanded, count=1),
        "hqe_multiple": partial(expanded, count=ASSIGNED),
    }


def average_precision(ranked: Sequence[str], query: Query) -> float:
    """Compute a ranking's area under precision over recall, by the trapezoid rule, 0 to 1.

    As in Oxford5k's own program, good and ok are right, junk is ignored, and precision is 1 before the
    first photograph. A photograph that is junk and right at once is among those to be found, and is
    ignored where it is found.

    Args:
        ranked: names of photographs, as in the query's grades, the best first.
        query: grades the photographs.

    Raises:
        ValueError: the query has no right photographs, a photograph is ranked twice, or names are others
            than the query's, such as those of files.
    """
    for name in ranked:
        if not isinstance(name, str):
            raise ValueError(f"{query.name}: a ranking has names of photographs, got {name!r}")
    if len(set(ranked)) < len(ranked):
        raise ValueError(f"{query.name}: a photograph is ranked twice")
    right = query.good | query.ok
    if not right:
        raise ValueError(f"{query.name} has no good and no ok photographs")
    # A ranking without a right photograph is cut short, or it calls them by other names.
    if right.isdisjoint(ranked):
        for name in ranked:
            plain = PurePath(name).stem.removeprefix(PREFIXES["oxford5k"])
            if plain in right:
                raise ValueError(f"{query.name}: {name!r} is ranked, which its grades call {plain!r}")
    hits = np.array([name in right for name in ranked if name not in query.junk], bool)
    precision = np.concatenate([[1.0], np.cumsum(hits) / np.arange(1, len(hits) + 1)])
    return float(((precision[1:] + precision[:-1]) / 2)[hits].sum() / len(right))


@dataclass(frozen=True)
class Vocabulary:
    """Visual words, and the projection and thresholds of signatures.

    Attributes:
        centres: (K, k) float32.
        projection: (k, b) float32, orthonormal columns.
        medians: (K, b) float32, of each word's projected features in the sample it was learned from.
    """

    centres: np.ndarray
    projection: np.ndarray
    medians: np.ndarray

    def words(self, descriptors: np.ndarray, count: int = 1) -> np.ndarray:
        """Return (N, count) int64, the nearest words of (N, k) descriptors, the nearest first."""
        return faiss.knn(np.ascontiguousarray(descriptors), self.centres, count)[1]

    def signatures(self, descriptors: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return (N, b / 8) uint8, packed bits: 1 where a feature lies above its word's medians."""
        return np.packbits(descriptors @ self.projection > self.medians[words], axis=1)


def learn(descriptors: Sequence[np.ndarray], words: int, bits: int) -> Vocabulary:
    """Learn a vocabulary from a collection's features.

    Args:
        descriptors: (n_i, k) float32 of each image; `SAMPLED` times `words` of them are sampled if
            every image has its equal share; an image with fewer gives all it has.
        words: their number at most; fewer if there are fewer than `SAMPLED` features per word.
        bits: their number in a signature, k at most.

    Raises:
        ValueError: too few features for one word.
    """
    rng = np.random.default_rng(0)
    most = math.ceil(SAMPLED * words / len(descriptors))
    sample = np.concatenate(
        [
            own[np.sort(rng.choice(len(own), most, replace=False))] if len(own) > most else own
            for own in descriptors
        ]
    )
    count, length = sample.shape
    words = min(words, count // SAMPLED)
    if not words:
        raise ValueError(f"{count} features are too few for a visual word: {SAMPLED} at least")
    # Bounds that admit all points, so that faiss does not subsample them.
    bounds = {"min_points_per_centroid": 1, "max_points_per_centroid": count}
    means = faiss.Kmeans(length, words, niter=ITERATIONS, seed=0, **bounds)
    means.train(sample)
    nearest = faiss.knn(sample, means.centroids, 1)[1][:, 0]
    projection = np.linalg.qr(rng.standard_normal((length, length)))[0][:, :bits].astype(np.float32)
    projected, medians = sample @ projection, np.zeros((words, bits), np.float32)
    for word, members in pd.Series(nearest).groupby(nearest).indices.items():
        medians[word] = np.median(projected[members], axis=0)
    return Vocabulary(means.centroids, projection, medians)


@dataclass(frozen=True)
class Inverted:
    """Inverted index: the features of a collection in order of its images, and those of each word.

    It holds arrays because faiss' inverted files rank features by one distance, whereas tf-idf counts
    them by image, and Hamming embedding weighs each by its signature's distance and its word.

    Attributes:
        word, image: (n,) int64.
        signature: (n, b / 8) uint8.
        images, words: how many there are.
    """

    word: np.ndarray
    image: np.ndarray
    signature: np.ndarray
    images: int
    words: int

    @cached_property
    def counts(self) -> csr_array:
        """(images, words) float64, how often an image has a word."""
        ones = np.ones(len(self.word))
        return csr_array((ones, (self.image, self.word)), shape=(self.images, self.words))

    @cached_property
    def idf(self) -> np.ndarray:
        """(words,) log of the ratio of all images to those with the word; 0 for words in no image."""
        having = (self.counts > 0).sum(axis=0)
        return np.where(having, np.log(self.images / np.maximum(having, 1)), 0.0)

    @cached_property
    def entries(self) -> csr_array:
        """(words, n) bool, the features of each word."""
        count = len(self.word)
        ones = np.ones(count, bool)
        return csr_array((ones, (self.word, np.arange(count))), shape=(self.words, count))


def invert(vocabulary: Vocabulary, descriptors: Sequence[np.ndarray]) -> Inverted:
    """Index the features (n_i, k) of each image of a collection by their words."""
    words = [vocabulary.words(own)[:, 0] for own in descriptors]
    signed = [vocabulary.signatures(own, word) for own, word in zip(descriptors, words, strict=True)]
    image = np.repeat(np.arange(len(words)), [*map(len, words)])
    word, signature = np.concatenate(words), np.concatenate(signed)
    return Inverted(word, image, signature, len(words), len(vocabulary.centres))


def visual_index(
    image: int, chosen: np.ndarray, photographs: Sequence[Features], collection: Inverted
) -> np.ndarray:
    """Score how well each image of a collection answers a query, by VisualIndex.

    Args:
        image: index of the query's photograph.
        chosen: (n_i,) bool, its features in the query's box.
        photographs: the features of each image.
        collection: all of these features.

    Returns:
        (images,) float64: the cosine, plus, for verified images, the number of matches that agree, if
        there are `FEWEST` or more.
    """
    idf, ends = collection.idf, np.searchsorted(collection.image, np.arange(1, collection.images))
    words = np.split(collection.word, ends)
    query = words[image][chosen], photographs[image].maps[chosen]
    asked = np.bincount(query[0], minlength=collection.words) * idf
    histograms = collection.counts * idf
    lengths = np.sqrt((histograms**2).sum(axis=1)) * np.linalg.norm(asked)
    cosine = (histograms @ asked) / np.maximum(lengths, np.finfo(float).tiny)
    for other in np.argsort(-cosine, kind="stable")[:VERIFIED]:
        photograph = photographs[other]
        matches = agreeing(query, (words[other], photograph.maps), max(photograph.size))
        if matches >= FEWEST:
            cosine[other] += matches
    return cosine


# Words (N,) of an image's features, and their (N, 2, 3) maps.
Placed = tuple[np.ndarray, np.ndarray]


def agreeing(first: Placed, second: Placed, side: int) -> int:
    """Count the matches between two images that agree in one transformation; `side` is the second
    image's longest, px."""
    _, here, there = np.intersect1d(first[0], second[0], return_indices=True)
    if not len(here):
        return 0
    one, other = first[1][here].astype(float), second[1][there].astype(float)
    wide, fitted, refined = (share * side for share in TOLERANCES)
    a, b = one[:, :, 2], other[:, :, 2]
    linear = other[:, :, :2] @ np.linalg.inv(one[:, :, :2])
    # (M, M, 2): each match's position carried by each match's affinity (first axis).
    carried = np.einsum("hij,mhj->hmi", linear, a[:, None] - a) + b[:, None]
    inside = np.linalg.norm(carried - b, axis=2) < wide
    inside = inside[inside.sum(axis=1).argmax()]
    if inside.sum() > FITTED:
        flat = np.column_stack([a, np.ones(len(a))])
        affinity = np.linalg.lstsq(flat[inside], b[inside], rcond=None)[0]
        inside = np.linalg.norm(flat @ affinity - b, axis=1) < fitted
    if inside.sum() > REFINED:
        homography = cv2.findHomography(a[inside], b[inside])[0]
        if homography is not None:
            places = cv2.perspectiveTransform(a[None], homography)[0]
            inside = np.linalg.norm(places - b, axis=1) < refined
    return int(inside.sum())


def hamming_expansion(words: np.ndarray, signatures: np.ndarray, collection: Inverted) -> np.ndarray:
    """Score how well each image of a collection answers a query, by Hamming query expansion.

    Args:
        words: (m,) int64 of the query's features; with multiple assignment, several per feature.
        signatures: (m, b / 8) uint8.
        collection: all features.

    Returns:
        (images,) float64.
    """
    rarity = collection.idf**2
    norm = np.sqrt((collection.counts > 0) @ rarity)
    total, strong = _ask(words, signatures, collection, np.ones_like(rarity))
    ahead = np.argsort(-total, kind="stable")[:AHEAD]
    reliable = ahead[strong[ahead] >= STRONG]
    if len(reliable):
        words, signatures = _expanded(words, signatures, collection, reliable)
        total, _ = _ask(words, signatures, collection, rarity)
    return total / np.where(norm > 0, norm, 1)


def _ask(
    words: np.ndarray, signatures: np.ndarray, collection: Inverted, rarity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (images,) sums of matches' weights, scaled by words' (words,) rarity, and (images,) counts
    of strict matches."""
    asked, entry = collection.entries[words].nonzero()
    apart = np.bitwise_count(signatures[asked] ^ collection.signature[entry]).sum(axis=1)
    loose = apart <= LOOSE
    asked, image, apart = asked[loose], collection.image[entry[loose]], apart[loose]
    weight = np.exp(-((apart / (2 * signatures.shape[1])) ** 2)) * rarity[words[asked]]
    pair = asked * collection.images + image
    bursts, burst, count = np.unique(pair, return_inverse=True, return_counts=True)
    sums = np.bincount(burst, weight, len(bursts)) / np.sqrt(count)
    total = np.bincount(bursts % collection.images, sums, collection.images)
    return total, np.bincount(image[apart <= STRICT], minlength=collection.images)


def _expanded(
    words: np.ndarray, signatures: np.ndarray, collection: Inverted, reliable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Expand a query by reliable images; return its words, each once, and a signature per word."""
    having = (collection.counts[reliable] > 0).sum(axis=0)
    candidates = np.argsort(-having, kind="stable")[: np.count_nonzero(having)]
    own = np.unique(words)
    new, most = np.cumsum(~np.isin(candidates, own)), int(NEW * len(own))
    # Up to the last new word allowed; a query of one word has no limit.
    end = np.searchsorted(new, most) + 1 if most else None
    added = np.isin(collection.image, reliable) & np.isin(collection.word, candidates[:end])
    joined = np.concatenate([words, collection.word[added]])
    bits = np.unpackbits(np.concatenate([signatures, collection.signature[added]]), axis=1)
    share = pd.DataFrame(bits).groupby(joined).mean()
    ties = np.random.default_rng(0).random(share.shape) > 0.5
    return share.index.to_numpy(), np.packbits(np.where(share == 0.5, ties, share > 0.5), axis=1)

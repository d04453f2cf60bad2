"""Visual words (Sivic and Zisserman, ICCV 2003), and two engines that find images by them, each with its
authors' defaults; k-means and nearest words by faiss.

**VisualIndex** (Vedaldi): 10,000 words and the cosine of tf-idf histograms, to which for the 40 images
ahead the number of matches that agree in one transformation is added, where these are 6 or more. A match
is of two features of one word, each word once; its frames give an affinity, the one that most agree with
is fitted to these, and then a homography. Its tolerances of 35, 30 and 25 px are for the 1024 px of
Oxford5k's photographs; here they are those shares of the longest side.

**Hamming query expansion** (Tolias and Jégou, Pattern Recognition 2014), by signatures of b bits
(Hamming Embedding: Jégou, Douze and Schmid, ECCV 2008): features match that have one word and
signatures at most h_t bits apart; a match weighs exp(−(h / (b / 4))²), and those of one feature with one
image, n of them, 1 / √n of their sum (burstiness). Images among the 100 ahead with 5 matches or more
within h_t* are reliable. The words that most of these have, until there are half as many new ones as the
query has words, bring their signatures into the query; of each word it keeps one signature, the
majority's bit by bit; it is asked again, and now a match weighs its word's idf squared too. As in their
code, that idf counts neither in who is ahead nor where no image is reliable. An image's sum is divided
by the root of the squared idf of its words, each counted once. With multiple assignment a query's
feature stands for its three nearest words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import faiss
import numpy as np
from scipy.sparse import csr_array

# What VisualIndex gives k-means for each word, and its iterations.
SAMPLED, ITERATIONS = 20, 20
# Features that are projected at once.
_BLOCK = 2**15

VISUAL_INDEX_WORDS, VERIFIED = 10_000, 40
TOLERANCES = (35 / 1024, 30 / 1024, 25 / 1024)
# More than so many have to agree with an affinity, then with it fitted, before the next step.
FITTED, REFINED = 8, 9
# Fewer say nothing: every match agrees with its own affinity.
FEWEST = 6

HAMMING_WORDS, BITS = 2**16, 128
# Of 128 bits: h_t and h_t*.
LOOSE, STRICT = 48, 32
AHEAD, STRONG = 100, 5
# α of the paper.
NEW = 0.5
ASSIGNED = 3


@dataclass(frozen=True)
class Vocabulary:
    """Words, and what makes a feature's signature.

    Attributes:
        centres: (K, k) float32.
        projection: (k, b) float32, orthonormal columns.
        medians: (K, b) float32, of the projected features of each word that it was learned of.
    """

    centres: np.ndarray
    projection: np.ndarray
    medians: np.ndarray

    def words(self, descriptors: np.ndarray, count: int = 1) -> np.ndarray:
        """(N, count) int64, the nearest words of (N, k) descriptors, the nearest first."""
        return self._index.search(np.ascontiguousarray(descriptors), count)[1]

    @cached_property
    def _index(self) -> faiss.IndexFlatL2:
        index = faiss.IndexFlatL2(self.centres.shape[1])
        index.add(self.centres)
        return index

    def signatures(self, descriptors: np.ndarray, words: np.ndarray) -> np.ndarray:
        """(N, b / 8) uint8, packed bits: on which side of its word's medians a feature lies."""
        return np.packbits(descriptors @ self.projection > self.medians[words], axis=1)


def learn(descriptors: Sequence[np.ndarray], words: int, bits: int, seed: int = 0) -> Vocabulary:
    """A vocabulary of a collection's features.

    Args:
        descriptors: (n_i, k) float32 of each image, of which as many of each as `SAMPLED` times `words`
            are in all.
        words: at most; fewer where there are fewer than `SAMPLED` features a word.
        bits: of a signature, k at most.
        seed: of what is drawn.

    Raises:
        ValueError: too few features for one word.
    """
    rng = np.random.default_rng(seed)
    most = -(-SAMPLED * words // max(1, len(descriptors)))
    ends = np.cumsum([0, *(min(len(own), most) for own in descriptors)])
    count, length = int(ends[-1]), max((own.shape[1] for own in descriptors), default=0)
    words = min(words, count // SAMPLED)
    if not words:
        raise ValueError(f"{count} features are too few for a visual word: {SAMPLED} at least")
    # The only copy of what is drawn, for it may be most of what the memory holds.
    sample = np.empty((count, length), np.float32)
    for own, first, last in zip(descriptors, ends, ends[1:], strict=False):
        chosen = np.sort(rng.choice(len(own), most, replace=False)) if len(own) > most else slice(None)
        sample[first:last] = own[chosen]
    # As many points of each word as there are, so that faiss draws none of its own.
    bounds = {"min_points_per_centroid": 1, "max_points_per_centroid": count}
    means = faiss.Kmeans(length, words, niter=ITERATIONS, seed=seed, **bounds)
    means.train(sample)
    projection = np.linalg.qr(rng.standard_normal((length, length)))[0][:, :bits].astype(np.float32)
    vocabulary = Vocabulary(means.centroids, projection, np.zeros((words, bits), np.float32))
    nearest = vocabulary.words(sample)[:, 0]
    # In place of the features themselves, which are of no more use.
    for first in range(0, count, _BLOCK):
        block = sample[first:][:_BLOCK]
        block[:, :bits] = block @ projection
    order = np.argsort(nearest, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(nearest[order])) + 1):
        vocabulary.medians[nearest[members[0]]] = np.median(sample[members, :bits], axis=0)
    return vocabulary


@dataclass(frozen=True)
class Inverted:
    """Features of all images of a collection, in order of their words.

    They are arrays, since faiss' inverted files rank features by one distance: tf-idf counts them by
    image, and Hamming embedding weighs each by its signature's distance and its word.

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
        """(words,) log of the images by those that have the word; 0 of words that none has."""
        having = (self.counts > 0).sum(axis=0)
        return np.where(having, np.log(self.images / np.maximum(having, 1)), 0.0)

    def entries(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each of (m,) words its features: which of the m, and which feature, (M,) int64 each."""
        first, last = (np.searchsorted(self.word, words, side) for side in ("left", "right"))
        count = last - first
        asked = np.repeat(np.arange(len(words)), count)
        return asked, np.arange(count.sum()) - np.repeat(np.cumsum(count) - count - first, count)


def invert(vocabulary: Vocabulary, descriptors: Sequence[np.ndarray]) -> Inverted:
    """The features (n_i, k) of each image of a collection by their words."""
    words = [vocabulary.words(own)[:, 0] if len(own) else np.empty(0, np.int64) for own in descriptors]
    signed = [vocabulary.signatures(own, word) for own, word in zip(descriptors, words, strict=True)]
    image, word = np.repeat(np.arange(len(words)), [*map(len, words)]), np.concatenate(words)
    order = np.argsort(word, kind="stable")
    sizes = {"images": len(words), "words": len(vocabulary.centres)}
    return Inverted(word[order], image[order], np.concatenate(signed)[order], **sizes)


@dataclass(frozen=True)
class Placed:
    """Features of an image by their words.

    Attributes:
        word: (N,) int64.
        maps: (N, 2, 3) float32, as `lib.features.detectors.Regions` has them.
        side: the image's longest, px.
    """

    word: np.ndarray
    maps: np.ndarray
    side: int


def visual_index(query: Placed, collection: Inverted, placed: Sequence[Placed]) -> np.ndarray:
    """How well each image of a collection answers a query by VisualIndex.

    Args:
        query: the features in its box.
        collection: all features.
        placed: of each image.

    Returns:
        (images,) float64: the cosine, and added to it, of images that were verified, the number of
        matches that agree, if there are `FEWEST` or more.
    """
    idf = collection.idf
    asked = np.bincount(query.word, minlength=collection.words) * idf
    histograms = collection.counts * idf
    lengths = np.sqrt((histograms**2).sum(axis=1)) * np.linalg.norm(asked)
    cosine = (histograms @ asked) / np.maximum(lengths, np.finfo(float).tiny)
    for image in np.argsort(-cosine, kind="stable")[:VERIFIED]:
        matches = agreeing(query, placed[image])
        cosine[image] += matches if matches >= FEWEST else 0
    return cosine


def agreeing(first: Placed, second: Placed) -> int:
    """How many matches between two images agree in one transformation."""
    _, here, there = np.intersect1d(first.word, second.word, return_indices=True)
    if not len(here):
        return 0
    one, other = first.maps[here].astype(float), second.maps[there].astype(float)
    wide, fitted, refined = (share * second.side for share in TOLERANCES)
    a, b = one[:, :, 2], other[:, :, 2]
    linear = other[:, :, :2] @ np.linalg.inv(one[:, :, :2])
    # (M, M, 2): each match's affinity of each match's place.
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
    """How well each image of a collection answers a query by Hamming query expansion.

    Args:
        words: (m,) int64 of the query's features; with multiple assignment of each several times.
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
    """(images,) sums of weights, of words by their (words,) rarity, and how many matches are strict."""
    asked, entry = collection.entries(words)
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
    """The query with what reliable images add: its words, each once, and a signature of each."""
    among = np.flatnonzero(np.isin(collection.image, reliable))
    having = np.unique(np.stack([collection.word[among], collection.image[among]]), axis=1)[0]
    candidates, count = np.unique(having, return_counts=True)
    candidates = candidates[np.argsort(-count, kind="stable")]
    own = np.unique(words)
    new, most = np.cumsum(~np.isin(candidates, own)), int(NEW * len(own))
    # Up to the last of the new words, where there are more than so many.
    end = np.searchsorted(new, most) + 1 if len(new) and most and new[-1] >= most else len(candidates)
    added = among[np.isin(collection.word[among], candidates[:end])]
    joined = np.concatenate([words, collection.word[added]])
    bits = np.unpackbits(np.concatenate([signatures, collection.signature[added]]), axis=1)
    kept, row, count = np.unique(joined, return_inverse=True, return_counts=True)
    ones = np.zeros((len(kept), bits.shape[1]))
    np.add.at(ones, row, bits)
    share = ones / count[:, None]
    ties = np.random.default_rng(0).random(share.shape) > 0.5
    return kept, np.packbits(np.where(share == 0.5, ties, share > 0.5), axis=1)

"""Visual words and binary signatures of an image's features (Sivic and Zisserman, ICCV 2003; Hamming
Embedding: Jégou, Douze and Schmid, ECCV 2008); k-means and nearest words by faiss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import faiss
import numpy as np
from scipy.sparse import csr_array

# What VisualIndex gives k-means for each word, and its iterations.
SAMPLED, ITERATIONS = 20, 20
# Features that are projected at once.
_BLOCK = 2**15


@dataclass(frozen=True)
class Vocabulary:
    """Words, and how a feature's signature is told.

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
    bare = Vocabulary(means.centroids, projection, np.zeros((words, bits), np.float32))
    nearest = bare.words(sample)[:, 0]
    # In place of the features themselves, which are of no more use.
    for first in range(0, count, _BLOCK):
        block = sample[first:][:_BLOCK]
        block[:, :bits] = block @ projection
    order = np.argsort(nearest, kind="stable")
    medians = bare.medians.copy()
    for members in np.split(order, np.flatnonzero(np.diff(nearest[order])) + 1):
        medians[nearest[members[0]]] = np.median(sample[members, :bits], axis=0)
    return Vocabulary(means.centroids, projection, medians)


def invert(vocabulary: Vocabulary, descriptors: Sequence[np.ndarray]) -> Inverted:
    """The features (n_i, k) of each image of a collection by their words."""
    words = [vocabulary.words(own)[:, 0] if len(own) else np.empty(0, np.int64) for own in descriptors]
    signed = [vocabulary.signatures(own, word) for own, word in zip(descriptors, words, strict=True)]
    image, word = np.repeat(np.arange(len(words)), [*map(len, words)]), np.concatenate(words)
    order = np.argsort(word, kind="stable")
    sizes = {"images": len(words), "words": len(vocabulary.centres)}
    return Inverted(word[order], image[order], np.concatenate(signed)[order], **sizes)

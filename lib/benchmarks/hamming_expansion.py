"""Hamming query expansion (Tolias and Jégou, Pattern Recognition 2014), with its authors' defaults.

Hamming Embedding: features match that have one word and signatures at most h_t bits apart; a match
weighs exp(−(h / (b / 4))²), and those of one feature with one image, n of them, 1 / √n of their sum
(burstiness). Images among the 100 ahead with 5 matches or more within h_t* are reliable. The words that
most of these have, until there are half as many new ones as the query has words, bring their signatures
into the query; of each word it keeps one signature, the majority's bit by bit; it is asked again, and
now a match weighs its word's idf squared too. As in their code, that idf counts neither in who is ahead
nor where no image is reliable. An image's sum is divided by the root of the squared idf of its words,
each counted once. With multiple assignment a query's feature stands for its three nearest words.
"""

from __future__ import annotations

import numpy as np

from lib.benchmarks.visual_words import Inverted

WORDS, BITS = 2**16, 128
# Of 128 bits: h_t and h_t*.
LOOSE, STRICT = 48, 32
AHEAD, STRONG = 100, 5
# α of the paper.
NEW = 0.5
ASSIGNED = 3


def scores(words: np.ndarray, signatures: np.ndarray, collection: Inverted) -> np.ndarray:
    """How well each image of a collection answers a query.

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
        words, signatures = expanded(words, signatures, collection, reliable)
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


def expanded(
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

"""VisualIndex (Vedaldi): tf-idf over visual words, then spatial verification, with its defaults.

10,000 words and the cosine of tf-idf histograms, to which for the 40 images ahead the number of matches
that agree in one transformation is added, where these are 6 or more. A match is of two features of one
word, each word once; its frames give an affinity, the one that most agree with is fitted to these, and
then a homography. Its tolerances of 35, 30 and 25 px are for the 1024 px of Oxford5k's photographs; here
they are those shares of the longest side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from lib.benchmarks.visual_words import Inverted

WORDS = 10_000
VERIFIED = 40
TOLERANCES = (35 / 1024, 30 / 1024, 25 / 1024)
# More than so many have to agree with an affinity, then with it fitted, before the next step.
FITTED, REFINED = 8, 9
# Fewer say nothing: every match agrees with its own affinity.
FEWEST = 6


@dataclass(frozen=True)
class Placed:
    """Features of an image by their words.

    Attributes:
        word: (N,) int64.
        maps: (N, 2, 3) float32, as `lib.features.keypoints.Regions` has them.
        side: the image's longest, px.
    """

    word: np.ndarray
    maps: np.ndarray
    side: int


def scores(query: Placed, collection: Inverted, placed: Sequence[Placed]) -> np.ndarray:
    """How well each image of a collection answers a query.

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

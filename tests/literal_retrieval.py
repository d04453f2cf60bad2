"""Slow, literal float64 transcriptions of the two retrieval engines, one feature at a time.

A collection is a list of images, an image a list of features. For VisualIndex a feature is (word, x, y,
(2, 2) frame), for Hamming query expansion (word, list of bits). An image's place in the list is its
number; of equal scores the first is ahead.
"""

import math

import numpy as np
from scipy.optimize import least_squares


def idf_of(images):
    """By word the log of the number of images over that of the images that have the word."""
    having = {}
    for image in images:
        for word in {feature[0] for feature in image}:
            having[word] = having.get(word, 0) + 1
    return {word: math.log(len(images) / count) for word, count in having.items()}


def ranked(values):
    """Numbers of images, the largest value first."""
    return sorted(range(len(values)), key=lambda number: (-values[number], number))


# ------------------------------------------------------------------------------------------- VisualIndex


def visual_index(query, images, sides):
    """Score of each image: the cosine of tf-idf, and of the 40 ahead how many agree, if six do."""
    idf = idf_of(images)
    asked = histogram(query, idf)
    scores = [cosine(asked, histogram(image, idf)) for image in images]
    for number in ranked(scores)[:40]:
        agreeing = verified(query, images[number], sides[number])
        if agreeing >= 6:
            scores[number] += agreeing
    return scores


def histogram(image, idf):
    """By word, how often an image has it times its idf."""
    counted = {}
    for word, *_ in image:
        counted[word] = counted.get(word, 0.0) + idf.get(word, 0.0)
    return counted


def cosine(one, other):
    """Of two histograms; 0 where either is empty."""
    product = sum(one[word] * other[word] for word in one if word in other)
    lengths = math.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in other.values()))
    return product / lengths if lengths else 0.0


def verified(query, image, side):
    """How many matches agree: with a match's affinity, with one of these, with a homography."""
    matches = []
    for word in sorted({feature[0] for feature in query}):
        here = next(feature for feature in query if feature[0] == word)
        there = next((feature for feature in image if feature[0] == word), None)
        if there:
            matches.append((here, there))
    if not matches:
        return 0
    ones = [np.array(here[1:3]) for here, _ in matches]
    others = [np.array(there[1:3]) for _, there in matches]

    best = []
    for hypothesis, (here, there) in enumerate(matches):
        linear = np.array(there[3]) @ np.linalg.inv(np.array(here[3]))
        inside = []
        for number in range(len(matches)):
            carried = linear @ (ones[number] - ones[hypothesis]) + others[hypothesis]
            if np.linalg.norm(carried - others[number]) < 35 / 1024 * side:
                inside.append(number)
        if len(inside) > len(best):
            best = inside

    if len(best) > 8:
        # Least squares by its normal equations, one row of the affinity at a time.
        rows = np.array([[*ones[number], 1.0] for number in best])
        wanted = np.array([others[number] for number in best])
        affinity = np.linalg.solve(rows.T @ rows, rows.T @ wanted).T
        best = []
        for number in range(len(matches)):
            carried = affinity @ [*ones[number], 1.0]
            if np.linalg.norm(carried - others[number]) < 30 / 1024 * side:
                best.append(number)

    if len(best) >= 10:
        homography = fitted_homography([ones[n] for n in best], [others[n] for n in best])
        best = []
        for number in range(len(matches)):
            x, y, z = homography @ [*ones[number], 1.0]
            if np.linalg.norm(np.array([x / z, y / z]) - others[number]) < 25 / 1024 * side:
                best.append(number)
    return len(best)


def fitted_homography(ones, others):
    """(3, 3) by the direct linear transformation, refined to least squares of px."""
    to_one, to_other = centring(ones), centring(others)
    equations = []
    for one, other in zip(ones, others, strict=True):
        p, (x, y, _) = to_one @ [*one, 1.0], to_other @ [*other, 1.0]
        equations.append([*p, 0, 0, 0, *(-x * p)])
        equations.append([0, 0, 0, *p, *(-y * p)])
    least = np.linalg.svd(np.array(equations))[2][-1].reshape(3, 3)
    first = np.linalg.inv(to_other) @ least @ to_one

    def residuals(entries):
        """Of each point's coordinates, px."""
        homography, found = np.array([*entries, 1.0]).reshape(3, 3), []
        for one, other in zip(ones, others, strict=True):
            x, y, z = homography @ [*one, 1.0]
            found += [x / z - other[0], y / z - other[1]]
        return found

    refined = least_squares(residuals, (first / first[2, 2]).ravel()[:8], x_scale="jac", method="lm")
    return np.array([*refined.x, 1.0]).reshape(3, 3)


def centring(points):
    """(3, 3) that moves points' middle to the origin and scales either coordinate to a spread of 1."""
    middle, spread = np.mean(points, axis=0), np.std(points, axis=0)
    return np.diag([*(1 / spread), 1.0]) @ np.array(
        [[1, 0, -middle[0]], [0, 1, -middle[1]], [0, 0, 1.0]]
    )


# ------------------------------------------------------------------------------ Hamming query expansion


def hamming_expansion(query, images, draw=None):
    """Score of each image for signatures of 128 bits.

    `draw(words, bits)` gives the random numbers that decide of bits that are as often set as not.
    """
    idf = idf_of(images)
    even = dict.fromkeys(idf, 1.0)
    totals = [similarity(query, image, even) for image in images]
    reliable = [n for n in ranked(totals)[:100] if strict_matches(query, images[n]) >= 5]
    if reliable:
        query = expanded(query, [images[number] for number in reliable], draw)
        squared = {word: value**2 for word, value in idf.items()}
        totals = [similarity(query, image, squared) for image in images]
    scores = []
    for total, image in zip(totals, images, strict=True):
        norm = math.sqrt(sum(idf[word] ** 2 for word in {feature[0] for feature in image}))
        scores.append(total / norm if norm else total)
    return scores


def apart(one, other):
    """Hamming distance of two lists of bits."""
    return sum(a != b for a, b in zip(one, other, strict=True))


def similarity(query, image, weight):
    """Sum over the query's features of their matches' weights, over the root of how many they are."""
    total = 0.0
    for word, bits in query:
        distances = [apart(bits, of) for other, of in image if other == word]
        matching = [distance for distance in distances if distance <= 48]
        if matching:
            kernel = sum(math.exp(-((distance / 32) ** 2)) for distance in matching)
            total += weight[word] * kernel / math.sqrt(len(matching))
    return total


def strict_matches(query, image):
    """Pairs of features of one word at most 32 bits apart."""
    return sum(apart(bits, of) <= 32 for word, bits in query for other, of in image if other == word)


def expanded(query, reliable, draw=None):
    """The query's words and those of reliable images, each once with the majority's signature."""
    own = {word for word, _ in query}
    having = {}
    for image in reliable:
        for word in {feature[0] for feature in image}:
            having[word] = having.get(word, 0) + 1
    chosen, new = set(), 0
    for word in sorted(having, key=lambda word: (-having[word], word)):
        chosen.add(word)
        new += word not in own
        if new == len(own) // 2:
            break
    features = [*query, *(f for image in reliable for f in image if f[0] in chosen)]
    words = sorted({word for word, _ in features})
    decided = draw(len(words), len(features[0][1])) if draw else None
    kept = []
    for row, word in enumerate(words):
        signatures = [bits for other, bits in features if other == word]
        majority = []
        for bit in range(len(signatures[0])):
            ones = sum(signature[bit] for signature in signatures)
            if 2 * ones == len(signatures):
                majority.append(int(decided[row][bit] > 0.5))
            else:
                majority.append(int(2 * ones > len(signatures)))
        kept.append((word, majority))
    return kept


# ------------------------------------------------------------------------------------------ vocabulary


def nearest_words(descriptor, centres, count):
    """Numbers of the centres nearest to a descriptor, the nearest first."""
    squares = [
        float(((descriptor.astype(float) - centre.astype(float)) ** 2).sum()) for centre in centres
    ]
    return sorted(range(len(centres)), key=squares.__getitem__)[:count]


def signature(descriptor, word, vocabulary):
    """List of bits: whether the descriptor's projections lie above their word's medians."""
    projected = descriptor.astype(float) @ vocabulary.projection.astype(float)
    return [
        int(value > median) for value, median in zip(projected, vocabulary.medians[word], strict=True)
    ]

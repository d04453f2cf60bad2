"""Slow, literal float64 transcriptions of the two retrieval engines, one feature at a time.

A collection is a list of images, an image a list of features. For VisualIndex a feature is (word, x, y,
(2, 2) frame), for Hamming query expansion (word, list of bits). An image's number is its index in the
list; of equal scores the first ranks higher.
"""

import math

import numpy as np
from scipy.optimize import least_squares


def idf_of(images):
    """Log of the number of images over that of the images with the word, by word."""
    image_counts = {}
    for image in images:
        for word in {feature[0] for feature in image}:
            image_counts[word] = image_counts.get(word, 0) + 1
    return {word: math.log(len(images) / count) for word, count in image_counts.items()}


def ranked(values):
    """Image numbers, sorted by descending value."""
    return sorted(range(len(values)), key=lambda number: (-values[number], number))


# ------------------------------------------------------------------------------------------- VisualIndex


def visual_index(query, images, sides):
    """Score each image: cosine of tf-idf; for the top 40, plus the agreeing matches if six or more."""
    idf = idf_of(images)
    query_histogram = histogram(query, idf)
    scores = [cosine(query_histogram, histogram(image, idf)) for image in images]
    for number in ranked(scores)[:40]:
        agreeing = verified(query, images[number], sides[number])
        if agreeing >= 6:
            scores[number] += agreeing
    return scores


def histogram(image, idf):
    """Count of each word in an image times its idf, by word."""
    weights = {}
    for word, *_ in image:
        weights[word] = weights.get(word, 0.0) + idf.get(word, 0.0)
    return weights


def cosine(one, other):
    """Cosine of two histograms; 0 if either is empty."""
    product = sum(one[word] * other[word] for word in one if word in other)
    lengths = math.sqrt(sum(v * v for v in one.values()) * sum(v * v for v in other.values()))
    return product / lengths if lengths else 0.0


def verified(query, image, side):
    """Number of matches that agree with a match's affinity, a fitted affinity, or a homography."""
    matches = []
    for word in sorted({feature[0] for feature in query}):
        query_feature = next(feature for feature in query if feature[0] == word)
        image_feature = next((feature for feature in image if feature[0] == word), None)
        if image_feature:
            matches.append((query_feature, image_feature))
    if not matches:
        return 0
    query_points = [np.array(query_feature[1:3]) for query_feature, _ in matches]
    image_points = [np.array(image_feature[1:3]) for _, image_feature in matches]

    best = []
    for hypothesis, (query_feature, image_feature) in enumerate(matches):
        linear = np.array(image_feature[3]) @ np.linalg.inv(np.array(query_feature[3]))
        inliers = []
        for number in range(len(matches)):
            mapped = (
                linear @ (query_points[number] - query_points[hypothesis]) + image_points[hypothesis]
            )
            if np.linalg.norm(mapped - image_points[number]) < 35 / 1024 * side:
                inliers.append(number)
        if len(inliers) > len(best):
            best = inliers

    if len(best) > 8:
        # Least squares by the normal equations, one row of the affinity at a time.
        points = np.array([[*query_points[number], 1.0] for number in best])
        targets = np.array([image_points[number] for number in best])
        affinity = np.linalg.solve(points.T @ points, points.T @ targets).T
        best = []
        for number in range(len(matches)):
            mapped = affinity @ [*query_points[number], 1.0]
            if np.linalg.norm(mapped - image_points[number]) < 30 / 1024 * side:
                best.append(number)

    if len(best) >= 10:
        homography = fitted_homography([query_points[n] for n in best], [image_points[n] for n in best])
        best = []
        for number in range(len(matches)):
            x, y, z = homography @ [*query_points[number], 1.0]
            if np.linalg.norm(np.array([x / z, y / z]) - image_points[number]) < 25 / 1024 * side:
                best.append(number)
    return len(best)


def fitted_homography(sources, targets):
    """(3, 3) by the direct linear transformation, refined by least squares in px."""
    source_centring, target_centring = centring(sources), centring(targets)
    equations = []
    for source, target in zip(sources, targets, strict=True):
        p, (x, y, _) = source_centring @ [*source, 1.0], target_centring @ [*target, 1.0]
        equations.append([*p, 0, 0, 0, *(-x * p)])
        equations.append([0, 0, 0, *p, *(-y * p)])
    solution = np.linalg.svd(np.array(equations))[2][-1].reshape(3, 3)
    initial = np.linalg.inv(target_centring) @ solution @ source_centring

    def residuals(entries):
        """Errors of each point's coordinates, px."""
        homography, errors = np.array([*entries, 1.0]).reshape(3, 3), []
        for source, target in zip(sources, targets, strict=True):
            x, y, z = homography @ [*source, 1.0]
            errors += [x / z - target[0], y / z - target[1]]
        return errors

    refined = least_squares(residuals, (initial / initial[2, 2]).ravel()[:8], x_scale="jac", method="lm")
    return np.array([*refined.x, 1.0]).reshape(3, 3)


def centring(points):
    """(3, 3) that moves the points' mean to the origin and scales each coordinate to a spread of 1."""
    middle, spread = np.mean(points, axis=0), np.std(points, axis=0)
    return np.diag([*(1 / spread), 1.0]) @ np.array(
        [[1, 0, -middle[0]], [0, 1, -middle[1]], [0, 0, 1.0]]
    )


# ------------------------------------------------------------------------------ Hamming query expansion


def hamming_expansion(query, images, draw=None):
    """Score each image with signatures of 128 bits.

    `draw(words, bits)` gives the random numbers that decide bits set in exactly half of the signatures.
    """
    idf = idf_of(images)
    unit_weights = dict.fromkeys(idf, 1.0)
    totals = [similarity(query, image, unit_weights) for image in images]
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


def hamming(one, other):
    """Hamming distance of two lists of bits."""
    return sum(a != b for a, b in zip(one, other, strict=True))


def similarity(query, image, weight):
    """Sum over the query's features of their matches' weights, over the root of the matches' count."""
    total = 0.0
    for word, bits in query:
        distances = [hamming(bits, image_bits) for image_word, image_bits in image if image_word == word]
        close = [distance for distance in distances if distance <= 48]
        if close:
            kernel = sum(math.exp(-((distance / 32) ** 2)) for distance in close)
            total += weight[word] * kernel / math.sqrt(len(close))
    return total


def strict_matches(query, image):
    """Number of feature pairs of one word at most 32 bits apart."""
    return sum(
        hamming(bits, image_bits) <= 32
        for word, bits in query
        for image_word, image_bits in image
        if image_word == word
    )


def expanded(query, reliable, draw=None):
    """The words of the query and of reliable images, each once with its majority signature."""
    query_words = {word for word, _ in query}
    image_counts = {}
    for image in reliable:
        for word in {feature[0] for feature in image}:
            image_counts[word] = image_counts.get(word, 0) + 1
    selected, added = set(), 0
    for word in sorted(image_counts, key=lambda word: (-image_counts[word], word)):
        selected.add(word)
        added += word not in query_words
        if added == len(query_words) // 2:
            break
    features = [*query, *(f for image in reliable for f in image if f[0] in selected)]
    words = sorted({word for word, _ in features})
    tie_breaks = draw(len(words), len(features[0][1])) if draw else None
    merged = []
    for row, word in enumerate(words):
        signatures = [bits for feature_word, bits in features if feature_word == word]
        majority = []
        for bit in range(len(signatures[0])):
            ones = sum(signature[bit] for signature in signatures)
            if 2 * ones == len(signatures):
                majority.append(int(tie_breaks[row][bit] > 0.5))
            else:
                majority.append(int(2 * ones > len(signatures)))
        merged.append((word, majority))
    return merged


# ------------------------------------------------------------------------------------------ vocabulary


def nearest_words(descriptor, centres, count):
    """Indices of the centres nearest to a descriptor, the nearest first."""
    squares = [
        float(((descriptor.astype(float) - centre.astype(float)) ** 2).sum()) for centre in centres
    ]
    return sorted(range(len(centres)), key=squares.__getitem__)[:count]


def signature(descriptor, word, vocabulary):
    """Bits: whether each projection of the descriptor exceeds its word's median."""
    projected = descriptor.astype(float) @ vocabulary.projection.astype(float)
    return [
        int(value > median) for value, median in zip(projected, vocabulary.medians[word], strict=True)
    ]

"""The regions of HPatches' patches: Hessian, Harris and DoG detections, thinned, and their jitter.

``docs/extraction.md`` of hpatches-benchmark says that detections are of three kinds, that a region has 5
times the detected scale and lies wholly inside the image, that regions which overlap by more than 50%
are clustered and one is kept at random, and that each has one orientation by Lowe's method (IJCV 2004,
section 5). What it leaves open was measured on the release's 1 123 reference patches of v_graffiti, 889
of which are found in Oxford's graf with a correlation above 0.995:

- 93% have a scale of 1.6 2^(k/3) px, with k = 1, 2, 4, 5, 7 or 8: the two inner levels of VLFeat's
  octaves of four, without interpolation. 98% lie on an extremum over place (not over scale) of the
  Hessian's determinant or of Harris' measure at their level. Minima count as maxima do: Harris' lie on
  edges. Where both levels have an extremum, it is the stronger one's scale.
- The extrema found end at heights of 0.0018 (Hessian) and 8.5e-8 (Harris), and at an elongation of 3.
- Clusters are connected by pairs of overlapping regions of 5 scales. Of clusters of two to four, 92 to
  95% keep the first in the order of detector, scale, x and y, hence Hessian rather than Harris.

With this, and DoG with VLFeat's threshold, which the sample does not show well, graf gives 1 154 patches
and v_churchill and v_wormhole 1 235 and 1 101; the release has 1 123, 1 241 and 1 097. Nothing but DoG
was chosen with these two in sight: without it they give 971 and 1 013. Of the release's regions in graf,
77% have one of ours within one scale and half an octave, 74% within a quarter of a scale and 7%. Which
of a cluster is the first may hang on one weak detection, so not all can be the same. By its task files,
the release has at most about 2 000 patches per sequence; a limit is left to the builder.

Jitter stands for a detector's errors in another view, at three levels. ``docs/extraction.md`` says that
a region is jittered by an affine map before it is carried to the other image, and that the median
overlap with the detected region is about 0.85 at the easy and 0.72 at the hard level. It gives neither
the maps nor a number for the tough level, which was added later.

The maps here rotate, scale and stretch, each by normal draws. The draws' proportions are fixed, so that
a level is one factor. Overlap is blind to rotation, because a rotated disc is the same disc. The
proportions and the overlap at tough were fitted to the published AP of four descriptors on two of the
release's sequences (results/reference/hpatches_jitter; ranges and residuals are in
notebooks/data/hpatches.ipynb, which names the commit that has the fit):

- rotation: 23.2 degrees at hard (17.7 to 24.3 in fits of all four that leave out a descriptor or a
  sequence; 10.35 before the fit);
- translation: none (0 to 7% of the loss of overlap in these fits; a third before the fit);
- scale against anisotropy: not identified, so each keeps its share from before the fit;
- median overlap at tough: 0.60 as before, since the fits give 0.600 to 0.625.

The numbers also favour normal draws. With the proportions from before the fit, the sum of squared
residuals is 1 334 with uniform draws and 623 with normal ones; at the fit it is 120.

The fit was made on regions of other detectors. Repeated on today's, with v_churchill and Oxford's boat,
it gives a rotation of 21.4 degrees, an anisotropy of 0.12 and 0.613 at tough. It is not used:
anisotropy comes to 0.12 on v_churchill alone and to 1 on boat alone, and residuals on v_wormhole and
i_leuven, with the offsets from the fit, fall only from 2.8 to 2.7 points (root mean square).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.ndimage import correlate1d, gaussian_filter
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from skimage.feature import peak_local_max

from lib.data.hpatches.release import LEVELS
from lib.features.keypoints import Keypoints, dog_keypoints, one_a_place

DETECTORS = ("hessian", "harris", "dog")
MAGNIFICATION = 5.0
LARGEST_OVERLAP = 0.5

# px, standard deviation of the Gaussian. The finest region is then 16 px wide and is enlarged fourfold.
SMALLEST_SCALE = 1.6
# Thresholds for grey values from 0 to 1. Those of Hessian and Harris are the lowest in the release,
# where VLFeat's defaults would be 0.003 and 2e-6. DoG's is VLFeat's 0.01, since OpenCV takes a third.
SMALLEST_HESSIAN, SMALLEST_HARRIS, DOG_CONTRAST = 1.8e-3, 8.5e-8, 0.03
# Ratio of the curvatures of a maximum's response, and by how many px the quadratic may move it.
MOST_ELONGATED, _FARTHEST = 3.0, 1.5
# A pixel may be so much below the threshold that the maximum between the pixels reaches; VLFeat's.
_LOWER = 0.8
# Extrema of two levels are the same if they are so many scales apart in x and y, or closer.
_SAME = 0.5
_LEVELS_PER_OCTAVE = 3
_HARRIS_K = 0.05
# The structure tensor's integration scale, in derivation scales, as in VLFeat.
_INTEGRATION = 1.4
# Half the width of the window in which a region's orientation is found, in its scales: three standard
# deviations of VLFeat's. Of the release's orientations, 79% are within 10 degrees (65% with Lowe's 4.5).
ORIENTATION_WINDOW = 9.0

MEDIAN_OVERLAP = dict(zip(LEVELS, (0.85, 0.72, 0.60), strict=True))
# Standard deviations of jitter at the hard level: radians, octaves of scale, and octaves of the ratio of
# the ellipse's axes.
ROTATION, OCTAVES, ANISOTROPY = np.deg2rad(23.2), 0.31, 0.413
# Factor on these at each level, solved for MEDIAN_OVERLAP; medians of 60 000 draws agree to 0.002.
FACTORS = dict(zip(LEVELS, (0.494, 1.0, 1.555), strict=True))


def detect(image: np.ndarray) -> Keypoints:
    """Detect all keypoints whose region lies wholly inside the image, not oriented.

    Args:
        image: (H, W) uint8.

    Returns:
        Keypoints with orientation 0 and their detector, an index into `DETECTORS`. They are sorted by
        detector, scale, x and y. `thin` keeps the first of a cluster, and so did the release.
    """
    if min(image.shape) <= 2 * MAGNIFICATION * SMALLEST_SCALE:
        return Keypoints(np.empty((0, 2)), np.empty(0), np.empty(0), detector=np.empty(0, int))
    dog = one_a_place(dog_keypoints(image, DOG_CONTRAST, SMALLEST_SCALE))
    detections = (*_multiscale(image), (dog.position, dog.scale))
    position, scale = map(np.concatenate, zip(*detections, strict=True))
    detector = np.repeat(np.arange(len(DETECTORS)), [len(scales) for _, scales in detections])
    keypoints = Keypoints(position, scale, np.zeros(len(scale)), detector=detector)
    keypoints = keypoints[np.lexsort((position[:, 1], position[:, 0], scale, detector))]
    return keypoints[inside(keypoints, np.eye(3), image.shape)]


def inside(keypoints: Keypoints, homography: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return which regions lie wholly inside an image, from its first to its last pixel's centre.

    The bounds of the ellipse, or other conic, that a region becomes are exact: they are its vertical and
    horizontal tangents, from its dual conic H D Hᵀ.

    Args:
        keypoints: N keypoints in the reference image.
        homography: (3, 3), from the reference to the image; the plane must be seen from its front.
        shape: height and width of the image, px.

    Returns:
        (N,) bool.
    """
    homography = homography * np.sign(np.linalg.det(homography))
    centre = np.column_stack([keypoints.position, np.ones(len(keypoints))])
    radius = MAGNIFICATION * keypoints.scale
    dual = np.einsum("ni,nj->nij", -centre, centre)
    dual[:, [0, 1], [0, 1]] += radius[:, None] ** 2
    dual = homography @ dual @ homography.T
    # The line mapped to infinity misses the region, which lies on the camera's side of this line.
    whole = (dual[:, 2, 2] < 0) & (centre @ homography[2] > 0)
    for axis, last in enumerate(np.subtract(shape[::-1], 1)):
        quadratic, linear, constant = dual[whole][:, [2, axis, axis], [2, 2, axis]].T
        half = np.sqrt(np.maximum(linear**2 - quadratic * constant, 0)) / -quadratic
        middle = linear / quadratic
        whole[whole] = (middle - half >= 0) & (middle + half <= last)
    return whole


def thin(keypoints: Keypoints) -> np.ndarray:
    """Return ascending indices of the first keypoint of each cluster of overlapping regions.

    The regions are those that patches show, not the detected discs. Two that overlap by more than 50%
    belong to one cluster, and so do all that are connected by such pairs.
    """
    radius = MAGNIFICATION * keypoints.scale
    # Discs that overlap by half contain each other's centres, so a search within each finds all pairs.
    near = cKDTree(keypoints.position).query_ball_point(keypoints.position, radius)
    first = np.repeat(np.arange(len(keypoints)), list(map(len, near)))
    second = np.concatenate([*near, []]).astype(int)
    distance = np.linalg.norm(keypoints.position[first] - keypoints.position[second], axis=1)
    linked = disc_overlap(radius[first], radius[second], distance) > LARGEST_OVERLAP
    shape, links = (len(keypoints), len(keypoints)), (first[linked], second[linked])
    graph = coo_array((np.ones(linked.sum(), bool), links), shape)
    _, cluster = connected_components(graph, directed=False)
    return np.sort(np.unique(cluster, return_index=True)[1])


def disc_overlap(first: np.ndarray, second: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Compute the intersection over union of pairs of discs.

    Args:
        first, second: radii, above 0.
        distance: distance between the centres.

    Returns:
        One value in [0, 1] per pair.
    """
    apart = np.maximum(distance, 1e-9)
    shared = 0.0
    for one, other in ((first, second), (second, first)):
        # Half the angle of the arc inside the other disc: 0 if they are apart, π if `one` is inside.
        cosine = (apart**2 + one**2 - other**2) / (2 * apart * one)
        angle = np.arccos(np.clip(cosine, -1, 1))
        shared += one**2 * (angle - np.sin(2 * angle) / 2)
    return shared / (np.pi * (first**2 + second**2) - shared)


def draw_jitter(count: int, level: str, rng: np.random.Generator) -> np.ndarray:
    """Draw linear maps R diag(s sqrt(a), s / sqrt(a)) from the detected to the jittered region.

    R is a rotation, s a scale, a an anisotropy. A map holds in the frame where the region is the unit
    disc and its dominant orientation the x axis.

    Args:
        count: number N of maps.
        level: easy, hard or tough.
        rng: advanced by 5 N draws; the last 2 N, once used for a translation, are ignored.

    Returns:
        (N, 2, 2) float64.
    """
    turn, octaves, stretch, *_ = FACTORS[level] * rng.standard_normal((5, count))
    cosine, sine = np.cos(ROTATION * turn), np.sin(ROTATION * turn)
    axes = 2 ** (OCTAVES * octaves + ANISOTROPY * stretch * [[0.5], [-0.5]])
    return np.moveaxis([[cosine, -sine], [sine, cosine]] * axes, 2, 0)


def overlaps(affines: np.ndarray) -> np.ndarray:
    """Compute the intersection over union of the unit disc and the ellipses that it is mapped to.

    Both shapes are sliced at 512 abscissae, closer together towards the disc's ends, and the lengths
    that the slices share are summed. The result is correct to about 1e-4.

    Args:
        affines: (N, 2, 3), invertible.

    Returns:
        (N,) float64 in [0, 1].
    """
    linear, shift = affines[:, :, :2], affines[:, :, 2]
    # The ellipse is a x² + 2 b x y + c y² <= 1 about its centre.
    shape = np.linalg.inv(linear @ linear.mT)
    a, b, _, c = shape.reshape(-1, 4, 1).swapaxes(0, 1)
    angle = (np.arange(512) + 0.5) * np.pi / 512
    disc_half = np.sin(angle)
    x = np.cos(angle) - shift[:, :1]
    discriminant = (b * x) ** 2 - c * (a * x**2 - 1)
    half = np.sqrt(np.maximum(discriminant, 0)) / c
    middle = shift[:, 1:] - b * x / c
    shared = np.minimum(middle + half, disc_half) - np.maximum(middle - half, -disc_half)
    intersection = np.where(discriminant > 0, np.maximum(shared, 0), 0) @ disc_half * np.pi / 512
    union = np.pi * (1 + np.abs(np.linalg.det(linear))) - intersection
    return intersection / union


def _multiscale(image: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return positions (N, 2) and scales (N,) of the Hessian's extrema, then of Harris', px.

    Maxima and minima over place are taken at the two inner levels of each octave, at the level's own
    scale. Where both levels have one, the stronger is kept.
    """
    detections: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
    for step, levels in _octaves(image):
        for found, measure, threshold in zip(
            detections, (_hessian, _harris), (SMALLEST_HESSIAN, SMALLEST_HARRIS), strict=True
        ):
            responses = [measure(level, sigma) for level, sigma in levels]
            for sign in (1, -1):
                extrema = [_maxima(sign * response, threshold) for response in responses]
                sigmas = [sigma for _, sigma in levels]
                for position, sigma in zip(_stronger(extrema, sigmas), sigmas, strict=True):
                    found.append((step * position, np.full(len(position), step * sigma)))
    return [tuple(map(np.concatenate, zip(*found, strict=True))) for found in detections]


def _octaves(image: np.ndarray) -> Iterator[tuple[int, list[tuple[np.ndarray, float]]]]:
    """Yield each octave's step, px, and its two inner levels with their scales in steps.

    As in VLFeat, the image counts as blurred by 0.5 px, and every second pixel makes the next octave.
    """
    base, before, step = image / np.float32(255), 0.5, 1
    while min(base.shape) > 2 * MAGNIFICATION * SMALLEST_SCALE:
        levels = []
        for level in range(_LEVELS_PER_OCTAVE + 1):
            sigma = SMALLEST_SCALE * 2 ** (level / _LEVELS_PER_OCTAVE)
            blur = np.sqrt(max(sigma**2 - before**2, 0))
            base, before = gaussian_filter(base, blur, mode="nearest"), sigma
            levels.append((base, sigma))
        yield step, levels[1:-1]
        base, before, step = base[::2, ::2], SMALLEST_SCALE, 2 * step


def _hessian(level: np.ndarray, sigma: float) -> np.ndarray:
    """Return the determinant of the Hessian by 3x3 differences, for a scale in px."""
    xx, yy = (correlate1d(level, [1, -2, 1], axis, mode="nearest") for axis in (1, 0))
    xy = np.gradient(np.gradient(level, axis=0), axis=1)
    return sigma**4 * (xx * yy - xy**2)


def _harris(level: np.ndarray, sigma: float) -> np.ndarray:
    """Return Harris' measure, for a scale of derivation in px."""
    y, x = np.gradient(level)
    xx, xy, yy = (
        gaussian_filter(a, _INTEGRATION * sigma, mode="nearest") for a in (x * x, x * y, y * y)
    )
    return sigma**4 * (xx * yy - xy**2 - _HARRIS_K * (xx + yy) ** 2)


def _maxima(response: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Find maxima over 3x3 pixels, to a fraction of a pixel by a quadratic.

    Returns:
        (N, 2) x and y, px, and (N,) heights above the threshold. Maxima that are `MOST_ELONGATED` times
        as long as wide, or longer, are left out: most lie along edges.
    """
    row, column = peak_local_max(response, threshold_abs=_LOWER * threshold, exclude_border=True).T
    around = np.array(
        [[response[row + y, column + x] for x in (-1, 0, 1)] for y in (-1, 0, 1)], np.float64
    )
    slope = np.array([around[1, 2] - around[1, 0], around[2, 1] - around[0, 1]]) / 2
    xx, yy = around[1, ::2].sum(axis=0), around[::2, 1].sum(axis=0)
    xx, yy = xx - 2 * around[1, 1], yy - 2 * around[1, 1]
    xy = (around[0, 0] + around[2, 2] - around[0, 2] - around[2, 0]) / 4
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = xx * yy - xy**2
        shift = np.array([xy * slope[1] - yy * slope[0], xy * slope[0] - xx * slope[1]]) / determinant
        height = around[1, 1] + (slope * shift).sum(axis=0) / 2
        # The ratio of the two curvatures, from the trace and the determinant.
        half = (xx + yy) ** 2 / determinant / 2
        elongation = half - 1 + np.sqrt(half * (half - 2))
    kept = (determinant > 0) & (np.abs(shift).max(axis=0) < _FARTHEST) & (height > threshold)
    kept &= elongation < MOST_ELONGATED
    return (np.array([column, row]) + shift).T[kept], height[kept]


def _stronger(
    extrema: Sequence[tuple[np.ndarray, np.ndarray]], sigmas: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Drop, of extrema of two levels within half a scale in x and y, the weaker; return positions."""
    (fine, weights), (coarse, others) = extrema
    kept = np.ones(len(fine), bool), np.ones(len(coarse), bool)
    if len(fine) and len(coarse):
        near = cKDTree(fine).query_ball_point(coarse, _SAME * max(sigmas), p=np.inf)
        for index, members in enumerate(near):
            stronger = others[index] > weights[members]
            kept[0][np.array(members, int)[stronger]] = False
            kept[1][index] &= bool(stronger.all())
    return fine[kept[0]], coarse[kept[1]]

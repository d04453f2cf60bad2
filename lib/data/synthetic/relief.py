"""A synthetic scene of multi-view photographs with known geometry, in the layout of real ones.

A wall (`lib.data.synthetic.walls`) whose planes are cut into facets that stand out or back: relief
finer than the distance between sparse points, which a triangulated surface gets wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lib.data.images import write_image
from lib.data.scenes.places import CAMERAS, IMAGES
from lib.data.strecha import write_strecha_camera
from lib.data.synthetic.geometry import inverse_depth
from lib.data.synthetic.photographs import Photograph
from lib.data.synthetic.photometry import PhotometricSpread, draw_photometry
from lib.data.synthetic.scenes import Piece, Site, carried_pixels, render_views, seen_pieces
from lib.data.synthetic.walls import even_cuts, plan_wall
from lib.features.keypoints import Keypoints, carried_keypoints

VIEWS, SIZE = 8, (1024, 768)
ARC, AZIMUTH, ASIDE = np.deg2rad(90.0), np.deg2rad(35.0), 0.05
# Of photographs taken within an hour by one camera.
PHOTOMETRY = PhotometricSpread(exposure=0.15, gamma=0.1, blur=0.5, noise=2.0, jpeg_quality=(85, 95))
# Facets across and down a plane, and how far one stands out or back at most, in its own widths.
FACETS, DEPTH = 4, 0.06
# Of the depth, by how much what is seen may differ from what is carried there.
SAME_DEPTH = 0.01


def with_relief(site: Site, rng: np.random.Generator, depth: float = DEPTH) -> Site:
    """A site whose planes are cut into facets, each moved along its normal.

    Args:
        site: of whole planes.
        rng: the draw.
        depth: of a facet at most, in its widths; 0 leaves the surface as it is.
    """
    pieces = []
    for piece in site.pieces:
        plane = piece.plane
        columns, rows = even_cuts(plane.width, FACETS), even_cuts(plane.height, FACETS)
        normal = np.cross(plane.u_axis, plane.v_axis)
        normal /= np.linalg.norm(normal)
        cells = itertools.product(itertools.pairwise(columns), itertools.pairwise(rows))
        for (x0, x1), (y0, y1) in cells:
            out = depth * (x1 - x0) * np.linalg.norm(plane.u_axis) * rng.uniform(-1, 1)
            origin = plane.origin + x0 * plane.u_axis + y0 * plane.v_axis + out * normal
            # A plane ends in the middle of its last texel: one more closes the gap to the next facet.
            width, height = min(x1 - x0 + 1, plane.width - x0), min(y1 - y0 + 1, plane.height - y0)
            facet = replace(plane, origin=origin, width=width, height=height)
            pieces.append(Piece(facet, piece.photograph, piece.left + x0, piece.top + y0))
    return replace(site, pieces=tuple(pieces))


def write_relief(
    folder: Path, photographs: Sequence[Photograph], seed: int = 0, depth: float = DEPTH
) -> Site:
    """Write a scene: ``images`` and their ``cameras``.

    Args:
        folder: of the scene, made if missing.
        photographs: on the wall, side by side.
        seed: of everything drawn.
        depth: of the relief, as in `with_relief`.

    Returns:
        The site, by which any pixel can be carried without error (`truly_carried`).

    Raises:
        ValueError: a photograph cannot be read.
        OSError: the folder cannot be written.
    """
    rng = np.random.default_rng(seed)
    textures = [photograph.grey(640) for photograph in photographs]
    wall = plan_wall([texture.shape for texture in textures], ARC, VIEWS, SIZE, AZIMUTH, ASIDE, rng)
    taken = tuple(draw_photometry(PHOTOMETRY, rng) for _ in wall.cameras)
    site = with_relief(replace(wall, photometry=taken), rng, depth=depth)
    for number, grey in enumerate(render_views(site, textures)):
        name, camera = f"{number:04}.png", site.cameras[number]
        write_image(folder / IMAGES / name, grey)
        write_strecha_camera(folder / CAMERAS / f"{name}.camera", camera)
    return site


def truly_carried(
    site: Site, first: int, second: int, keypoints: Keypoints
) -> tuple[Keypoints, np.ndarray, np.ndarray]:
    """Keypoints carried from one view into another by the known planes, without error.

    Args:
        site: the scene.
        first, second: views.
        keypoints: N of the first view.

    Returns:
        The N keypoints in the second view; (N, 2, 2) the local affine maps; (N,) bool, which are seen
        there. Those that are not have no meaning.
    """
    there = site.cameras[second]
    piece = seen_pieces(site, first, keypoints.position)
    position, affine = carried_pixels(site, first, second, keypoints.position, piece)
    nearest = seen_pieces(site, second, position)
    # As deep as what is seen there, which beside an edge may be the next facet.
    coefficients = np.array([inverse_depth(piece.plane, there) for piece in site.pieces])
    rays = np.column_stack([position, np.ones(len(position))])
    own, seen = (np.einsum("ni,ni->n", rays, coefficients[index]) for index in (piece, nearest))
    inside = ((position >= 0) & (position <= [there.width - 1, there.height - 1])).all(axis=1)
    visible = inside & (piece >= 0) & (nearest >= 0) & (np.linalg.det(affine) > 0)
    visible &= np.abs(own - seen) <= SAME_DEPTH * np.abs(seen)
    return carried_keypoints(keypoints, position, affine), affine, visible

"""The embedded data: textured planes in 3D made of real photographs, seen by cameras, as patches.

The parts: `photographs` (which photograph goes where), `geometry` (planes, cameras, occlusion),
`photometry` (exposure to JPEG), `detection` (the errors of detectors), `scenes` (a site put
together), `writing` (PhotoTour files), `description` (what a notebook shows of them).
"""

"""Networks and handcrafted descriptors, each a module from grey patches to descriptors.

`l2net` (with `l2net_binary`, `l2net_maps`, `cs_l2net`), `hynet` (with `frn`), `tfeat`: networks that are
trained here. `published`, `exported`: networks read from files. `handcrafted`: SIFT, RootSIFT, ORB.

A network that is trained has ``input_size``, ``raw(patches)`` and ``normalise(raw)``, and maps patches
(n, 1, s, s) of 0 to 255 to descriptors (n, k); a binary one has ``code(value)`` too.
"""

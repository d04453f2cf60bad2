"""Parse the library once, in the process that kernels are forked from: each needs its digests."""

from __future__ import annotations

from lib.digests import code_digest
from lib.study.open import ROOT

code_digest([".".join(file.relative_to(ROOT).with_suffix("").parts) for file in ROOT.glob("lib/*/*.py")])

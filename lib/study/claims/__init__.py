"""The papers' claims, written down beforehand, and the one rule that judges them."""

from lib.study.claims.judging import judge, verdict, wrong_by_chance
from lib.study.claims.rows import Claim, read_claims

__all__ = ["Claim", "judge", "read_claims", "verdict", "wrong_by_chance"]

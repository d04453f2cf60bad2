"""The papers' claims, written down beforehand, and the one rule that judges them."""

from lib.study.claims.rows import Claim, read_claims
from lib.study.claims.verdicts import judge, verdict, wrong_by_chance

__all__ = ["Claim", "judge", "read_claims", "verdict", "wrong_by_chance"]

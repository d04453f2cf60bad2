"""The papers' claims, written down beforehand, and the one rule that judges them."""

from lib.study.claims.rows import Claim, read_claims
from lib.study.claims.verdicts import Verdict, judge, verdict, verdict_table

__all__ = ["Claim", "Verdict", "judge", "read_claims", "verdict", "verdict_table"]

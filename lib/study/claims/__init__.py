"""The papers' claims, written down beforehand, and the one rule that judges them."""

from lib.study.claims.judging import Claim, judge, read_claims, verdict, wrong_by_chance

__all__ = ["Claim", "judge", "read_claims", "verdict", "wrong_by_chance"]

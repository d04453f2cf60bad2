"""The papers' claims, written down beforehand, and the one rule that judges them."""

from lib.study.claims.judging import verdict
from lib.study.claims.rows import Claim, read_claims
from lib.study.claims.verdicts import Verdict, show_verdicts, verdict_table

__all__ = ["Claim", "Verdict", "read_claims", "show_verdicts", "verdict", "verdict_table"]

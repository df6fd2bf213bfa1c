"""Profiles: the constants of the cost model, by which decompositions and orders are chosen."""

from ucle.plan.prices import ENGINE, PAPER, Profile

__all__ = ["ENGINE", "PAPER", "Profile"]

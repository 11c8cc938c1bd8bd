"""The zoo: assignors with one bug each, and the property that has to find it. Most are a line away from a good one.

Start at   BUGS; test_zoo.py asks that each is caught by the property named in `caught_by`
"""

from tests.assignors.testing.zoo import balance, churn, given, moves, same_answer, slow
from tests.assignors.testing.zoo.registry import BUGS

__all__ = ["BUGS", "balance", "churn", "given", "moves", "same_answer", "slow"]

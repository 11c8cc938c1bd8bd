"""Leaps over idle time beside a walk through it: random scenarios both ways, and by how much the measures differ.

A single run may go another way, because other random numbers are drawn; the averages may not.

    python -m tests.harness.leaps --runs 600
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from math import sqrt
from random import Random
from statistics import fmean, stdev

from harness.sim.costs import costs
from harness.sim.run import simulate
from tests.harness.random_scenarios import STRATEGIES, random_scenario

TOO_MANY_ERRORS = 3.5
"""Standard errors of the mean difference, for each of some twenty measures."""


def measures(number: int, seed: int, *, leaps: bool) -> dict[str, float]:
    random = Random(f"leaps/{seed}/{number}")
    scenario = random_scenario(random)
    return asdict(costs(simulate(scenario, random.choice(STRATEGIES), number, leaps=leaps).facts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    leaping = [measures(number, given.seed, leaps=True) for number in range(given.runs)]
    walking = [measures(number, given.seed, leaps=False) for number in range(given.runs)]
    biased = 0
    print(f"{'':24}{'leaping':>14}{'walking':>14}{'difference':>14}{'standard error':>16}")
    for name in leaping[0]:
        differences = [one[name] - other[name] for one, other in zip(leaping, walking, strict=True)]
        mean, error = fmean(differences), stdev(differences) / sqrt(given.runs)
        is_biased = abs(mean) > TOO_MANY_ERRORS * error
        biased += is_biased
        means = f"{fmean(one[name] for one in leaping):14,.2f}{fmean(one[name] for one in walking):14,.2f}"
        print(f"{name:24}{means}{mean:14,.2f}{error:16,.2f}{'  biased' if is_biased else ''}")
    return 1 if biased else 0


if __name__ == "__main__":
    sys.exit(main())

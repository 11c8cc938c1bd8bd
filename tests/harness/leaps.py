"""Leaps over idle time beside a walk through it: the same scenarios both ways, and by how much the measures differ.

A single run may go another way, because other random numbers are drawn; the averages may not. Random scenarios differ
so much that small biases are lost among them: so there are some plain lives as well, at moments that are drawn.

    python -m tests.harness.leaps --runs 600
    python -m tests.harness.leaps --lives --runs 80
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import sqrt
from random import Random
from statistics import fmean, stdev
from typing import Any

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.random_scenarios import STRATEGIES, random_scenario

TOO_MANY_ERRORS = 3.5
"""Standard errors of the mean difference, for each of some twenty measures."""
TOO_LITTLE = 0.1
"""To matter, in whatever is measured."""


def measures(number: int, seed: int, *, leaps: bool) -> dict[str, float]:
    random = Random(f"leaps/{seed}/{number}")
    scenario = random_scenario(random)
    return asdict(costs(simulate(scenario, random.choice(STRATEGIES), number, leaps=leaps).facts))


def thrice(**event: dict[str, Any]) -> list[dict[str, Any]]:
    """Somebody else each time."""
    [(kind, how)] = event.items()
    places = ("2m", "4m10s", "6m20s")
    return [{"at": at, kind: {"members": f"c-{n}", **how}} for n, at in enumerate(places, 1)]


LIVES: dict[str, list[dict[str, Any]]] = {
    "crashes": thrice(restart={"downtime": "30s", "kill": True}),
    "pauses": thrice(pause={"for": "11s"}),
    "long pauses": thrice(pause={"for": "70s"}),
    "outages of the network": thrice(isolate={"for": "70s"}),
    "outages of the coordinator": [{"at": at, "fail over": {"down": "50s"}} for at in ("2m", "4m10s", "6m20s")],
    "restarts": thrice(restart={"downtime": "8s"}),
    "growth": [
        {"at": "2m", "add partitions": {"topic": "o", "to": 9}},
        {"at": "4m10s", "scale": {"members": "c", "to": 5}},
        {"at": "6m20s", "scale": {"members": "c", "to": 3}},
    ],
}
SPREAD_MS = 15_000
"""Events come up to so much later: anywhere between two heartbeats, and two commits."""
PLAIN = (
    "classic/range",
    "classic/cooperative-sticky",
    "classic/cooperative-sticky+static",
    "consumer/uniform",
    "consumer/uniform+static",
)


def lives() -> Iterator[tuple[str, Scenario]]:
    for name, timeline in LIVES.items():
        for commits_itself in (True, False):
            yield (
                f"{name}, {'auto-commit' if commits_itself else 'commits after processing'}",
                parse_scenario(
                    {
                        "duration": "9m",
                        "topics": {"o": {"partitions": 6, "rate": "60/s"}},
                        "members": {"c": {"count": 3, "topics": "o", "record": "2ms"}},
                        "client": {
                            "session.timeout.ms": "10s",
                            "metadata.max.age.ms": "30s",
                            "enable.auto.commit": commits_itself,
                        },
                        "network": {"latency": "2ms", "jitter": "2ms"},
                        "timeline": timeline,
                    }
                ),
            )


def at_drawn_moments(scenario: Scenario, number: int) -> Scenario:
    random = Random(f"moments/{number}")
    events = [replace(event, at_ms=event.at_ms + random.randrange(SPREAD_MS)) for event in scenario.timeline]
    return replace(scenario, timeline=tuple(events))


def life(scenario: Scenario, strategy: str, number: int, *, leaps: bool) -> dict[str, float]:
    return asdict(costs(simulate(at_drawn_moments(scenario, number), strategy, number, leaps=leaps).facts))


def compared(leaping: Sequence[dict[str, float]], walking: Sequence[dict[str, float]]) -> int:
    """How many measures are biased: by more than chance would have it, and more than a fiftieth."""
    biased = 0
    print(f"{'':24}{'leaping':>14}{'walking':>14}{'difference':>14}{'standard error':>16}")
    for name in leaping[0]:
        differences = [one[name] - other[name] for one, other in zip(leaping, walking, strict=True)]
        mean, error = fmean(differences), stdev(differences) / sqrt(len(differences))
        leapt, walked = (fmean(one[name] for one in rows) for rows in (leaping, walking))
        is_biased = abs(mean) > max(TOO_MANY_ERRORS * error, walked / 50, TOO_LITTLE)
        biased += is_biased
        print(f"{name:24}{leapt:14,.2f}{walked:14,.2f}{mean:14,.2f}{error:16,.2f}{'  biased' if is_biased else ''}")
    return biased


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--lives", nargs="?", const="", metavar="NAME", help="plain lives at drawn moments, each with some strategies"
    )
    given = parser.parse_args()
    numbers = range(given.seed, given.seed + given.runs)
    if given.lives is None:
        both = ([measures(number, given.seed, leaps=leaps) for number in range(given.runs)] for leaps in (True, False))
        return 1 if compared(*both) else 0
    biased = 0
    for name, scenario in [one for one in lives() if given.lives in one[0]]:
        for strategy in PLAIN:
            print(f"\n{name}: {strategy}", flush=True)
            biased += compared(
                *([life(scenario, strategy, number, leaps=leaps) for number in numbers] for leaps in (True, False))
            )
    print(f"\n{biased} biased")
    return 1 if biased else 0


if __name__ == "__main__":
    sys.exit(main())

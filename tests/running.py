"""`python -m` a module of random runs: each seed once, until one fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable


def run_all(report: Callable[[int], str | None]) -> None:
    """`report`: None if all is well with a seed, else what to print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, help="the first; from the clock without it")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int(time.time())
    print(f"first seed {arguments.seed}", flush=True)
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        failure = report(seed)
        if failure is not None:
            sys.exit(failure)
    print(f"{arguments.runs} runs, every invariant held")

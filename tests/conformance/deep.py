"""Random groups against Java for as long as you like: python -m tests.conformance.deep --minutes 10

One line of progress a few seconds apart; at the end the groups compared and the mismatches, each shrunk and printed as
JSON. Exit code 1 if there is any. The seed is printed first, and a seed always gives the same groups.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator

from tests.conformance.differential import ORACLES, compare_large, compare_random, shrink
from tests.conformance.java_oracle import why_not

BATCH = 500


def batches(strategies: list[str], seed: int, minutes: float, worker: int, workers: int) -> Iterator[tuple[str, int]]:
    """Strategies in turn, until the time is over; workers never draw the same batch."""
    until = time.monotonic() + 60 * minutes
    number = worker
    while time.monotonic() < until:
        yield strategies[number // workers % len(strategies)], 1_000_000 * seed + number
        number += workers


def work(results: multiprocessing.Queue[tuple[str, int, list[str]]], *plan: object) -> None:
    for strategy, seed in batches(*plan):  # type: ignore[arg-type]
        # Now and then a large group among the many small ones.
        large = 3 if seed % 200 < 2 else 0
        count, mismatches = compare_random(strategy, seed, BATCH)
        if large:
            more, found = compare_large(strategy, seed, large)
            count, mismatches = count + more, mismatches + found
        # Shrinking thousands of them would tell no more than shrinking the first few.
        results.put((strategy, count, [str(shrink(mismatch)) for mismatch in mismatches[:2]]))
    results.put(("", 0, []))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.deep", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--assignor", action="append", choices=sorted(ORACLES), help="all of them by default")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args(arguments)
    if reason := why_not():
        print(reason, file=sys.stderr)
        return 2
    strategies = asked.assignor or list(ORACLES)
    print(f"seed {asked.seed}, {asked.minutes:g} minutes, {', '.join(strategies)}", flush=True)
    # A JVM does not survive a fork, so every worker is a process of its own from the start.
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[str, int, list[str]]] = context.Queue()
    plans = [(strategies, asked.seed, asked.minutes, i, asked.processes) for i in range(asked.processes)]
    workers = [context.Process(target=work, args=(results, *plan), daemon=True) for plan in plans]
    for worker in workers:
        worker.start()
    return report(results, len(workers))


def report(results: multiprocessing.Queue[tuple[str, int, list[str]]], running: int) -> int:
    done: dict[str, int] = {}
    mismatches = 0
    started = shown = time.monotonic()
    while running:
        strategy, count, texts = results.get()
        if not strategy:
            running -= 1
            continue
        done[strategy] = done.get(strategy, 0) + count
        mismatches += len(texts)
        for text in texts:
            print(f"\n{text}\n", flush=True)
        if time.monotonic() - shown > 5:
            shown = time.monotonic()
            total = sum(done.values())
            print(f"{total:,} groups, {mismatches} mismatches, {total / (shown - started):.0f} a second", flush=True)
    parts = ", ".join(f"{strategy} {count:,}" for strategy, count in sorted(done.items()))
    print(f"done: {sum(done.values()):,} groups compared ({parts}), {mismatches} mismatches")
    return 1 if mismatches else 0


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: our assignors beside Kafka's own Java classes, kafka-python's and aiokafka's, one run, one table.

CPU milliseconds, medians of repeated calls on groups built beforehand: Java's group is a HashMap of objects then, ours
has its layout and the members' hash order. The default is a selection that shows every effect; `--grid` runs Kafka's
whole grid (members 100 to 10,000 x topics 10 to 1,000 x 5, 10, 50 partitions a member x full and incremental x equal
and different subscriptions x racks on and off) and takes about an hour. A peer that was cut off is not asked again for
more partitions of the same kind: it would be cut off there too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product

from benchmarks.groups import CHANGES, Cell
from benchmarks.workers import Result, Worker

STRATEGIES = (
    "classic/range",
    "classic/roundrobin",
    "classic/sticky",
    "classic/cooperative-sticky",
    "consumer/uniform",
    "consumer/range",
)
KEEPS_OWNED = ("classic/sticky", "classic/cooperative-sticky", "consumer/uniform")
KNOWS_RACKS = ("classic/range", "classic/sticky", "classic/cooperative-sticky")
PEERS = ("java", "kafka-python", "aiokafka")


def selection() -> Iterator[Cell]:
    for strategy in STRATEGIES:
        changes = ("full",) if strategy.endswith(("range", "roundrobin")) else CHANGES
        for change in changes:
            yield Cell(strategy, 100, 10, 10, change=change)
            yield Cell(strategy, 1_000, 10, 10, change=change)
            yield Cell(strategy, 1_000, 100, 10, change=change)
            yield Cell(strategy, 10_000, 100, 10, change=change)
            yield Cell(strategy, 2_000, 500, 500, change=change)
            yield Cell(strategy, 1_000, 100, 10, shape="buckets", change=change)
            yield Cell(strategy, 1_000, 100, 10, shape="overlapping", change=change)
            if strategy.startswith("classic") and strategy != "classic/roundrobin":
                yield Cell(strategy, 1_000, 10, 10, racks=True, change=change)
                yield Cell(strategy, 1_000, 100, 10, shape="overlapping", racks=True, change=change)


def grid() -> Iterator[Cell]:
    """Incremental only where owned partitions matter, and racks only where they do: elsewhere it is the same call."""
    for strategy in STRATEGIES:
        changes = ("full", "join") if strategy in KEEPS_OWNED else ("full",)
        racks = (False, True) if strategy in KNOWS_RACKS else (False,)
        sizes = product((100, 1_000, 10_000), (10, 100, 1_000), (5, 10, 50))
        for (members, topics, per_member), shape, rack, change in product(sizes, ("equal", "buckets"), racks, changes):
            if members * per_member >= topics:
                yield Cell(strategy, members, topics, per_member, shape, rack, change)


def growth() -> Iterator[tuple[str, list[Cell]]]:
    """Partitions grow, members stay: the slope of time over partitions, both logarithmic, is the exponent.

    Everybody has more partitions than there are members, so that one who joins takes some from all of them at every
    size: otherwise it would be the number of those who give that grows.
    """
    for strategy in STRATEGIES:
        for change in ("full", "join"):
            cells = [Cell(strategy, 100, 100, n, change=change) for n in (200, 800, 3_200, 12_800)]
            yield f"{strategy} {change}", cells
    for strategy in ("classic/cooperative-sticky", "consumer/uniform"):
        cells = [Cell(strategy, 200, 50, n, shape="overlapping", change="join") for n in (10, 40, 160)]
        yield f"{strategy} join, overlapping", cells


def fitted_exponent(points: list[tuple[int, float]]) -> float:
    """Least squares on the logarithms."""
    xs = [math.log(n) for n, _ in points]
    ys = [math.log(seconds) for _, seconds in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return slope / sum((x - mean_x) ** 2 for x in xs)


def shown(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{result.seconds * 1e3:,.2f}" if result.seconds is not None else result.why


def ratio(peer: Result | None, ours: Result) -> str:
    if peer is None or peer.seconds is None or ours.seconds is None:
        return ""
    return f"{peer.seconds / ours.seconds:,.1f}x"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", action="store_true", help="Kafka's whole grid instead of the selection")
    parser.add_argument("--strategy", action="append", help="only these")
    parser.add_argument("--members", type=int, action="append", help="only groups of these sizes")
    parser.add_argument("--no-growth", action="store_true", help="leave out the fitted exponents")
    parser.add_argument("--cut-off", type=float, default=60.0, help="seconds after which a peer is cut off")
    parser.add_argument("--out", help="write every figure as JSON lines into this file")
    options = parser.parse_args()

    workers = {peer: Worker(peer, options.cut_off) for peer in ("ours", *PEERS)}
    out = open(options.out, "w") if options.out else None  # noqa: SIM115 - closed below, absent without --out
    print(f"CPU ms, medians; Python {platform.python_version()}, {os.cpu_count()} cores; java: Kafka's classes, warmed")
    header = f"{'strategy':27}{'members':>8}{'topics':>7}{'parts':>10} {'shape':12}{'racks':6}{'change':7}"
    print(header + f"{'ours':>10}{'java':>12}{'java/ours':>11}{'kafka-python':>14}{'aiokafka':>12}")
    too_slow: dict[tuple[object, ...], int] = {}
    try:
        for cell in grid() if options.grid else selection():
            if options.strategy and cell.strategy not in options.strategy:
                continue
            if options.members and cell.members not in options.members:
                continue
            results = {"ours": workers["ours"].run(cell)}
            for peer in PEERS:
                results[peer] = run_peer(workers[peer], cell, too_slow)
            print(
                f"{cell.strategy:27}{cell.members:8,}{cell.topics:7,}{cell.total:10,} {cell.shape:12}"
                f"{'on' if cell.racks else 'off':6}{cell.change:7}{shown(results['ours']):>10}"
                f"{shown(results['java']):>12}{ratio(results['java'], results['ours']):>11}"
                f"{shown(results['kafka-python']):>14}{shown(results['aiokafka']):>12}",
                flush=True,
            )
            if out:
                row = asdict(cell) | {peer: asdict(result) for peer, result in results.items()}
                out.write(json.dumps(row) + "\n")
                out.flush()
        if not options.no_growth:
            print_growth(workers["ours"], options.strategy)
    finally:
        for worker in workers.values():
            worker.stop()
        if out:
            out.close()


def run_peer(worker: Worker, cell: Cell, too_slow: dict[tuple[object, ...], int]) -> Result:
    kind = (worker.peer, cell.strategy, cell.shape, cell.racks, cell.change)
    if too_slow.get(kind, sys.maxsize) <= cell.total * cell.members:
        return Result(None, f"> {worker.cut_off_s:.0f} s")
    result = worker.run(cell)
    if result.why.startswith(">"):
        too_slow[kind] = cell.total * cell.members
    return Result(None, "-") if result.why == "not offered" else result


def print_growth(worker: Worker, only: list[str] | None) -> None:
    print("\ngrowth: time ~ partitions ^ exponent, at the same number of members")
    for name, cells in growth():
        if only and cells[0].strategy not in only:
            continue
        points = [(cell.total, worker.run(cell)) for cell in cells]
        figures = ", ".join(f"{total:,}: {shown(result)} ms" for total, result in points)
        known = [(total, result.seconds) for total, result in points if result.seconds]
        exponent = f"{fitted_exponent(known):.2f}" if len(known) > 1 else "?"
        print(f"{name:45} {exponent:>5}   ({figures})", flush=True)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.spark_eval`: what Spark adds to a sweep, and what a second core brings.

Cores      the same runs, of five members and 24 partitions, with local[1] and with local[2]
Overhead   the same runs in a plain multiprocessing pool of two, beside local[2]; both without starting up
Size       runs per second of a small, a middle and a large scenario
Growth     1,000, 10,000 and 100,000 runs of a minute with two members: cost per run
--runs     how many for the first two (5,000: below that Spark's JVM is still warming up)
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

from rebalance_lab.spark_eval.cells import Cell, cells_of
from rebalance_lab.spark_eval.folder import Folder
from rebalance_lab.spark_eval.session import open_session
from rebalance_lab.spark_eval.stages.run_stage import result
from rebalance_lab.spark_eval.sweep import run_sweep
from rebalance_lab.spark_eval.sweep_file import Sweep, read_sweep

STRATEGIES = ("classic/range", "classic/cooperative-sticky", "consumer/uniform", "consumer/uniform+static")
SIZES = {"small": (3, 12), "middle": (10, 60), "large": (40, 400)}
USUAL = (5, 24)


def sweep_of(members: int, partitions: int, runs: int, minutes: int = 10) -> Sweep:
    """Four strategies, five downtimes, and as many seeds as it takes."""
    scenario = {
        "name": "bench",
        "duration": f"{minutes}m",
        "topics": {"orders": {"partitions": partitions, "rate": f"{10 * partitions}/s"}},
        "members": {"consumer": {"count": members, "topics": "orders", "record": f"{50 * members / partitions:.3f}ms"}},
        "network": {"latency": "2ms", "jitter": "2ms"},
        "timeline": [{"at": f"{12 * minutes}s", "rolling restart": {"downtime": "10s", "gap": "5s"}}],
    }
    varied = {"timeline[0].rolling restart.downtime": ["2s", "5s", "10s", "20s", "40s"]}
    data = {"scenario": scenario, "parameters": varied, "strategies": list(STRATEGIES), "seeds": max(1, runs // 20)}
    return read_sweep(data, Path())


def with_spark(sweep: Sweep, cores: int) -> float:
    """Seconds of the runs alone, once workers are up."""
    with open_session(f"local[{cores}]") as spark, tempfile.TemporaryDirectory() as folder:
        run_sweep(spark, sweep_of(2, 4, 20), Folder(spark, f"{folder}/warm"))
        return run_sweep(spark, sweep, Folder(spark, f"{folder}/runs")).seconds


def one(arguments: tuple[Cell, str, int]) -> Any:
    cell, strategy, seed = arguments
    return result("", cell.cell_id, strategy, seed, cell.document)


def with_pool(sweep: Sweep, cores: int) -> float:
    pairs = [
        (cell, strategy, seed) for cell in cells_of(sweep) for strategy in sweep.strategies for seed in sweep.seeds
    ]
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        pool.map(one, pairs[:cores])
        began = time.monotonic()
        pool.map(one, pairs, chunksize=10)
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5_000)
    options = parser.parse_args()
    sweep = sweep_of(*USUAL, options.runs)
    runs = len(cells_of(sweep)) * len(sweep.strategies) * len(sweep.seeds)
    pool = with_pool(sweep, 2)
    two, alone = with_spark(sweep, 2), with_spark(sweep, 1)
    print(f"cores     {runs:,} runs: {alone:.1f} s with one, {two:.1f} s with two: {alone / two:.2f}x (goal 1.8x)")
    print(
        f"overhead  a pool of two takes {pool:.1f} s: Spark takes {two / pool - 1:+.0%} (goal at most +15%)", flush=True
    )
    for name, (members, partitions) in SIZES.items():
        count = max(20, options.runs * 9 // (members * members))
        took = with_spark(sweep_of(members, partitions, count), 2)
        done = max(1, count // 20) * 20
        print(f"size      {name}, {members} members, {partitions} partitions: {done / took:,.1f} runs/s", flush=True)
    for count in (1_000, 10_000, 100_000):
        took = with_spark(sweep_of(2, 4, count, minutes=1), 2)
        print(f"growth    {count:,} runs: {1_000 * took / count:.2f} ms a run", flush=True)


if __name__ == "__main__":
    main()

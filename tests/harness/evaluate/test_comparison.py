"""Strategies side by side: paired, ranked by weights, the same bytes every time, and nothing hidden."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.comparison import Comparison, compare, split_strategies, usual_strategies
from rebalance_lab.harness.evaluate.intervals import median
from rebalance_lab.harness.evaluate.runs import Sample
from rebalance_lab.harness.evaluate.saved_runs import read_comparison
from rebalance_lab.harness.measure.cost_weights import NAMES, default_weights, parse_weights, score
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from tests.harness.small_scenarios import RESTART, write
from tests.paths import ROOT

THREE = ("classic/range", "classic/cooperative-sticky", "consumer/uniform")


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return parse_scenario(RESTART)


@pytest.fixture(scope="module")
def compared(scenario: Scenario) -> Comparison:
    return compare(scenario, THREE, range(1, 7), jobs=1)


def row(**costs: float) -> dict[str, Any]:
    return {**dict.fromkeys(NAMES, 0), **costs}


def made_up(scenario: Scenario, rows: dict[str, list[dict[str, Any] | str]], **more: Any) -> Comparison:
    """A comparison without runs; a text instead of a row is what broke."""
    samples = [
        Sample(strategy=strategy, seed=seed, broken=one, broken_at_ms=5)
        if isinstance(one, str)
        else Sample(strategy=strategy, seed=seed, costs=one)
        for strategy, runs in rows.items()
        for seed, one in enumerate(runs, start=1)
    ]
    seeds = tuple(range(1, len(next(iter(rows.values()))) + 1))
    return Comparison(
        scenario=scenario,
        strategies=tuple(rows),
        seeds=seeds,
        weights=default_weights(),
        samples=tuple(samples),
        **more,
    )


def test_every_strategy_meets_the_same_seeds(compared: Comparison) -> None:
    assert [(one.strategy, one.seed) for one in compared.samples] == [(s, n) for s in THREE for n in range(1, 7)]
    assert compared.broken == ()


def test_other_processes_give_the_same_bytes_as_this_one(scenario: Scenario, compared: Comparison) -> None:
    spread = compare(scenario, THREE, range(1, 7), jobs=2)
    assert json.dumps(spread.to_json(measured=False)) == json.dumps(compared.to_json(measured=False))


def test_another_hash_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rebalance_lab.api.cli", "compare", write(tmp_path), "--seeds", "2", "--json"]
    outputs = [
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=120
        ).stdout
        for seed in ("1", "2")
    ]
    first, second = (read_comparison(json.loads(one)).to_json(measured=False) for one in outputs)
    assert json.dumps(first) == json.dumps(second)


def test_a_row_has_what_the_leaders_assignments_took_where_there_are_leaders(compared: Comparison) -> None:
    data = compared.to_json()
    took = {run["strategy"]: run.get("assignment_cpu_ms") for run in data["runs"]}
    assert took["classic/range"] > 0
    assert took["consumer/uniform"] is None  # the broker assigns
    ranked = {one["strategy"]: one.get("assignment_cpu_ms") for one in data["ranking"]}
    assert ranked["classic/range"]["low"] <= ranked["classic/range"]["median"] <= ranked["classic/range"]["high"]
    assert "assignment_cpu_ms" not in json.dumps(compared.to_json(measured=False))


def test_differences_are_taken_seed_by_seed(compared: Comparison) -> None:
    pairs = [compared.scores["consumer/uniform"][seed] - compared.scores["classic/range"][seed] for seed in range(1, 7)]
    found = next(one for one in compared.ranking if one.strategy == "consumer/uniform").against
    assert compared.reference == "classic/range"  # what the scenario says runs now
    assert found is not None
    assert found.median == pytest.approx(median(pairs))


def test_a_seed_that_is_bad_for_all_does_not_widen_a_difference(scenario: Scenario) -> None:
    luck = [0, 500, 3, 900, 40, 7]
    rows = {
        "classic/range": [row(unowned_s=10 + bad) for bad in luck],
        "classic/sticky": [row(unowned_s=8 + bad) for bad in luck],
    }
    (best, _) = made_up(scenario, rows).ranking
    assert (best.strategy, best.wins) == ("classic/sticky", 1.0)
    assert best.against is not None
    assert (best.against.low, best.against.high) == (-2, -2)


def test_weights_change_the_ranking(scenario: Scenario) -> None:
    rows = {"classic/range": [row(unowned_s=10, moved=2)] * 6, "classic/sticky": [row(unowned_s=2, moved=50)] * 6}
    usual = made_up(scenario, rows)
    assert [one.strategy for one in usual.ranking] == ["classic/sticky", "classic/range"]
    assert [one.strategy for one in usual.weighted(parse_weights("moved=1")).ranking] == [
        "classic/range",
        "classic/sticky",
    ]


def test_equals_share_the_seeds_they_win_and_keep_their_order(scenario: Scenario) -> None:
    rows = {"consumer/uniform": [row(moved=3)] * 4, "consumer/uniform+static": [row(moved=3)] * 4}
    ranking = made_up(scenario, rows).ranking
    assert [(one.strategy, one.wins) for one in ranking] == [
        ("consumer/uniform", 0.5),
        ("consumer/uniform+static", 0.5),
    ]


def test_a_broken_run_takes_the_rank_and_stands_last(scenario: Scenario) -> None:
    rows: dict[str, list[dict[str, Any] | str]] = {
        "classic/range": [row(unowned_s=1), "one owner: a and b (at 0.005 s)"],
        "classic/sticky": [row(unowned_s=9), row(unowned_s=9)],
    }
    found = made_up(scenario, rows)
    assert [(one.strategy, one.rank, len(one.broken)) for one in found.ranking] == [
        ("classic/sticky", 1, 0),
        ("classic/range", None, 1),
    ]
    assert found.reference == "classic/sticky"  # what runs now broke: the best stands in
    assert found.to_json()["ranking"][1]["broken"][0]["broken"].startswith("one owner")


def test_a_saved_comparison_reads_back_as_the_same(compared: Comparison) -> None:
    text = json.dumps(compared.to_json())
    assert json.dumps(read_comparison(json.loads(text)).to_json()) == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["runs"].pop(), "runs: there must be one run for each strategy and seed"),
        (lambda data: data["runs"][0].update(moved="x"), "runs[0].moved: expected a number, got 'x'"),
        (lambda data: data["runs"][0].update(moved=10**400), "runs[0].moved: must be between 0 and 1e+18, got 1000"),
        (lambda data: data["runs"][0].update(assignment_cpu_ms="x"), "runs[0].assignment_cpu_ms: expected a number"),
        (lambda data: data["runs"][0].update(moved=-1), "runs[0].moved: must be between 0 and 1e+18, got -1"),
        (lambda data: data["weights"].update(moved=10**400), "weights.moved: moved needs a number from 0"),
        (lambda data: data["runs"][0].pop("seed"), "runs[0]: needs a strategy and a seed"),
        (lambda data: data["weights"].update(moved=True), "weights.moved: moved needs a number from 0"),
        (lambda data: data["weights"].update(moved=-1), "weights.moved: moved needs a number from 0"),
        (lambda data: data.pop("description"), "description: the scenario is empty"),
        (lambda data: data["description"].update(duration=5), "description.duration: 5 has no unit"),
    ],
)
def test_a_spoilt_saved_comparison_is_one_line(compared: Comparison, change: Any, message: str) -> None:
    data = json.loads(json.dumps(compared.to_json()))
    change(data)
    with pytest.raises(ContractError) as caught:
        read_comparison(data)
    assert message in str(caught.value)


def test_the_usual_seven_where_nobody_says(scenario: Scenario) -> None:
    strategies, notes = usual_strategies(scenario)
    assert len(strategies) == 7
    assert notes == ()


def test_a_migration_is_run_from_where_it_starts() -> None:
    strategies, notes = usual_strategies(load_scenario(ROOT / "examples/scenarios/eager_to_cooperative.yaml"))
    assert strategies == ("classic/range",)
    assert "migrates away from classic/range" in notes[0]


def test_what_runs_now_is_always_among_them() -> None:
    strategies, _ = usual_strategies(parse_scenario({**RESTART, "strategy": "classic/range,cooperative-sticky"}))
    assert strategies[0] == "classic/range,cooperative-sticky"
    assert len(strategies) == 8


def test_strategies_are_split_at_commas_or_where_lists_are_meant_at_semicolons() -> None:
    assert split_strategies("range, uniform") == ["range", "uniform"]
    assert split_strategies("classic/range,sticky;uniform") == ["classic/range,sticky", "uniform"]


def test_the_unit_is_one_partition_standing_still_for_one_second() -> None:
    assert score(row(unowned_s=1), default_weights()) == 1
    assert score(row(read_twice=100), default_weights()) == 1


CHILDREN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs the tests in the background has it ignored
from rebalance_lab.harness.evaluate.comparison import compare
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.small_scenarios import RESTART
if __name__ == "__main__":
    try:
        many = range(1, 5_000)
        compare(parse_scenario(RESTART), ["classic/range"], many, jobs=2, progress=lambda done: print(done, flush=True))
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look for processes")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_comparison_leaves_no_processes(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILDREN], cwd=ROOT, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"1\n"
            workers = children(running.pid)
            assert len(workers) >= 2
            running.send_signal(how)
            running.wait(timeout=60)
        finally:
            running.kill()
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
    assert running.returncode == (130 if how is signal.SIGINT else -signal.SIGKILL)


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found

"""A good scenario with something wrong put into it is read, or refused in one line; nothing else may happen."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.measure.invariants import Checker
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.writer import scenario_json
from tests.harness.random_scenarios import STRATEGIES
from tests.paths import SCENARIOS

README = SCENARIOS / "README.md"
JUNK: list[Any] = [
    *(None, True, 0, -1, 1, 3.5, 1e400, float("nan"), -0.0, 10**30, 2**31, b"x", (1,)),
    *(
        "",
        "x",
        "5m",
        "0s",
        "5/s",
        "1e308/s",
        "9" * 15 + "d",
        "consumer",
        "consumer-1",
        "audit",
        "orders",
        "classic/range",
    ),
    *("\ud800", "a\nb", "[", "a" * 300, "{n}", "zipf 1", "zipf nan", "zipf -1", "(?i)x", "*", "(?=x)"),
    *([], {}, [1], ["a", "a"], [[]], [["a"]], [None], [5e-324] * 6, [1e308] * 6),
    *({"a": 1}, {1: 2}, {"x": {}}, {"members": "consumer"}, {"base": "5/s"}, {"steps": []}),
]
NEAR: list[Any] = [2, 7, 0.001, "1ms", "100ms", "1s", "1000d", "1/s", "100k/s", ["orders"], "uniform", "range"]
"""What a reader takes more often than not."""
RUNS = 500


def every_path(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from every_path(value[key], (*path, key))


def spoilt(rng: Random, good: Any, paths: list[tuple[Any, ...]], junk: list[Any] = JUNK) -> Any:
    data = copy.deepcopy(good)
    for path in rng.sample(paths, rng.choice([1, 1, 2])):
        place = data
        try:
            for key in path[:-1]:
                place = place[key]
            if rng.random() < 0.8:
                place[path[-1]] = copy.deepcopy(rng.choice(junk))
            else:
                del place[path[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # what was spoilt before is not there any more
    return data


def test_a_spoilt_scenario_is_read_or_refused_in_one_line() -> None:
    good = decode_document(README.read_text().split("```yaml")[1].split("```")[0])
    paths = list(every_path(good))
    refusals = []
    for seed in range(RUNS):
        data = spoilt(Random(seed), good, paths)
        try:
            scenario = parse_scenario(data)
        except ContractError as error:
            refusals.append(str(error))
        else:
            assert parse_scenario(json.loads(json.dumps(scenario_json(scenario)))) == scenario, seed
    assert [text for text in refusals if "\n" in text] == []
    assert RUNS / 2 < len(refusals) < RUNS


def test_what_is_read_can_be_run_and_breaks_nothing() -> None:
    """However odd: an example with something else in a place or two, run if it is read and small."""
    goods = [decode_document(file.read_text()) for file in sorted(SCENARIOS.glob("*.yaml"))]
    ran = 0
    for seed in range(1_500):
        rng = Random(seed)
        good = rng.choice(goods)
        try:
            scenario = parse_scenario(spoilt(rng, good, list(every_path(good)), JUNK + 2 * NEAR))
        except ContractError:
            continue
        partitions, hours = sum(topic.partitions for topic in scenario.topics), scenario.duration_ms / 3_600_000
        if len(scenario.members) > 20 or partitions > 200 or hours > 1:
            continue
        run = simulate(scenario, rng.choice(STRATEGIES), seed, watch=Checker().feed)
        assert costs(run.facts).row()
        ran += 1
    assert ran > 100

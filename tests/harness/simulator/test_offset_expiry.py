"""Expire committed offsets of an empty group, with idle leaps and without."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import costs
from rebalance_lab.harness.measure.invariants import Checker
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.rules import ProtocolChecker

STRATEGIES = ("classic/range", "classic/cooperative-sticky", "consumer/uniform")
LEFT_MS = 300_000
RETENTION_MS = 120_000
CHECK_MS = 30_000
PARTITIONS = 4
BEFORE = 12_000
"""Records that were written and processed before the group was stopped."""


def facts_of(strategy: str, *, leaps: bool, retention: int = 2, **client: Any) -> list[Fact]:
    away = {"at": "5m", "restart": {"members": "c", "downtime": "10m"}}
    scenario = parse_scenario(
        {
            "name": "ten minutes away",
            "duration": "20m",
            "topics": {"orders": {"partitions": PARTITIONS, "rate": "40/s"}},
            "members": {"c": {"count": 2, "topics": "orders", "record": "1ms"}},
            "client": client,
            "broker": {"offsets.retention.minutes": retention, "offsets.retention.check.interval.ms": CHECK_MS},
            "timeline": [away],
        }
    )
    checkers = Checker(), ProtocolChecker(auto_commit=client.get("enable.auto.commit", True))

    def watch(fact: Fact) -> None:
        for checker in checkers:
            checker.feed(fact)

    return simulate(scenario, strategy, 1, leaps=leaps, watch=watch, messages=True).facts


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("leaps", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_that_was_away_for_longer_than_the_retention_begins_again(
    strategy: str, leaps: bool, auto_commit: bool
) -> None:
    facts = facts_of(strategy, leaps=leaps, **{"enable.auto.commit": auto_commit})
    [expired] = [fact for fact in facts if fact["fact"] == "expired"]
    assert expired["partitions"] == {"orders": list(range(PARTITIONS))}
    assert LEFT_MS + RETENTION_MS <= expired["t"] <= LEFT_MS + RETENTION_MS + 2 * CHECK_MS
    first = next(fact for fact in facts if fact["fact"] == "reads" and fact["t"] > expired["t"])
    assert set(first["from"]["orders"]) == {0}
    assert costs(facts).read_twice == pytest.approx(BEFORE, abs=PARTITIONS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_records_of_expired_offsets_wait_again(strategy: str) -> None:
    facts = facts_of(strategy, leaps=True)
    expired = next(fact["t"] for fact in facts if fact["fact"] == "expired")
    lags = {fact["t"]: fact["records"] for fact in facts if fact["fact"] == "lag"}
    after = next(records for at_ms, records in lags.items() if at_ms > expired)
    before = [records for at_ms, records in lags.items() if at_ms < expired][-1]
    assert after - before >= BEFORE - PARTITIONS


@pytest.mark.parametrize("leaps", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_group_that_is_back_in_time_goes_on_where_it_was(strategy: str, leaps: bool) -> None:
    facts = facts_of(strategy, leaps=leaps, retention=12)
    assert not [fact for fact in facts if fact["fact"] == "expired"]
    assert costs(facts).read_twice == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_offsets_of_members_that_read_do_not_expire(strategy: str) -> None:
    """Twenty minutes with a retention of one, in leaps."""
    scenario = parse_scenario(
        {
            "name": "quiet",
            "duration": "20m",
            "topics": {"orders": {"partitions": PARTITIONS, "rate": "40/s"}},
            "members": {"c": {"count": 2, "topics": "orders"}},
            "broker": {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000},
        }
    )
    run = simulate(scenario, strategy, 1, watch=Checker().feed)
    assert not [fact for fact in run.facts if fact["fact"] == "expired"]
    assert costs(run.facts).read_twice == 0

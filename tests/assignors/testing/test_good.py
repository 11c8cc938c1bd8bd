"""What keeps its promises passes: the built-in assignors, and plain good ones as people would write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rebalance_lab.assignors.strategies import BUILT_IN
from rebalance_lab.assignors.testing.properties.contract import BY_NAME, EVERYBODY, PROPERTIES
from rebalance_lab.assignors.testing.properties.promises import PROMISES
from rebalance_lab.assignors.testing.search.checking import check
from rebalance_lab.assignors.testing.search.report_card import BROKEN
from rebalance_lab.assignors.testing.search.report_text import card, counterexample
from rebalance_lab.assignors.testing.subject.targets import load_target
from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn
from tests.assignors.testing.good import GOOD

EXAMPLES = 2_000
"""The default of `rebalance-lab check`."""


@pytest.mark.parametrize("strategy", BUILT_IN)
def test_a_built_in_assignor_keeps_all_it_promises(
    strategy: str, record_property: Callable[[str, object], None]
) -> None:
    report = check(load_target(strategy), EXAMPLES, machines=ProtocolChurn)
    assert report.holds, "\n\n".join(counterexample(report, finding) for finding in report.findings)
    assert not any(row.verdict == BROKEN for row in report.rows)
    held = ", ".join(f"{row.name} {row.examples}" for row in report.rows if row.promised)
    few = [row.name for row in report.rows if row.promised and row.examples < (20 if BY_NAME[row.name].last else 100)]
    assert not few, f"hardly looked at: {held}"
    assert not report.notes
    if strategy == "classic/cooperative-sticky":
        record_property(f"table: report card of {strategy}", card(report))


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("seed", [1])
def test_an_assignor_without_a_bug_is_not_accused_of_one(good: type, seed: int) -> None:
    report = check(load_target(f"{good.__module__}:{good.__qualname__}"), 1_000, seed, machines=ProtocolChurn)
    assert report.holds, "\n\n".join(counterexample(report, finding) for finding in report.findings)


def test_what_is_waived_is_not_brought_up_by_another_property() -> None:
    """Example 273 has racks, for which cooperative-rounds is waived; others meet those rounds on their way."""
    report = check(load_target("classic/cooperative-sticky"), 300, seed=13)
    assert report.holds, "\n\n".join(counterexample(report, finding) for finding in report.findings)


def test_every_promise_has_its_property() -> None:
    assert {each.promise for each in PROPERTIES} - {EVERYBODY} == set(PROMISES)


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (check(load_target("classic/range"), 300, seed=7) for _ in range(2))
    assert [(row.name, row.examples, row.broken) for row in first.rows] == [
        (row.name, row.examples, row.broken) for row in second.rows
    ]


def test_what_the_kit_costs_is_in_its_report(record_property: Callable[[str, object], None]) -> None:
    """CPU seconds; the machines' are what a churn through the real protocol takes beside the assignor and the kit."""
    lines = [f"{'assignor':34}{'calls':>9}{'assignor':>10}{'kit':>9}{'overhead':>10}{'machines':>10}{'10,000 in':>11}"]
    for text in (*BUILT_IN, "examples.custom_assignor.keeper_fixed:Keeper", "tests.assignors.testing.good:GoodBlocks"):
        report = check(load_target(text), examples=EXAMPLES, machines=ProtocolChurn)
        assert report.holds
        own, machines = (seconds * report.busy for seconds in (report.assignor_seconds, report.machine_seconds))
        assert 0 < own < report.cpu_seconds
        lines.append(
            f"{text.rpartition('.')[2]:34}{report.calls:9,}{own:8.2f} s{report.cpu_seconds - own - machines:7.2f} s"
            f"{report.overhead:10.0%}{machines:8.2f} s{10_000 / EXAMPLES * report.cpu_seconds:9.0f} s"
        )
    record_property(f"table: what the property kit costs, {EXAMPLES:,} examples each", "\n".join(lines))

"""Every bug of the zoo is caught by the property that names it, soon, and made small."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from rebalance_lab.assignors.testing.properties.contract import BY_NAME
from rebalance_lab.assignors.testing.search.checking import check, replay
from rebalance_lab.assignors.testing.subject.targets import load_target
from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn
from tests.assignors.testing.zoo import BUGS, churn

FAMILIES = {
    "what is given": ("valid",),
    "same input, same answer": ("pure", "deterministic", "order-independent"),
    "balance, moves and racks": (
        "balanced",
        "per-topic-balanced",
        "load-balanced",
        "sticky",
        "sticky-leave",
        "sticky-join",
        "settles",
        "minimal-moves",
        "cooperative",
        "cooperative-rounds",
        "rack-aware",
    ),
    "time": ("bounded-time",),
    "a history through the real protocol": ("survives-churn",),
}


def caught(bug: Any) -> str:
    """One row of the table; an assertion when the kit did not do its work."""
    target = load_target(f"{bug.__module__}:{bug.__qualname__}")
    started = time.monotonic()
    report = check(target, machines=ProtocolChurn)
    took = time.monotonic() - started
    finding = report.finding(bug.caught_by)
    assert finding is not None, (
        f"{bug.__name__} is not caught by {bug.caught_by}: {[f.property for f in report.findings]}"
    )
    members, partitions = finding.size()
    assert took < 60, f"{bug.__name__} took {took:.0f} s"
    if bug.small:
        assert members <= 3, f"{bug.__name__} is shown with {members} members: {finding.case}"
        assert partitions <= 4, f"{bug.__name__} is shown with {partitions} partitions: {finding.case}"
    if bug.caught_by != "bounded-time":
        again = replay(target, bug.caught_by, finding.case, ProtocolChurn)
        assert again is not None, f"{bug.__name__}: the replay does not show it"
        assert again.property == bug.caught_by
    return f"{bug.__name__:36}{bug.caught_by:20}{members:8}{partitions:11}{took:8.1f} s   {finding.message[:90]}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_bug_is_caught_by_the_property_that_names_it(
    family: str, record_property: Callable[[str, object], None]
) -> None:
    rows = [caught(bug) for bug in BUGS if getattr(bug, "caught_by", None) in FAMILIES[family]]
    header = f"{'bug':36}{'caught by':20}{'members':>8}{'partitions':>11}{'found in':>10}   what is said"
    record_property(f"table: the zoo of bugs, {family}", "\n".join([header, *rows]))


def test_what_only_a_history_shows_is_not_seen_without_one() -> None:
    named = [bug for bug in BUGS if bug.__module__ == churn.__name__]
    assert len(named) >= 3
    for each in named:
        assert check(load_target(f"{each.__module__}:{each.__qualname__}"), 400).holds, each


def test_the_zoo_is_large_and_every_bug_has_a_family() -> None:
    assert len(BUGS) >= 30
    listed = [name for names in FAMILIES.values() for name in names]
    assert {getattr(bug, "caught_by", "") for bug in BUGS} <= set(listed)
    assert set(listed) <= set(BY_NAME)

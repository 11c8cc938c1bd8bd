"""What keeps its promises passes: the built-in assignors, and plain good ones as people would write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assignors.strategies import BUILT_IN
from assignors.testing.check import check
from assignors.testing.report import BROKEN
from assignors.testing.targets import load_target
from assignors.testing.text import card, counterexample
from tests.testing.good import GOOD

EXAMPLES = 2_000


@pytest.mark.parametrize("strategy", BUILT_IN)
def test_a_built_in_assignor_keeps_all_it_promises(
    strategy: str, record_property: Callable[[str, object], None]
) -> None:
    report = check(load_target(strategy), EXAMPLES)
    assert report.holds, "\n\n".join(counterexample(report, finding) for finding in report.findings)
    assert not any(row.verdict == BROKEN for row in report.rows)
    held = ", ".join(f"{row.name} {row.examples}" for row in report.rows if row.promised)
    assert all(row.examples >= 100 for row in report.rows if row.promised), f"hardly looked at: {held}"
    assert not report.notes
    if strategy == "classic/cooperative-sticky":
        record_property(f"table: report card of {strategy}", card(report))


@pytest.mark.parametrize("good", GOOD)
@pytest.mark.parametrize("seed", [1])
def test_an_assignor_without_a_bug_is_not_accused_of_one(good: type, seed: int) -> None:
    report = check(load_target(f"{good.__module__}:{good.__qualname__}"), 1_000, seed)
    assert report.holds, "\n\n".join(counterexample(report, finding) for finding in report.findings)


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (check(load_target("classic/range"), 300, seed=7) for _ in range(2))
    assert [(row.name, row.examples, row.broken) for row in first.rows] == [
        (row.name, row.examples, row.broken) for row in second.rows
    ]


def test_what_the_kit_costs_is_in_its_report(record_property: Callable[[str, object], None]) -> None:
    lines = [f"{'assignor':44}{'calls':>9}{'assignor':>11}{'kit':>9}{'overhead':>10}{'10,000 examples':>18}"]
    for text in ("classic/range", "classic/sticky", "classic/load-aware", "tests.testing.good:GoodKeeper"):
        report = check(load_target(text), 1_000)
        assert 0 < report.assignor_seconds < report.seconds
        kit = report.seconds - report.assignor_seconds
        lines.append(
            f"{text:44}{report.calls:9,}{report.assignor_seconds:9.2f} s{kit:7.2f} s"
            f"{kit / report.assignor_seconds:10.0%}{10 * report.seconds:16.0f} s"
        )
    record_property("table: what the property kit costs, 1,000 examples each", "\n".join(lines))

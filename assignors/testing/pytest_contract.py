"""Run the contract as a pytest base class: one test per property, all from one search.

    class TestMine(AssignorContract):
        assignor = Mine                      # a class, an instance, or "package.module:Class"
        promises = ("balanced", "sticky")    # optional: beside those that the class declares
        examples = 500                       # optional
        machines = ProtocolChurn             # optional: churn through the real protocol, too

A property that is promised and broken fails with its counterexample, shrunk; one that is not promised is measured, and
passes. The search is the one of `rebalance-lab check` rather than one Hypothesis test per property. It shares every
answer among all properties, survives a class that hangs, and looks at thousands of groups in a second.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import ClassVar

import pytest

from rebalance_lab.assignors.testing.properties.contract import PROPERTIES
from rebalance_lab.assignors.testing.search.checking import EXAMPLES, check
from rebalance_lab.assignors.testing.search.report_card import NOT_RUN, Report
from rebalance_lab.assignors.testing.search.report_text import counterexample, verdict
from rebalance_lab.assignors.testing.subject.rounds import DriverFactory, MachineFactory, Rounds
from rebalance_lab.assignors.testing.subject.targets import target_of


class AssignorContract:
    assignor: ClassVar[object] = None
    promises: ClassVar[Collection[str]] = ()
    examples: ClassVar[int] = EXAMPLES
    seed: ClassVar[int] = 0
    driver: ClassVar[DriverFactory] = Rounds
    machines: ClassVar[MachineFactory | None] = None
    _report: ClassVar[Report | None] = None

    @classmethod
    def report(cls) -> Report:
        if "_report" not in vars(cls) or cls._report is None:
            target = target_of(cls.assignor, cls.promises)
            driver, machines = (inspect.getattr_static(cls, name) for name in ("driver", "machines"))
            cls._report = check(target, cls.examples, cls.seed, driver=driver, machines=machines)
        return cls._report

    @pytest.mark.parametrize("name", [each.name for each in PROPERTIES])
    def test_keeps(self, name: str, record_property: Callable[[str, object], None]) -> None:
        if self.assignor is None:
            pytest.skip("AssignorContract is a base class: set `assignor`")
        report = self.report()
        row, finding = report.row(name), report.finding(name)
        record_property("verdict", verdict(row))
        if finding is not None:
            pytest.fail(counterexample(report, finding), pytrace=False)
        if row.verdict == NOT_RUN and report.findings:
            pytest.skip(f"not looked at, because {report.findings[0].property} is broken")

"""Run the contract without test code: `pytest --assignor package.module:Class` is this plugin.

Each property is an item of its own, so -k, -x and reports work as with any test. The plugin also keeps the tests of one
contract class on one xdist worker, because they share one search. It imports the kit only when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rebalance_lab.assignors.testing.search.report_card import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rebalance-lab", "property-testing of Kafka assignors")
    group.addoption("--assignor", action="append", default=[], metavar="TARGET", help="as for rebalance-lab check")
    group.addoption("--assignor-examples", type=int, default=2000, metavar="N", help="groups to try (2000)")
    group.addoption("--assignor-seed", type=int, default=0, metavar="S", help="which groups (0)")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    for text in config.getoption("--assignor"):
        items.extend(
            ContractFile.from_parent(session, name=f"assignor {text}", path=config.rootpath, text=text).collect()
        )
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            owner = getattr(item, "cls", None)
            if owner is not None and any(base.__name__ == "AssignorContract" for base in owner.__mro__):
                item.add_marker(pytest.mark.xdist_group(f"{owner.__module__}.{owner.__qualname__}"))


class ContractFile(pytest.File):
    """Collect all properties of one assignor; the search runs when the first of them does."""

    def __init__(self, *, text: str, **known: Any) -> None:
        super().__init__(**known)
        self.text = text
        self._report: Report | None = None

    def report(self) -> Report:
        if self._report is None:
            from rebalance_lab.assignors.testing.search.checking import check
            from rebalance_lab.assignors.testing.subject.targets import load_target

            examples, seed = (self.config.getoption(f"--assignor-{option}") for option in ("examples", "seed"))
            self._report = check(load_target(self.text), examples, seed)
        return self._report

    def collect(self) -> Iterator[pytest.Item]:
        from rebalance_lab.assignors.testing.properties.contract import PROPERTIES

        for each in PROPERTIES:
            yield PropertyItem.from_parent(self, name=each.name)


class PropertyItem(pytest.Item):
    parent: ContractFile

    def runtest(self) -> None:
        from rebalance_lab.assignors.testing.search.report_text import counterexample, verdict

        report = self.parent.report()
        finding = report.finding(self.name)
        self.user_properties.append(("verdict", verdict(report.row(self.name))))
        if finding is not None:
            pytest.fail(counterexample(report, finding), pytrace=False)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, None, f"{self.parent.text} {self.name}"

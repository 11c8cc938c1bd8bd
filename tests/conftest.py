"""For all tests: Hypothesis profiles; an order that keeps all workers busy; at the end the tables that tests leave,
what had to be run twice, and what did not run and why."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.paths import ROOT

# One fixed sequence of examples on every machine; the deep profile draws anew each time.
settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


LONGEST_FIRST = (
    "tests/assignors/testing/test_zoo",
    "tests/api/service/test_openapi",
    "tests/assignors/testing/",
    "tests/harness/kafka/live/",
    "tests/harness/fidelity/",
)
"""A test of a minute that is begun last leaves the other workers with nothing to do."""


REAL = ("tests/harness/kafka/", "tests/harness/fidelity/", "tests/api/service/")
"""Other processes, with timeouts of their own, on a machine that other tests keep busy: what fails there by
chance passes the second time, and both are told."""


PACKAGES = ("assignors", "protocol_v1", "protocol_v2", "harness", "spark_eval", "api")


@pytest.fixture(scope="session", autouse=True)
def no_module_has_two_names() -> Iterator[None]:
    """A module that is loaded as `harness.x` beside `rebalance_lab.harness.x` has two copies of its classes."""
    yield
    bare = [name for name, module in sys.modules.items() if name.split(".")[0] in PACKAGES and is_ours(module)]
    assert bare == []


def is_ours(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().is_relative_to(ROOT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(REAL):
            item.add_marker(pytest.mark.flaky(reruns=1))

    def turn(item: pytest.Item) -> int:
        return next((n for n, start in enumerate(LONGEST_FIRST) if item.nodeid.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=turn)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    print_tables(terminalreporter)
    print_reruns(terminalreporter)
    print_skips(terminalreporter)


def print_tables(terminalreporter: Any) -> None:
    """`record_property("table: title", text)` in a test is a result worth reading, printed at the end of the run."""
    for report in (*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])):
        for name, text in getattr(report, "user_properties", ()):
            if name.startswith("table: ") and report.when == "call":
                terminalreporter.section(name.removeprefix("table: "))
                terminalreporter.write_line(text)


def print_reruns(terminalreporter: Any) -> None:
    """Nothing is run again in silence."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed at first, and was run again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


def print_skips(terminalreporter: Any) -> None:
    """Nothing is skipped in silence: reasons first, with the tests each of them kept from running."""
    by_reason: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        by_reason.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    terminalreporter.section("what did not run, and why")
    if not by_reason:
        terminalreporter.write_line("everything ran")
    for reason, tests in sorted(by_reason.items()):
        terminalreporter.write_line(f"{len(tests)} x {reason}")
        for test in sorted(tests):
            terminalreporter.write_line(f"    {test}")

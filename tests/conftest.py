"""For all tests: Hypothesis profiles; at the end the tables that tests leave, and what did not run and why."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings

# One fixed sequence of examples on every machine; the deep profile draws anew each time.
settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    print_tables(terminalreporter)
    print_skips(terminalreporter)


def print_tables(terminalreporter: Any) -> None:
    """`record_property("table: title", text)` in a test is a result worth reading, printed at the end of the run."""
    for report in (*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])):
        for name, text in getattr(report, "user_properties", ()):
            if name.startswith("table: ") and report.when == "call":
                terminalreporter.section(name.removeprefix("table: "))
                terminalreporter.write_line(text)


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

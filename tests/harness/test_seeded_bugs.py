"""Random scenarios find protocol bugs: each of those made by hand breaks an invariant within a few dozen runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness.seeded_bugs import BUGS, MOST_RUNS, hunt


@pytest.mark.parametrize("family", BUGS)
def test_an_invariant_breaks_soon_with_any_of_the_bugs(
    family: str, record_property: Callable[[str, object], None]
) -> None:
    rows, survivors = [], []
    for bug in BUGS[family]:
        found = hunt(bug)
        if found is None:
            survivors.append(bug.what)
        else:
            rows.append(f"{bug.what:66}{found.invariant:17}{found.runs:>4}  {found.strategy}")
    header = f"{'bug':66}{'invariant':17}runs  strategy"
    record_property(f"table: seeded bugs, {family}", "\n".join([header, *rows]))
    assert not survivors, f"not found within {MOST_RUNS} runs: {survivors}"


def test_there_are_twenty_of_them() -> None:
    assert len({bug.what for bugs in BUGS.values() for bug in bugs}) >= 20

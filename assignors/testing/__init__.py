"""The property-testing kit: point it at an assignor, get a report card of thousands of groups, or a counterexample.

Three ways in: `rebalance-lab check package.module:Class`; AssignorContract, a pytest base class; churn_machine, a
Hypothesis state machine. Needs the extra `testing`.

Read in this order
contract.py           every property by name, and under which promise it is held
properties.py         what everybody is held to, and balance; properties_moves.py: sticky, cooperative, racks, churn
families.py, draw.py  what is tried; events.py: what happens to a group; strategies.py: the same for Hypothesis
subject.py            the assignor on the bench; targets.py and adapters/: where it comes from
search.py, shrink.py  find, and make small; sandbox.py, elsewhere.py, crossing.py, history.py: other processes
check.py, report.py   the whole of it, and what comes out; text.py prints it
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_lab.assignors.testing.machine import churn_machine as churn_machine
    from rebalance_lab.assignors.testing.pytest_contract import AssignorContract as AssignorContract
    from rebalance_lab.assignors.testing.strategies import churn as churn
    from rebalance_lab.assignors.testing.strategies import groups as groups
    from rebalance_lab.assignors.testing.strategies import members as members
    from rebalance_lab.assignors.testing.strategies import topics as topics

_HOMES = {
    "AssignorContract": "pytest_contract",
    "churn": "strategies",
    "churn_machine": "machine",
    "groups": "strategies",
    "members": "strategies",
    "topics": "strategies",
}
__all__ = ["AssignorContract", "churn", "churn_machine", "groups", "members", "topics"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: the command line needs neither pytest nor Hypothesis."""
    if name in _HOMES:
        return getattr(import_module(f"rebalance_lab.assignors.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Test an assignor against its promises: a report card over thousands of groups, or the smallest counterexample.

Three ways in: `rebalance-lab check package.module:Class`; AssignorContract, a pytest base class; churn_machine, a
Hypothesis state machine. Needs the extra `testing`.

properties/         every property by name (properties/contract.py), and the promise under which it is held
sampling/           the groups that are tried: random groups, families of them, events that change a group
subject/            the assignor under test: loaded, asked under a time limit, its answer checked
search/             find a broken property, make its group small, print the report card
subprocess_oracle/  the same questions in another process, with another hash seed and in another order
hypothesis_machine.py, pytest_contract.py, pytest_plugin.py   the ways in for tests
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_lab.assignors.testing.hypothesis_machine import churn_machine as churn_machine
    from rebalance_lab.assignors.testing.pytest_contract import AssignorContract as AssignorContract
    from rebalance_lab.assignors.testing.sampling.hypothesis_strategies import churn as churn
    from rebalance_lab.assignors.testing.sampling.hypothesis_strategies import groups as groups
    from rebalance_lab.assignors.testing.sampling.hypothesis_strategies import members as members
    from rebalance_lab.assignors.testing.sampling.hypothesis_strategies import topics as topics

_HOMES = {
    "AssignorContract": "pytest_contract",
    "churn": "sampling.hypothesis_strategies",
    "churn_machine": "hypothesis_machine",
    "groups": "sampling.hypothesis_strategies",
    "members": "sampling.hypothesis_strategies",
    "topics": "sampling.hypothesis_strategies",
}
__all__ = ["AssignorContract", "churn", "churn_machine", "groups", "members", "topics"]


def __getattr__(name: str) -> Any:
    """Import when asked for: the command line needs neither pytest nor Hypothesis."""
    if name in _HOMES:
        return getattr(import_module(f"rebalance_lab.assignors.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

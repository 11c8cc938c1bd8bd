"""Find what a scenario's clients are set to: the members' own settings win over the scenario's.

Shared     values that hold for all members, and else the scenario's own: a user can paste them for the whole group
Different  all other values, which single members keep
Start at   shared, who_differs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_lab.harness.scenario.model import MemberSpec, Scenario

MOST_NAMES = 3


def settings_of(member: MemberSpec, scenario: Scenario) -> Mapping[str, Any]:
    return {**scenario.client, **member.client}


def shared(scenario: Scenario) -> Mapping[str, Any]:
    first, *others = (settings_of(member, scenario) for member in scenario.members)
    alike = {name: value for name, value in first.items() if all(one.get(name) == value for one in others)}
    return {**scenario.client, **alike}


def who_differs(scenario: Scenario, names: Sequence[str]) -> Iterator[str]:
    """Return one line for each value that is not the group's, in the order of `names`."""
    usual = shared(scenario)
    for name in names:
        members: dict[Any, list[str]] = {}
        for member in scenario.members:
            if name in member.client and member.client[name] != usual.get(name):
                members.setdefault(member.client[name], []).append(member.name)
        for value, those in members.items():
            has, whose = ("has", "its") if len(those) == 1 else ("have", "their")
            yield f"{listed(those)} {has} {name}={as_text(value)} of {whose} own"


def static_members(scenario: Scenario) -> list[str]:
    """List the members that have an instance id whatever the strategy."""
    return [member.name for member in scenario.members if member.instance_id is not None]


def listed(names: Sequence[str]) -> str:
    shown = list(names) if len(names) <= MOST_NAMES + 1 else [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Find a protocol and an assignor by name, such as `classic/sticky` or `consumer/uniform+static`.

Given      the text that a user wrote
Returns    a Strategy, and from it the assignor. An assignor's module is imported only when it is asked for, so that a
           command starts without the nine that it does not use
Start at   parse_strategy, load_assignor
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from rebalance_lab.assignors.assignor_error import AssignorError, error_line, error_text
from rebalance_lab.assignors.interface import Assignor, supported_protocols_of
from rebalance_lab.assignors.json_contract import ContractError, shown
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.user_code import keep_error

BUILT_IN: Mapping[str, tuple[str, str]] = {
    "classic/range": ("rebalance_lab.assignors.classic.range", "RangeAssignor"),
    "classic/roundrobin": ("rebalance_lab.assignors.classic.round_robin", "RoundRobinAssignor"),
    "classic/sticky": ("rebalance_lab.assignors.classic.sticky.sticky", "StickyAssignor"),
    "classic/cooperative-sticky": ("rebalance_lab.assignors.classic.cooperative_sticky", "CooperativeStickyAssignor"),
    "classic/load-aware": ("rebalance_lab.assignors.classic.load_aware", "LoadAwareAssignor"),
    "consumer/range": ("rebalance_lab.assignors.broker.range", "ServerRangeAssignor"),
    "consumer/uniform": ("rebalance_lab.assignors.broker.uniform", "UniformAssignor"),
}

SHORT = {"range": "classic/range"} | {
    name.split("/")[1]: name for name in BUILT_IN if name not in ("classic/range", "consumer/range")
}
"""An assignor's name alone. `range` exists in both protocols and means the one that nearly every group runs."""

PROTOCOLS = ("classic", "consumer")

OWN = __name__.rpartition(".")[0] + "."
"""Modules of the lab's own assignors begin with this: their answers need no check."""

LIMIT = 1 << 31
"""A partition is a signed number of 32 bits in all of Kafka's messages."""
MOST_PARTITIONS = 10_000_000
"""In one answer: five times as many as any scenario has, and in bytes about what a broker takes in one request."""

T = TypeVar("T")

_custom_allowed = True


def refuse_custom() -> None:
    """Refuse custom code in this process from now on: a request from a network must not name modules to import."""
    global _custom_allowed
    _custom_allowed = False


@dataclass(frozen=True, slots=True)
class Strategy:
    protocol: str
    assignor: str
    """Kafka's name of it, or `package.module:Class`."""
    static: bool = False

    def __str__(self) -> str:
        return f"{self.protocol}/{self.assignor}{'+static' if self.static else ''}"

    @property
    def is_custom(self) -> bool:
        return ":" in self.assignor


def parse_strategy(text: str, path: str = "strategy") -> Strategy:
    name = text.removesuffix("+static")
    name = SHORT.get(name, name)
    protocol, slash, assignor = name.partition("/")
    custom = _custom_allowed and slash and protocol in PROTOCOLS and ":" in assignor
    if name not in BUILT_IN and not custom:
        own = ", or classic/package.module:Class" if _custom_allowed else ""
        raise ContractError(path, f"unknown strategy {shown(text)}; known: {', '.join(BUILT_IN)}{own}")
    return Strategy(protocol, assignor, static=text.endswith("+static"))


def load_assignor(strategy: Strategy, path: str = "strategy") -> Assignor:
    """Return a new instance: sticky's memory of generations is an instance's own."""
    if strategy.is_custom:
        return load_custom(strategy.assignor, path)
    module, name = BUILT_IN[f"{strategy.protocol}/{strategy.assignor}"]
    return cast(Assignor, getattr(importlib.import_module(module), name)())


def load_named(strategy: Strategy, path: str = "strategy") -> Assignor:
    """Load an assignor for a group, whose members list assignors by name; a request for an assignment needs no name."""
    assignor = load_assignor(strategy, path)
    if strategy.is_custom:
        name = said(strategy, path, "name", lambda: getattr(assignor, "name", None))
        if not isinstance(name, str) or not name:
            raise ContractError(path, f"{strategy.assignor} has no name: members of a group list their assignors by it")
        if strategy.protocol == "classic":
            protocols = said(strategy, path, "supported_protocols", lambda: supported_protocols_of(assignor))
            if not protocols:
                raise ContractError(path, f"{strategy.assignor}.supported_protocols: names none")
    return assignor


def said(strategy: Strategy, path: str, attribute: str, read: Callable[[], T]) -> T:
    """Read what a custom class says of itself, or raise one line on why that cannot be had."""
    try:
        return read()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a property may do anything
        keep_error(error)
        raise ContractError(path, f"{strategy.assignor}.{attribute}: {error_text(error)}") from error


def load_custom(target: str, path: str = "strategy") -> Assignor:
    """Return an instance of `package.module:Class`, or raise one line on why there is none."""
    if not _custom_allowed:
        raise ContractError(path, f"{target} is custom code, and none is loaded here")
    module_name, _, class_name = target.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in class_name.split("."):
            found = getattr(found, part)
    except ImportError as error:
        keep_error(error)
        raise ContractError(path, f"{module_name} cannot be imported: {error}") from error
    except (AttributeError, ValueError) as error:
        keep_error(error)
        raise ContractError(path, f"{target} cannot be found: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a custom module may raise anything while it is imported, and call sys.exit()
        keep_error(error)
        raise ContractError(
            path, f"{module_name} raised {type(error).__name__} on import: {error_text(error)}"
        ) from error
    return made(found, target, path)


def made(found: object, target: str, path: str) -> Assignor:
    """Return an instance of what was found, or what was found itself: something with a method assign."""
    try:
        assignor = found() if isinstance(found, type) else found
        method = getattr(assignor, "assign", None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # likewise its constructor, and a property
        keep_error(error)
        raise ContractError(path, f"{target} cannot be made without arguments: {error_line(error)}") from error
    if not callable(method):
        raise ContractError(path, f"{target} has no method assign(group)")
    return cast(Assignor, assignor)


def run_assignor(assignor: Assignor, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
    """Return the assignor's answer; mistakes of custom code come back as AssignorError with one line each."""
    if type(assignor).__module__.startswith(OWN):
        return assignor.assign(group)
    name = type(assignor).__qualname__
    try:
        answer = assignor.assign(group)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a custom class raises is a finding about it, also SystemExit
        keep_error(error)
        raise AssignorError(f"{name}.assign raised {error_line(error)}") from error
    try:
        problem = shape_problem(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # likewise mappings and lists of its own, when they are looked at
        keep_error(error)
        raise AssignorError(f"{name}.assign returned what cannot be read: {error_line(error)}") from error
    if problem:
        raise AssignorError(f"{name}.assign returned {problem}")
    return answer


def shape_problem(answer: object) -> str | None:
    """Tell what keeps this from being member -> topic -> partitions; whether it is a good assignment is another
    question.
    """
    if not isinstance(answer, Mapping):
        return f"a {type(answer).__name__}, not a mapping of member to topics"
    size = 0
    for member, share in answer.items():
        if not isinstance(member, str):
            return f"{member!r} as a member id"
        if not isinstance(share, Mapping):
            return f"a {type(share).__name__} for member {member!r}, not a mapping of topic to partitions"
        for topic, partitions in share.items():
            if not isinstance(topic, str):
                return f"{topic!r} as a topic of member {member!r}"
            if isinstance(partitions, str | bytes) or not isinstance(partitions, Sequence):
                return f"a {type(partitions).__name__} for {topic!r} of member {member!r}, not a list of partitions"
            size += len(partitions)
            if size > MOST_PARTITIONS:
                return f"more than {MOST_PARTITIONS:,} partitions"
            if not all(type(partition) is int for partition in partitions):
                return f"a partition of {topic!r} that is not an int, for member {member!r}"
            if not all(-LIMIT <= partition < LIMIT for partition in partitions):
                return f"a partition of {topic!r} beyond 32 bits, for member {member!r}"
    return None

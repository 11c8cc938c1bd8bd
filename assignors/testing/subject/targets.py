"""Find the assignor that `check` is pointed at: a text or a class becomes a Target that makes instances.

package.module:Class            a class as in 'Write your own assignor'; it needs to import nothing
classic/sticky                  a built-in strategy, by any name that `assign` accepts
kafka-python:package.module:Class, aiokafka:package.module:Class
                                an assignor written for that client
java:/path/a.jar:/path/b.jar:com.acme.MyAssignor
                                a ConsumerPartitionAssignor; the class path needs kafka-clients and slf4j-api too
command:./my-assignor --flag    any language: {"group": ...} on standard input, {"assignment": ...} on standard output

Start at   load_target, target_of
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rebalance_lab.assignors.assignor_error import error_line
from rebalance_lab.assignors.interface import RebalanceProtocol
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.strategies import BUILT_IN, SHORT, load_custom, made
from rebalance_lab.assignors.testing.properties.kafka_breaches import KNOWN
from rebalance_lab.assignors.testing.properties.promises import PROMISES, unknown_promises
from rebalance_lab.assignors.testing.sampling.group_shapes import Waiver, waivers_from
from rebalance_lab.assignors.testing.subject.answers import shown
from rebalance_lab.assignors.testing.subject.subject import CALL_LIMIT_S, Subject, TooLong, ticking

LOAD_LIMIT_S = 30.0
"""A JVM starts in a few seconds, and so does a module that imports half the world."""


@dataclass(frozen=True, slots=True)
class Target:
    text: str
    """As a person wrote it, or would have to."""
    make: Callable[[], Any]
    name: str
    promises: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    cooperative: bool = False
    threshold: float = 0.1
    moves_within: int = 0
    added: tuple[str, ...] = ()
    """Promises made by the caller, in the class's name."""
    loads_elsewhere: bool = True
    """Another process can load it by its text; a class made inside a function cannot be."""
    limit_memory: bool = True
    call_limit_s: float = field(default=CALL_LIMIT_S)

    @property
    def where(self) -> str:
        """Return `package.module:Class` where a class is all there is to it; nothing for an adapter or an instance."""
        if not isinstance(self.make, type):
            return ""
        return self.text if ":" in self.text else f"{self.make.__module__}:{self.make.__qualname__}"

    def subject(self, call_limit_s: float | None = None) -> Subject:
        return Subject(
            self.make,
            name=self.name,
            promises=self.promises,
            waivers=self.waivers,
            cooperative=self.cooperative,
            threshold=self.threshold,
            moves_within=self.moves_within,
            server_side=self.text.startswith("consumer/"),
            call_limit_s=call_limit_s or self.call_limit_s,
        )


def load_target(text: str, promises: Collection[str] = ()) -> Target:
    """Load a target, or raise ContractError with one line when there is nothing to test."""
    with loading():
        target = loaded(text)
    return with_promises(target, promises) if promises else target


@contextmanager
def loading() -> Iterator[None]:
    """Limit the time of an import: a module, or a constructor, may wait for something."""

    def stop(*_: object) -> None:
        raise TooLong(f"not done within {LOAD_LIMIT_S:g} s")

    try:
        with ticking(stop, LOAD_LIMIT_S):
            yield
    except TooLong as error:
        raise ContractError("assignor", f"it cannot be loaded: {error}") from None


def loaded(text: str) -> Target:
    from rebalance_lab.assignors.testing.subject import adapters

    kind, _, rest = text.partition(":")
    if kind in adapters.KINDS and rest:
        made = adapters.KINDS[kind](rest)
        return described(made, type(made) if kind == "class" else None, text)
    if SHORT.get(text, text) in BUILT_IN:
        name = SHORT.get(text, text)
        module, class_name = BUILT_IN[name]
        made_class = getattr(importlib.import_module(module), class_name)
        target = described(made_class(), made_class, name)
        return replace(target, waivers=waivers_from(KNOWN.get(name, {})))
    return load_class(text)


def load_class(text: str) -> Target:
    name = text.removeprefix("classic/").removeprefix("consumer/")
    if ":" not in name:
        kinds = "package.module:Class, a built-in strategy, kafka-python:, aiokafka:, java: or command:"
        raise ContractError("assignor", f"{text!r} names nothing to test; expected {kinds}")
    instance = load_custom(name, "assignor")
    found: Any = sys.modules[name.partition(":")[0]]
    for part in name.partition(":")[2].split("."):
        found = getattr(found, part)
    return described(instance, found if isinstance(found, type) else None, name)


def target_of(assignor: object, promises: Collection[str] = ()) -> Target:
    """Make a Target from a class, an instance, or a text, which a test may have at hand."""
    if isinstance(assignor, str):
        return load_target(assignor, promises)
    made_class = assignor if isinstance(assignor, type) else None
    with loading():
        instance = made(assignor, shown(assignor), "assignor")
        named = type(instance)
        text = f"{named.__module__}:{named.__qualname__}"
        target = described(instance, made_class, text)
    elsewhere = made_class is not None and "<locals>" not in text and named.__module__ != "__main__"
    target = replace(target, loads_elsewhere=elsewhere)
    return with_promises(target, promises) if promises else target


def described(instance: Any, made_class: type | None, text: str) -> Target:
    """Read the optional attributes once. An instance stands for itself: a fresh one cannot be had."""
    read = Attributes(instance, text)
    promises, protocols = read.names("promises"), read.names("supported_protocols")
    check_promises(promises)
    fresh = read.of("fresh", None)
    make: Callable[[], Any] = fresh if callable(fresh) else made_class or (lambda: instance)
    return Target(
        text=text,
        make=make,
        name=read.name(),
        promises=promises,
        waivers=read.waivers(),
        cooperative="cooperative" in promises or RebalanceProtocol.COOPERATIVE in protocols,
        threshold=read.number("threshold", 0.1),
        moves_within=int(read.number("moves_within", 0)),
        limit_memory=read.of("limit_memory", True) is True,
        call_limit_s=read.number("call_limit_s", CALL_LIMIT_S, least=0.01),
    )


class Attributes:
    """Read what a custom class says of itself, or put in one line what is wrong with it."""

    def __init__(self, instance: Any, text: str) -> None:
        self.instance, self.text = instance, text

    def of(self, attribute: str, default: object) -> Any:
        try:
            return getattr(self.instance, attribute, default)
        except Exception as error:
            raise self.wrong(attribute, f"reading it raised {error_line(error)}") from error

    def name(self) -> str:
        name = self.of("name", type(self.instance).__name__)
        if not isinstance(name, str) or not name:
            raise self.wrong("name", f"expected a text, got {shown(name)}")
        return name

    def names(self, attribute: str) -> tuple[str, ...]:
        listed = self.of(attribute, ())
        if listed is None or isinstance(listed, str):
            return (listed,) if listed else ()
        if not isinstance(listed, Collection) or not all(isinstance(name, str) for name in listed):
            raise self.wrong(attribute, f"expected a tuple of names, got {shown(listed)}")
        return tuple(listed)

    def number(self, attribute: str, default: float, least: float = 0.0) -> float:
        number = self.of(attribute, default)
        if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number < 1e9:
            raise self.wrong(attribute, f"expected a number of at least {least:g}, got {shown(number)}")
        return float(number)

    def waivers(self) -> tuple[Waiver, ...]:
        waives = self.of("waives", {})
        if isinstance(waives, str) or not isinstance(waives, Collection) or not all(isinstance(w, str) for w in waives):
            raise self.wrong("waives", f"expected property names, each with a reason, got {shown(waives)}")
        try:
            waivers = waivers_from(waives)
        except ValueError as error:
            raise ContractError("assignor", str(error)) from None
        if waivers:
            from rebalance_lab.assignors.testing.properties.contract import (
                BY_NAME,
            )  # most classes waive nothing, and start faster without

            unknown = [waiver.property for waiver in waivers if waiver.property not in {*BY_NAME, "*"}]
            if unknown:
                raise self.wrong("waives", f"{unknown[0]!r} is no property; known: {', '.join(BY_NAME)}")
        return waivers

    def wrong(self, attribute: str, problem: str) -> ContractError:
        return ContractError("assignor", f"{self.text}.{attribute}: {problem}")


def with_promises(target: Target, promises: Collection[str]) -> Target:
    check_promises(promises)
    together = tuple(dict.fromkeys((*target.promises, *promises)))
    added = tuple(promise for promise in together if promise not in target.promises)
    return replace(target, promises=together, added=added, cooperative=target.cooperative or "cooperative" in together)


def check_promises(promises: Collection[str]) -> None:
    unknown = unknown_promises(promises)
    if unknown:
        known = ", ".join(PROMISES)
        raise ContractError("promises", f"{unknown[0]!r} is no promise that can be checked; known: {known}")

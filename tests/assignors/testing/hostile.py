"""Classes as somebody would write them who wants to see the kit fall over: nonsense, exceptions, odd attributes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from tests.assignors.testing.good import Shares, blocks

FINDINGS: dict[type, str] = {}
"""What is found about each, as a part of the message; all are about `valid`."""
REFUSED: dict[type, str] = {}
"""What cannot be tested, and a part of the line that says why."""


def found(says: str) -> Any:
    return lambda cls: FINDINGS.setdefault(cls, says) and cls


def refused(says: str) -> Any:
    return lambda cls: REFUSED.setdefault(cls, says) and cls


def numbered(group: Any, number: Any) -> Any:
    """Good blocks, each partition as `number` writes it."""
    return {m: {t: [number(p) for p in ps] for t, ps in share.items()} for m, share in blocks(group).items()}


def shared(group: Any, share: Any) -> Any:
    """The partitions of each topic as `share` writes them."""
    return {m: {t: share(ps) for t, ps in shares.items()} for m, shares in blocks(group).items()}


# Answers of the wrong kind


@found("returned a list, not a mapping")
class ReturnsAList:
    def assign(self, group: Any) -> Any:
        return list(blocks(group).items())


@found("returned a generator, not a mapping")
class IsAGenerator:
    def assign(self, group: Any) -> Any:
        yield from blocks(group).items()


@found("returned a coroutine, not a mapping")
class IsAsync:
    async def assign(self, group: Any) -> Any:
        return blocks(group)


@found("gives something to 0, who is not a member")
class NumbersItsMembers:
    def assign(self, group: Any) -> Any:
        return dict(enumerate(blocks(group).values()))


@found("gives something to b'")
class SpeaksBytes:
    def assign(self, group: Any) -> Any:
        return {member_id.encode(): share for member_id, share in blocks(group).items()}


@found("a list, not a mapping of topic to partitions")
class ListsTopics:
    def assign(self, group: Any) -> Any:
        return {member_id: [*share.items()] for member_id, share in blocks(group).items()}


@found("0: a int, not a topic")
class NumbersItsTopics:
    def assign(self, group: Any) -> Any:
        return {m: dict(enumerate(share.values())) for m, share in blocks(group).items()}


@found("None: a NoneType, not a topic")
class HasATopicOfNone:
    """Nothing is given with it, and yet it is no topic."""

    def assign(self, group: Any) -> Any:
        return {m: {**share, None: []} for m, share in blocks(group).items()}


@found("a str for ")
class WritesPartitionsAsOneText:
    def assign(self, group: Any) -> Any:
        return shared(group, lambda ps: "".join(map(str, ps)))


@found("a bytes for ")
class WritesPartitionsAsBytes:
    def assign(self, group: Any) -> Any:
        return shared(group, bytes)


@found("a bytearray for ")
class WritesPartitionsAsABytearray:
    def assign(self, group: Any) -> Any:
        return shared(group, bytearray)


@found("a dict for ")
class NestsOnceMore:
    def assign(self, group: Any) -> Any:
        return shared(group, lambda ps: {p: [p] for p in ps})


@found("a set for ")
class ReturnsSets:
    def assign(self, group: Any) -> Any:
        return shared(group, set)


@found("a int for ")
class CountsPartitions:
    def assign(self, group: Any) -> Any:
        return shared(group, len)


@found(": a float")
class ReturnsFloats:
    def assign(self, group: Any) -> Any:
        return numbered(group, float)


@found("partition nan of ")
class ReturnsNaN:
    def assign(self, group: Any) -> Any:
        return numbered(group, lambda _: math.nan)


@found(": a bool")
class ReturnsBooleans:
    def assign(self, group: Any) -> Any:
        return numbered(group, lambda p: p > 0)


@found(": a NoneType")
class ReturnsNones:
    def assign(self, group: Any) -> Any:
        return numbered(group, lambda _: None)


@found("a int that cannot be printed of a topic")
class ReturnsHugeNumbers:
    """Of more digits than Python prints."""

    def assign(self, group: Any) -> Any:
        return numbered(group, lambda p: 10**5000 + p)


@found("returned a list")
class ReturnsWhatHoldsItself:
    def assign(self, group: Any) -> Any:
        endless: list[Any] = [blocks(group)]
        endless.append(endless)
        return endless


@found("a dict for ")
class NestsWithoutEnd:
    def assign(self, group: Any) -> Any:
        endless: dict[str, Any] = {}
        endless["t"] = endless
        return shared(group, lambda _: endless)


@found("gives something to '\\ud800', who is not a member")
class NamesHalfACharacter:
    def assign(self, group: Any) -> Any:
        return {"\ud800": {"\udfff": [0]}}


@found("that cannot be printed of ")
class ReturnsWhatCannotBePrinted:
    class Number:
        def __repr__(self) -> str:
            raise RuntimeError("not today")

    def assign(self, group: Any) -> Any:
        return numbered(group, lambda _: self.Number())


@found("its answer cannot be read: OSError: not today")
class ReturnsWhatCannotBeRead:
    class Answer(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise OSError("not today")

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    def assign(self, group: Any) -> Any:
        return self.Answer()


@found("its answer cannot be read: SystemExit: 0")
class EndsTheProgramWhenRead:
    class Partitions(list[int]):
        def __iter__(self) -> Iterator[int]:
            raise SystemExit(0)

    def assign(self, group: Any) -> Any:
        return shared(group, self.Partitions)


# Exceptions


@found("raised SystemExit: 0")
class CallsExit:
    def assign(self, group: Any) -> Shares:
        raise SystemExit(0)


@found("raised KeyboardInterrupt")
class PressesAKey:
    def assign(self, group: Any) -> Shares:
        raise KeyboardInterrupt


@found("raised RecursionError: maximum recursion depth exceeded")
class CallsItself:
    def assign(self, group: Any) -> Shares:
        return self.assign(group)


@found("raised MemoryError")
class RunsOutOfMemory:
    def assign(self, group: Any) -> Shares:
        raise MemoryError


@found("raised Surprise")
class RaisesWhatIsNoException:
    class Surprise(BaseException):
        def __str__(self) -> str:
            raise RuntimeError("not today")

    def assign(self, group: Any) -> Shares:
        raise self.Surprise


@found("raised StopIteration")
class StopsIteration:
    def assign(self, group: Any) -> Shares:
        return next(iter(()))


@found("cannot be made: SystemExit: 3")
class CanBeMadeOnce:
    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if self.made > 1:
            raise SystemExit(3)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


# Hooks, which only a consumer calls


class Hooked:
    def assign(self, group: Any) -> Shares:
        return blocks(group)


class HookExits(Hooked):
    def on_assignment(self, *_: Any) -> None:
        raise SystemExit(4)


class HookPressesAKey(Hooked):
    def subscription_user_data(self, _: Any) -> bytes:
        raise KeyboardInterrupt


class HookCannotBeHad(Hooked):
    @property
    def assignment_user_data(self) -> Any:
        raise OSError("not today")


class HookIsNoMethod(Hooked):
    on_assignment = 3


HOOKS: dict[type, str] = {
    HookExits: "on_assignment raised SystemExit: 4",
    HookPressesAKey: "subscription_user_data raised KeyboardInterrupt",
    HookCannotBeHad: "a hook cannot be had: OSError: not today",
    HookIsNoMethod: "on_assignment: 'int' object is not callable",
}


class SleepsWhenMadeAgain:
    """Loading it makes the first instance."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        if self.made > 1:
            time.sleep(1_000_000)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


# What it says of itself


@refused("cannot be made without arguments: SystemExit: 3")
class ExitsWhenMade:
    def __init__(self) -> None:
        raise SystemExit(3)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused("has no method assign(group)")
class AssignIsNoMethod:
    assign = 3


@refused("ZeroDivisionError")
class AssignCannotBeHad:
    @property
    def assign(self) -> Any:
        return 1 / 0


@refused(".name: expected a text, got 3")
class NameIsANumber:
    name = 3

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".name: expected a text, got <bound method")
class NameIsAMethod:
    def name(self) -> str:
        return "mine"

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".name: reading it raised OSError: not today")
class NameCannotBeHad:
    @property
    def name(self) -> str:
        raise OSError("not today")

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".promises: expected a tuple of names, got 3")
class PromisesANumber:
    promises = 3

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".promises: expected a tuple of names, got (['balanced'],)")
class PromisesAList:
    promises = (["balanced"],)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused("'stiky' is no promise that can be checked")
class PromisesInOneWord:
    promises = "stiky"

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".waives: expected property names, each with a reason, got 3")
class WaivesANumber:
    waives = 3

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".waives: 'stiky' is no property")
class WaivesWhatThereIsNot:
    waives = ("stiky with racks",)

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".threshold: expected a number of at least 0, got 'tenth'")
class ThresholdIsAText:
    threshold = "tenth"

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".call_limit_s: expected a number of at least 0.01, got nan")
class LimitIsNoNumber:
    call_limit_s = math.nan

    def assign(self, group: Any) -> Shares:
        return blocks(group)


@refused(".supported_protocols: expected a tuple of names, got 3")
class SupportsANumber:
    supported_protocols = 3

    def assign(self, group: Any) -> Shares:
        return blocks(group)


# Odd, and good


class AssignIsStatic:
    @staticmethod
    def assign(group: Any) -> Shares:
        return blocks(group)


class AssignIsAProperty:
    @property
    def assign(self) -> Any:
        return blocks


class AnswersInTuplesAndRanges:
    def assign(self, group: Any) -> Any:
        return shared(group, lambda ps: range(ps[0], ps[-1] + 1) if ps else ())


class RemembersThings(Hooked):
    """Our own sticky assignors have a method of this name, which our consumers call."""

    def remember(self, what: str, where: str) -> None:
        raise AssertionError("called by nobody")


GOOD = (AssignIsStatic, AssignIsAProperty, AnswersInTuplesAndRanges, RemembersThings)

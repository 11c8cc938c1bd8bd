"""Answer for groups in a process of its own: subprocess_oracle.py starts main() there.

Given      on the command line a class as `package.module:Class`, where a class is all there is to it, or nothing; then
           a target and its promises. One line per question (line_format.to_line): {"packed": [..]} for many of the
           search's groups, in this order, each as line_format.pack makes it; or {"group": {..}}, the group as JSON
Returns    one line per question: {"digests": [..], "assignor_s": ..}, or {"digest": .., "answer": ..}; where there is
           no answer the digest is None. What the class costs here too is what it takes to import, to make and to ask it
Imports    little: starting up is most of what this process costs. The kit itself is imported for a question about one
           group, which most checks end without, and for targets that are more than a class
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance_lab.assignors.testing.subject.subject import Subject


class Later(ModuleType):
    """Stand in for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        del sys.modules[self.__name__]
        vars(self).update(vars(import_module(self.__name__)))
        return vars(self)[name]


# dataclasses imports it for the classes that have no docstring: a fifth of what this process would cost
sys.modules.setdefault("inspect", Later("inspect"))

from rebalance_lab.assignors.testing.subprocess_oracle.line_format import (  # noqa: E402
    digest,
    from_line,
    materialised,
    owners_of,
    to_line,
    unpack,
)


def digests_of(make: Callable[[], Any], packed: list[bytes], spent_s: float = 0.0) -> dict[str, Any]:
    digests: list[int | None] = []
    for each in packed:
        group = unpack(each)
        try:
            started = time.perf_counter()
            answer = materialised(make().assign(group))
            spent_s += time.perf_counter() - started
            digests.append(digest(owners_of(group, answer)))
        except BaseException:  # noqa: BLE001 - whatever it is, it is no answer
            digests.append(None)
    return {"digests": digests, "assignor_s": spent_s}


def answer_of(subject: Subject, group: Any) -> dict[str, Any]:
    from rebalance_lab.assignors.json_contract import group_from_json
    from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, plain

    try:
        placed = subject.ask(group_from_json(group, "group"))
    except (Broken, NotApplicable) as error:
        return {"digest": None, "answer": str(error)}
    return {"digest": digest(placed.owner), "answer": plain(placed.answer)}


def found(where: str) -> Any:
    module, _, path = where.partition(":")
    thing: Any = import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    return thing


def loaded() -> Subject:
    from rebalance_lab.assignors.testing.subject.targets import load_target

    return load_target(sys.argv[2], sys.argv[3:]).subject()


def main() -> None:
    gc.freeze()  # nothing that has been imported by now becomes garbage
    gc.enable()
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the class prints must not mix with the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person stops the parent, which kills this process
    subject: Subject | None = None
    for line in sys.stdin.buffer:
        question = from_line(line)
        if "packed" in question and sys.argv[1]:
            started = time.perf_counter()
            make = found(sys.argv[1])
            told = digests_of(make, question["packed"], time.perf_counter() - started)
        elif "packed" in question:
            told = digests_of(loaded().make, question["packed"])
        else:
            subject = subject or loaded()
            with subject.watched():
                told = answer_of(subject, question["group"])
        out.write(to_line(told))
        out.flush()

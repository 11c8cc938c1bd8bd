"""Where a class hides what it remembers: comparing a new process with one that has been asked about other groups.

Start at   compare_elsewhere (another process, another hash seed, another order), differs_after (after one other group)
"""

from __future__ import annotations

import time
from typing import Any

from assignors.json_contract import group_to_json
from assignors.model import Group
from assignors.testing.answers import Broken, NotApplicable, plain
from assignors.testing.cases import Case, draw_case
from assignors.testing.elsewhere import Elsewhere
from assignors.testing.report import Finding
from assignors.testing.sandbox import Ended, Send, in_child
from assignors.testing.shrink import shrink
from assignors.testing.targets import Target

HASH_SEEDS = (1, 2, 3)
START_S = 20.0
HISTORY_S = 10.0
Told = tuple[list[int] | None, Any]


def compare_elsewhere(target: Target, seed: int, digests: list[str], notes: list[str]) -> Finding | None:
    """The search's first answers against those of another process, asked in reverse."""
    if not target.loads_elsewhere or not digests:
        notes.append("not compared with another process: the class cannot be loaded by name there")
        return None
    known = {int(number): value for number, _, value in (text.partition(":") for text in digests)}
    numbers = sorted(known, reverse=True)
    with Elsewhere(target, HASH_SEEDS[0]) as other:
        answers = other.ask([{"seed": seed, "number": n} for n in numbers], START_S + target.call_limit_s)
    if answers is None:
        notes.append("not compared with another process: it could not be started, or did not answer")
        return None
    different = [n for n, told in zip(numbers, answers, strict=True) if told["digest"] != known[n]]
    for number in reversed(different[-3:]):
        finding = explain_difference(target, seed, number)
        if finding is not None:
            return finding
    if different:
        text = "answers differently in another process that was asked about the same groups in reverse"
        group = draw_case(seed, different[-1]).group
        return Finding("deterministic", text, Case(group), group_to_json(group))
    return None


def explain_difference(target: Target, seed: int, number: int) -> Finding | None:
    """Either the process matters (hash order, identity, chance), or what was asked before does."""
    case = Case(draw_case(seed, number).group)
    others = [Elsewhere(target, hash_seed) for hash_seed in HASH_SEEDS]
    try:
        if elsewhere_differs(others, case) is not None:
            smaller = shrink(case, lambda c: elsewhere_differs(others, c) is not None, budget_s=10.0, most=600)
            return elsewhere_differs(others, smaller)
    finally:
        for other in others:
            other.__exit__(None, None, None)
    earlier = [draw_case(seed, n).group for n in range(max(0, number - 40), min(number + 40, 250)) if n != number]
    deadline = time.monotonic() + HISTORY_S
    for before in earlier:
        if time.monotonic() > deadline:
            break
        if differs_after(target, Case(case.group, before=before)) is not None:
            start = Case(case.group, before=before)
            smaller = shrink(
                start, lambda c: c.before is not None and differs_after(target, c) is not None, budget_s=10.0, most=400
            )
            return differs_after(target, smaller)
    return None


def shown_elsewhere(target: Target, case: Case) -> Finding | None:
    others = [Elsewhere(target, hash_seed) for hash_seed in HASH_SEEDS]
    try:
        return elsewhere_differs(others, case)
    finally:
        for other in others:
            other.__exit__(None, None, None)


def elsewhere_differs(others: list[Elsewhere], case: Case) -> Finding | None:
    told = [other.ask([{"group": group_to_json(case.group)}], START_S) for other in others]
    answers = [one[0] for one in told if one]
    for one in answers[1:]:
        if one["digest"] != answers[0]["digest"]:
            text = f"answers differently in another process: {short(answers[0]['answer'])}, then {short(one['answer'])}"
            return Finding("deterministic", text, case, group_to_json(case.group), one["answer"])
    return None


def differs_after(target: Target, case: Case) -> Finding | None:
    """Two new processes: one asked about this group alone, one about another group first."""
    assert case.before is not None
    alone = asked_in_turn(target, [case.group])
    after = asked_in_turn(target, [case.before, case.group])
    if alone is None or after is None or alone[0] == after[0]:
        return None
    text = f"answers differently once it has been asked about another group: {short(alone[1])}, then {short(after[1])}"
    return Finding("deterministic", text, case, group_to_json(case.group), after[1])


def asked_in_turn(target: Target, groups: list[Group]) -> Told | None:
    def work(send: Send) -> Told:
        subject = target.subject()
        told: Told = (None, None)
        with subject.watched():
            for group in groups:
                try:
                    placed = subject.ask(group)
                    told = placed.owner, plain(placed.answer)
                except NotApplicable:
                    told = None, None
                except Broken as broken:
                    told = None, broken.message
        return told

    ended = in_child(work, quiet_s=target.call_limit_s + START_S, limit_memory=target.limit_memory)
    return None if isinstance(ended, Ended) else ended.value


def short(answer: object) -> str:
    text = str(answer)
    return text if len(text) <= 120 else text[:117] + "..."

"""Find what an assignor's answer depends on besides the group: other groups, the process, the clock, addresses.

Start at   compare_elsewhere (another process, another hash seed, another order), differs_after (after one other group),
           differs_by_itself (the same group with names made anew, and again a little later)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rebalance_lab.assignors.json_contract import group_to_json
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing.sampling.cases import Case, draw_case
from rebalance_lab.assignors.testing.search.report_card import Finding
from rebalance_lab.assignors.testing.search.sandbox import Ended, Send, in_child
from rebalance_lab.assignors.testing.search.search import Tally
from rebalance_lab.assignors.testing.search.shrink import shrink
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, Placed, plain
from rebalance_lab.assignors.testing.subject.targets import Target
from rebalance_lab.assignors.testing.subprocess_oracle.subprocess_oracle import SubprocessOracle

HASH_SEEDS = (1, 2, 3)
START_S = 20.0
HISTORY_S = 10.0
HISTORY = 250
"""Groups before the one that an answer was different for, among which the cause is looked for."""
LATER_S = (0.3, 0.8, 1.0)
"""A class that goes by the clock mostly goes by seconds, or by a few ticks in one."""
ANEW = 10
"""How often names are made anew: where a string lies in memory is a matter of luck."""
Told = tuple[list[int] | None, Any]


def compare_elsewhere(target: Target, seed: int, tally: Tally, notes: list[str]) -> Finding | None:
    """Compare the search's first answers with those of another process, asked in reverse."""
    known = tally.remembered
    if not target.loads_elsewhere or not known:
        notes.append("not compared with another process: the class cannot be loaded by name there")
        return None
    numbers = sorted(known, reverse=True)
    with SubprocessOracle(target, HASH_SEEDS[0]) as other:
        packed = [known[number][0] for number in numbers]
        told = other.ask({"packed": packed}, START_S + target.call_limit_s)
    if told is None:
        notes.append("not compared with another process: it could not be started, or did not answer")
        return None
    tally.calls += len(numbers)
    tally.assignor_s += told["assignor_s"]
    different = [n for n, digest in zip(numbers, told["digests"], strict=True) if digest != known[n][1]]
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
    """Find whether the process matters (hash order, identity, chance), or what was asked before does."""
    case = Case(draw_case(seed, number).group)
    others = [SubprocessOracle(target, hash_seed) for hash_seed in HASH_SEEDS]
    try:
        if elsewhere_differs(others, case) is not None:
            smaller = shrink(case, lambda c: elsewhere_differs(others, c) is not None, budget_s=10.0, most=600)
            return elsewhere_differs(others, smaller)
    finally:
        for other in others:
            other.__exit__(None, None, None)
    before = groups_before(seed, HISTORY, but=number)
    return differs_by_itself(target, case) or after_another(target, case.group, before)


def groups_before(seed: int, number: int, but: int | None = None) -> list[Group]:
    """Return the search's last groups before this one."""
    return [draw_case(seed, n).group for n in range(max(0, number - HISTORY), number) if n != but]


def after_another(target: Target, group: Group, others: list[Group]) -> Finding | None:
    """Find which of these groups, asked about first, changes the answer; made small."""
    before = disturber(target, group, others) or disturber(target, group, others[::-1])
    if before is None:
        return None
    smaller = shrink(
        Case(group, before=before),
        lambda case: case.before is not None and differs_after(target, case) is not None,
        budget_s=HISTORY_S,
        most=600,
    )
    return differs_after(target, smaller)


def disturber(target: Target, group: Group, history: list[Group]) -> Group | None:
    """Find by halves the last group before this one that changes the answer by itself."""
    alone = asked_in_turn(target, [group])

    def matters(part: list[Group]) -> bool:
        return difference(alone, asked_in_turn(target, [*part, group])) is not None

    if not history or not matters(history):
        return None
    while len(history) > 1:
        first, second = history[: len(history) // 2], history[len(history) // 2 :]
        if matters(second):
            history = second
        elif matters(first):
            history = first
        else:
            return None  # it takes more than one
    return history[0]


def shown_elsewhere(target: Target, case: Case) -> Finding | None:
    others = [SubprocessOracle(target, hash_seed) for hash_seed in HASH_SEEDS]
    try:
        return elsewhere_differs(others, case)
    finally:
        for other in others:
            other.__exit__(None, None, None)


def elsewhere_differs(others: list[SubprocessOracle], case: Case) -> Finding | None:
    told = [other.ask({"group": group_to_json(case.group)}, START_S) for other in others]
    answers = [one for one in told if one]
    for one in answers[1:]:
        if one["digest"] != answers[0]["digest"]:
            text = f"answers differently in another process: {short(answers[0]['answer'])}, then {short(one['answer'])}"
            return Finding("deterministic", text, case, group_to_json(case.group), one["answer"])
    return None


def differs_after(target: Target, case: Case) -> Finding | None:
    """Ask two new processes: one about this group alone, one about another group first."""
    assert case.before is not None
    alone, after = asked_in_turn(target, [case.group]), asked_in_turn(target, [case.before, case.group])
    found = difference(alone, after)
    if found is None:
        return None
    text = f"answers differently once it has been asked about another group: {short(found[0])}, then {short(found[1])}"
    return Finding("deterministic", text, case, group_to_json(case.group), found[1])


def difference(one: list[Told] | None, other: list[Told] | None) -> tuple[Any, Any] | None:
    """Compare what two processes told last: by a new instance, and by the one that was asked about all before."""
    for (owner, answer), (other_owner, other_answer) in zip(one or (), other or (), strict=False):
        if owner != other_owner:
            return answer, other_answer
    return None


def asked_in_turn(target: Target, groups: list[Group]) -> list[Told] | None:
    """Ask about these groups in turn, and return what is said of the last of them."""

    def work(send: Send) -> list[Told]:
        subject = target.subject()
        told: list[Told] = []
        with subject.watched():
            for group in groups:
                told = [answer_to(ask, group) for ask in (subject.ask, subject.ask_again)]
        return told

    ended = in_child(work, quiet_s=target.call_limit_s + START_S, limit_memory=target.limit_memory)
    return None if isinstance(ended, Ended) else ended.value


def answer_to(ask: Callable[[Group], Placed], group: Group) -> Told:
    try:
        placed = ask(group)
    except NotApplicable:
        return None, None
    except Broken as broken:
        return None, broken.message
    return placed.owner, plain(placed.answer)


def differs_by_itself(target: Target, case: Case) -> Finding | None:
    """Ask one new process: about the same names as other strings, which lie elsewhere in memory, and again a little
    later.
    """

    def work(send: Send) -> list[tuple[str, Told]]:
        subject = target.subject()
        with subject.watched():
            told = [("", answer_to(subject.ask, case.group))]
            copies = [made_anew(case.group, turn) for turn in range(ANEW)]  # kept: none takes another one's place
            told += [("when its names are made anew", answer_to(subject.ask, copy)) for copy in copies]
            for wait_s in LATER_S:
                time.sleep(wait_s)
                told.append(("a little later", answer_to(subject.ask, case.group)))
        return told

    ended = in_child(work, quiet_s=target.call_limit_s + START_S, limit_memory=target.limit_memory)
    if isinstance(ended, Ended):
        return None
    (_, (owner, first)), *others = ended.value
    for when, (other_owner, answer) in others:
        if owner is not None and owner != other_owner:
            text = f"answers differently {when}: {short(first)}, then {short(answer)}"
            return Finding("deterministic", text, case, group_to_json(case.group), answer)
    return None


def made_anew(group: Group, turn: int) -> Group:
    """Equal, and not one name is the same object; every other turn the last one is made first."""
    names = {name: "".join([*name]) for name in [*group.topics, *group.members][:: -1 if turn % 2 else 1]}
    return Group(
        {names[name]: topic for name, topic in group.topics.items()},
        {names[member_id]: member for member_id, member in group.members.items()},
    )


def short(answer: object) -> str:
    text = str(answer)
    return text if len(text) <= 120 else text[:117] + "..."

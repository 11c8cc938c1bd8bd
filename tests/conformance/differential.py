"""One group to both, ours and Java's; where they differ, the smallest group that still shows it.

Given      a seed and a strategy
Returns    how many groups were compared, and the mismatches
Server     a member's claims are its target assignment there, which a broker keeps free of nonsense
Start at   compare_random
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.json_contract import group_to_json
from rebalance_lab.assignors.model import EMPTY, Group, Member
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy
from tests.conformance.java_oracle import Answer, java_answers
from tests.conformance.java_server_oracle import as_target_assignments, java_server_answers
from tests.conformance.random_groups import large_group, random_chain, random_group

Case = tuple[str, Group, bool]
"""Strategy, group, and whether the assignor is new or has seen the groups before it."""

ORACLES: Mapping[str, Callable[[Iterable[Case]], list[Answer]]] = {
    "classic/range": java_answers,
    "classic/roundrobin": java_answers,
    "classic/sticky": java_answers,
    "classic/cooperative-sticky": java_answers,
    "consumer/uniform": java_server_answers,
    "consumer/range": java_server_answers,
}

CHAINED = 0.3
"""How much of the random groups are steps of a chain."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    strategy: str
    groups: Sequence[Group]
    """More than one where the assignor's memory of earlier groups plays a part; the last one differs."""
    ours: Answer
    java: Answer

    def __str__(self) -> str:
        *earlier, last = self.groups
        request = {"strategy": self.strategy, "group": group_to_json(last)}
        lines = [f"{self.strategy} differs from Java. Replay with: rebalance-lab assign --strategy {self.strategy} -"]
        lines += [json.dumps(request, ensure_ascii=True), f"ours: {self.ours}", f"java: {self.java}"]
        hidden = {i: m.claim_generation for i, m in last.members.items() if m.claim_generation is not None}
        if hidden:
            lines.append(f"not in JSON, generations in user data: {hidden}")
        lines += [f"the same assignor before: {json.dumps(group_to_json(group))}" for group in earlier]
        return "\n".join(lines)


def our_answer(assignor: Any, group: Group) -> tuple[Answer, Any]:
    """As Java's answers look, and as the assignor gave it (None where it raised)."""
    try:
        answer = assignor.assign(group)
    except AssignorError as error:
        return error.java_exception or str(error), None
    flat = {
        member_id: sorted((name, p) for name, partitions in share.items() for p in partitions)
        for member_id, share in answer.items()
    }
    return flat, answer


def compare_random(strategy: str, seed: int, count: int) -> tuple[int, list[Mismatch]]:
    return compare(strategy, random_sequences(strategy, Random(f"{strategy} {seed}"), count))


def compare_large(strategy: str, seed: int, count: int) -> tuple[int, list[Mismatch]]:
    rng = Random(f"large {strategy} {seed}")
    new = parse_strategy(strategy)
    sequences = []
    for _ in range(count // 3):
        # Two incremental steps after the first one; each is compared by itself.
        sequence = [large_group(rng)]
        for generation in (1, 2):
            _, given = our_answer(load_assignor(new), sequence[-1])
            group = sequence[-1].after(given, generation)
            members = dict(group.members)
            del members[rng.choice(list(members))]
            members[f"joiner-{generation}"] = Member(rng.choice(list(members.values())).topics)
            sequence.append(group.with_members(members))
        sequences += [[group] for group in sequence]
    return compare(strategy, sequences)


def drawn_for(strategy: str, rng: Random, group: Group) -> Group:
    return as_target_assignments(rng, group) if strategy.startswith("consumer/") else group


def random_sequences(strategy: str, rng: Random, count: int) -> Iterator[list[Group]]:
    """Groups that one assignor object sees after another; most often just one."""
    new = parse_strategy(strategy)
    while count > 0:
        if rng.random() > CHAINED / 4:
            yield [drawn_for(strategy, rng, random_group(rng))]
            count -= 1
            continue
        assignor: Any = load_assignor(new)
        remembers = hasattr(assignor, "remember_generations") and rng.random() < 0.5

        def step(group: Group, assignor: Any = assignor, remembers: bool = remembers) -> Any:
            _, answer = our_answer(assignor, group)
            if remembers:
                assignor.remember_generations(group)
            return answer

        groups = random_chain(rng, drawn_for(strategy, rng, random_group(rng)), step)
        count -= len(groups)
        if remembers:
            yield groups
        else:
            yield from ([group] for group in groups)


def compare(strategy: str, sequences: Iterable[list[Group]]) -> tuple[int, list[Mismatch]]:
    sequences = list(sequences)
    ours = [answer for sequence in sequences for answer in our_answers(strategy, sequence)]
    cases = [(strategy, group, i == 0) for sequence in sequences for i, group in enumerate(sequence)]
    java = ORACLES[strategy](cases)
    mismatches = []
    at = 0
    for sequence in sequences:
        for i in range(len(sequence)):
            if not same(ours[at], java[at]):
                mismatches.append(Mismatch(strategy, sequence[: i + 1], ours[at], java[at]))
            at += 1
    return len(cases), mismatches


def our_answers(strategy: str, sequence: Sequence[Group]) -> list[Answer]:
    assignor: Any = load_assignor(parse_strategy(strategy))
    answers = []
    for group in sequence:
        answers.append(our_answer(assignor, group)[0])
        if len(sequence) > 1:
            assignor.remember_generations(group)
    return answers


def same(ours: Answer, java: Answer) -> bool:
    """A member that Java leaves out has nothing."""
    if isinstance(ours, str) or isinstance(java, str):
        return ours == java
    return {m: s for m, s in ours.items() if s} == {m: s for m, s in java.items() if s}


def shrink(mismatch: Mismatch) -> Mismatch:
    """Greedily: the first smaller sequence that still differs replaces the sequence, until none does."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in smaller(list(mismatch.groups)):
            _, found = compare(mismatch.strategy, [candidate])
            if found and len(found[0].groups) == len(candidate):
                mismatch, shrunk = found[0], True
                break
    return mismatch


def smaller(groups: list[Group]) -> Iterator[list[Group]]:
    for i in range(len(groups) - 1):
        yield groups[:i] + groups[i + 1 :]
    for i in reversed(range(len(groups))):
        for group in smaller_groups(groups[i]):
            yield [*groups[:i], group, *groups[i + 1 :]]


def smaller_groups(group: Group) -> Iterator[Group]:
    topics, members = dict(group.topics), dict(group.members)
    for member_id in members:
        yield Group(topics, {i: m for i, m in members.items() if i != member_id})
    for name in topics:
        yield Group({n: t for n, t in topics.items() if n != name}, members)
    for name, topic in topics.items():
        if topic.partitions:
            fewer = replace(topic, partitions=topic.partitions - 1, racks=topic.racks and topic.racks[:-1])
            yield Group(topics | {name: fewer}, members)
        if topic.racks is not None:
            yield Group(topics | {name: replace(topic, racks=None)}, members)
    for member_id, member in members.items():
        for less in smaller_members(member):
            yield Group(topics, members | {member_id: less})


def smaller_members(member: Member) -> Iterator[Member]:
    for name in member.owned:
        yield replace(member, owned={n: list(p) for n, p in member.owned.items() if n != name})
    for name, partitions in member.owned.items():
        for i in range(len(partitions) if len(partitions) > 1 else 0):
            fewer = [*partitions[:i], *partitions[i + 1 :]]
            yield replace(member, owned={n: list(p) for n, p in member.owned.items()} | {name: fewer})
    for i in range(len(member.topics)):
        yield replace(member, topics=member.topics[:i] + member.topics[i + 1 :])
    for field in ("rack", "instance_id", "claim_generation", "generation"):
        if getattr(member, field) is not None:
            without: dict[str, Any] = {field: None}
            yield replace(member, **without)
    if member.owned and member.generation is None:
        yield replace(member, owned=EMPTY)

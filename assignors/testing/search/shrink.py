"""Shrink a case to the smallest that still fails: fewer members, topics, partitions, claims, and shorter names.

Given      a case, and a question: does this one still fail?
Returns    a case from which nothing can be taken away without the failure going away too, or where time ran out
Method     greedy and deterministic: large cuts first, each one kept when the failure stays, until a whole pass over all
           cuts changes nothing. Every cut gives a group that a cluster could have
Start at   shrink
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import EMPTY, Group, Member, Topic
from rebalance_lab.assignors.testing.sampling.cases import Case
from rebalance_lab.assignors.testing.sampling.group_events import Event, Join, Resubscribe

Cuts = Callable[[Case], Iterator[Case]]


def shrink(case: Case, fails: Callable[[Case], bool], *, budget_s: float = 10.0, most: int = 3000) -> Case:
    deadline = time.monotonic() + budget_s
    asked: set[str] = set()
    progress = True
    while progress:
        progress = False
        for cuts in PASSES:
            again = True
            while again:
                again = False
                for smaller in cuts(case):
                    key = repr(smaller)
                    if key in asked:
                        continue
                    asked.add(key)
                    if time.monotonic() > deadline or len(asked) > most:
                        return case
                    if fails(smaller):
                        case, again, progress = smaller, True, True
                        break
    return case


def without_history(case: Case) -> Iterator[Case]:
    if case.before is not None:
        yield replace(case, before=None)
    if case.events:
        yield replace(case, events=())
        for i in range(len(case.events)):
            yield replace(case, events=case.events[:i] + case.events[i + 1 :])


def fewer_members(case: Case) -> Iterator[Case]:
    members = list(case.group.members.items())
    size = len(members) // 2
    while size:
        for start in range(0, len(members), size):
            yield with_group(case, case.group.with_members(dict(members[:start] + members[start + size :])))
        size //= 2


def fewer_in_both(case: Case) -> Iterator[Case]:
    """Remove a topic or member from both groups: a class may remember a group by its members, or by what they read."""
    if case.before is None:
        return
    group, before = case.group, case.before
    for gone in [name for name in group.topics if name in before.topics]:
        yield Case(without_topic(group, gone), case.events, without_topic(before, gone))
    for gone in [i for i in group.members if i in before.members]:
        groups = [one.with_members({i: m for i, m in one.members.items() if i != gone}) for one in (group, before)]
        yield Case(groups[0], case.events, groups[1])


def fewer_topics(case: Case) -> Iterator[Case]:
    for gone in [*case.group.topics, *sorted(named_but_unknown(case.group))]:
        yield with_group(case, without_topic(case.group, gone))


def without_topic(group: Group, gone: str) -> Group:
    topics = {name: topic for name, topic in group.topics.items() if name != gone}
    members = {
        i: replace(
            m,
            topics=tuple(name for name in m.topics if name != gone),
            owned={name: held for name, held in m.owned.items() if name != gone},
        )
        for i, m in group.members.items()
    }
    return Group(topics, members)


def named_but_unknown(group: Group) -> set[str]:
    named = {name for member in group.members.values() for name in (*member.topics, *member.owned)}
    return named - group.topics.keys()


def fewer_partitions(case: Case) -> Iterator[Case]:
    """Remove a topic's last partitions, with their claims; a claim beyond the end stays beyond the end."""
    for name, topic in case.group.topics.items():
        # the smallest are all tried: what goes wrong with remainders comes and goes from one count to the next
        for count in sorted({0, 1, 2, 3, 4, topic.partitions // 2, topic.partitions - 1}):
            if 0 <= count < topic.partitions:
                yield with_group(case, cut_topic(case.group, name, count))


def cut_topic(group: Group, name: str, count: int) -> Group:
    topic = group.topics[name]
    smaller = Topic(count, topic.racks and topic.racks[:count], topic.load and topic.load[:count], topic.id)
    dropped = topic.partitions - count
    members = {}
    for member_id, member in group.members.items():
        if name in member.owned:
            held = [p if p < count else p - dropped for p in member.owned[name] if not count <= p < topic.partitions]
            owned = {**member.owned, name: held}
            if not held:
                del owned[name]
            member = replace(member, owned=owned)
        members[member_id] = member
    return Group({**group.topics, name: smaller}, members)


def any_partition(case: Case) -> Iterator[Case]:
    """Remove partitions from the front rather than the end: the rack, load or claim that matters may be the last
    one.
    """
    for name, topic in case.group.topics.items():
        for partition in range(min(topic.partitions - 1, 12)):
            yield with_group(case, without_partitions(case.group, {name: {partition}}))


def member_with_its_share(case: Case) -> Iterator[Case]:
    """Remove a member with what it owns, or its part of the partitions on its rack: the others stay as full."""
    group = case.group
    if len(group.members) < 2:
        return  # one member stays, or there would be no group
    for member_id, member in group.members.items():
        others = group.with_members({i: m for i, m in group.members.items() if i != member_id})
        if member.owned:
            yield with_group(case, without_partitions(others, {name: set(ps) for name, ps in member.owned.items()}))
        if member.rack:
            shares = {name: near_share(group, name, member) for name in group.topics}
            yield with_group(case, without_partitions(others, shares))


def near_share(group: Group, name: str, member: Member) -> set[int]:
    topic = group.topics[name]
    near = [p for p, racks in enumerate(topic.racks or ()) if member.rack in racks]
    return set(near[: topic.partitions // len(group.members)])


def one_partition_each(case: Case) -> Iterator[Case]:
    """Remove from one topic a partition on the rack of each member."""
    for name, topic in case.group.topics.items():
        gone: set[int] = set()
        for member in case.group.members.values():
            near = [p for p, racks in enumerate(topic.racks or ()) if member.rack in racks and p not in gone]
            gone.update(near[:1])
        if gone:
            yield with_group(case, without_partitions(case.group, {name: gone}))


def without_partitions(group: Group, gone: dict[str, set[int]]) -> Group:
    """Remove partitions; those behind move up, with their racks, loads and claims."""
    topics, members = dict(group.topics), {}
    moved: dict[str, dict[int, int]] = {}
    for name, partitions in gone.items():
        if name in topics:
            topic = topics[name]
            kept = [p for p in range(topic.partitions) if p not in partitions]
            moved[name] = {old: new for new, old in enumerate(kept)}
            racks, load = topic.racks, topic.load
            topics[name] = Topic(
                len(kept), racks and tuple(racks[p] for p in kept), load and tuple(load[p] for p in kept), topic.id
            )
    for member_id, member in group.members.items():
        owned = {}
        for name, held in member.owned.items():
            numbers = moved.get(name)
            left = list(held) if numbers is None else [numbers[p] for p in held if p in numbers]
            if left:
                owned[name] = left
        members[member_id] = replace(member, owned=owned)
    return Group(topics, members)


def fewer_claims(case: Case) -> Iterator[Case]:
    members = case.group.members
    if any(member.owned for member in members.values()):
        yield with_group(
            case, case.group.with_members({i: replace(m, owned=EMPTY, generation=None) for i, m in members.items()})
        )
    for i, member in members.items():
        if member.owned:
            yield with_member(case, i, replace(member, owned=EMPTY))
        for name, held in (
            member.owned.items() if len(member.owned) > 1 or sum(map(len, member.owned.values())) > 1 else ()
        ):
            yield with_member(case, i, replace(member, owned={t: ps for t, ps in member.owned.items() if t != name}))
            for partition in held if len(held) > 1 else ():
                less = [p for p in held if p != partition]
                yield with_member(case, i, replace(member, owned={**member.owned, name: less}))


def plainer_members(case: Case) -> Iterator[Case]:
    members = case.group.members
    yield with_group(case, case.group.with_members({i: replace(m, instance_id=None) for i, m in members.items()}))
    yield with_group(case, case.group.with_members({i: replace(m, rack=None) for i, m in members.items()}))
    yield with_group(case, case.group.with_members({i: replace(m, capacity=1.0) for i, m in members.items()}))
    shared = case.group.with_members({i: replace(m, generation=1 if m.owned else None) for i, m in members.items()})
    yield with_group(case, shared)
    for i, member in members.items():
        for plainer in ({"instance_id": None}, {"rack": None}, {"capacity": 1.0}, {"generation": None}):
            yield with_member(case, i, replace(member, **plainer))
        for place in range(len(member.topics)):
            topics = member.topics[:place] + member.topics[place + 1 :]
            yield with_member(case, i, replace(member, topics=topics))


def plainer_topics(case: Case) -> Iterator[Case]:
    for plainer in ({"racks": None}, {"load": None}, {"id": None}):
        topics = {name: replace(topic, **plainer) for name, topic in case.group.topics.items()}  # type: ignore[arg-type]
        yield with_group(case, Group(topics, case.group.members))
        for name, topic in case.group.topics.items():
            yield with_group(case, Group({**case.group.topics, name: replace(topic, **plainer)}, case.group.members))  # type: ignore[arg-type]


def in_order(case: Case) -> Iterator[Case]:
    """List members and topics by name."""
    group = case.group
    topics = {name: group.topics[name] for name in in_java_order(group.topics)}
    members = {i: group.members[i] for i in in_java_order(group.members)}
    yield with_group(case, Group(topics, group.members))
    yield with_group(case, Group(topics, members))


def short_names(case: Case) -> Iterator[Case]:
    """Rename members to A, B, C and topics to t, u, v, in the order that their names had."""
    group = case.group
    names = {*group.topics, *named_but_unknown(group)}
    ids = dict(zip(in_java_order(group.members), (f"{c}" for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), strict=False))
    topics = dict(zip(in_java_order(names), "tuvwxyz", strict=False))
    if len(ids) < len(group.members) or len(topics) < len(names):
        return
    for renamed_ids, renamed_topics in ((ids, topics), (ids, {}), ({}, topics)):
        yield renamed(case, renamed_ids, renamed_topics)


def renamed(case: Case, ids: dict[str, str], topics: dict[str, str]) -> Case:
    def new(name: str) -> str:
        return topics.get(name, name)

    def members(group: Group) -> Group:
        return Group(
            {new(name): topic for name, topic in group.topics.items()},
            {
                ids.get(i, i): replace(
                    m, topics=tuple(map(new, m.topics)), owned={new(name): held for name, held in m.owned.items()}
                )
                for i, m in group.members.items()
            },
        )

    def event(each: Event) -> Event:
        changes: dict[str, object] = {}
        for key in ("member", "of"):
            if hasattr(each, key):
                changes[key] = ids.get(getattr(each, key), getattr(each, key))
        if hasattr(each, "topic"):
            changes["topic"] = new(each.topic)
        if isinstance(each, Join | Resubscribe):
            changes["topics"] = tuple(map(new, each.topics))
        return replace(each, **changes)  # type: ignore[arg-type]

    before = None if case.before is None else members(case.before)
    return Case(members(case.group), tuple(map(event, case.events)), before)


def smaller_before(case: Case) -> Iterator[Case]:
    """Cut the group that was asked about first down like the other one."""
    if case.before is not None:
        for cuts in (fewer_members, fewer_topics, fewer_partitions, fewer_claims):
            for smaller in cuts(Case(case.before)):
                yield replace(case, before=smaller.group)


def with_group(case: Case, group: Group) -> Case:
    return Case(group, case.events, case.before)


def with_member(case: Case, member_id: str, member: Member) -> Case:
    return with_group(case, case.group.with_members({**case.group.members, member_id: member}))


PASSES: tuple[Cuts, ...] = (
    without_history,
    fewer_in_both,
    fewer_members,
    fewer_topics,
    fewer_partitions,
    member_with_its_share,
    one_partition_each,
    any_partition,
    fewer_claims,
    plainer_topics,
    plainer_members,
    smaller_before,
    in_order,
    short_names,
)

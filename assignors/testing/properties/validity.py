"""Check what every assignor is held to: valid, pure, deterministic, in any order, in bounded time; and three balances.

Given      a Trial: a case and the assignor on the bench
Returns    nothing, or raises Broken with one line on what is wrong; NotApplicable where it says nothing about the group
Why        each docstring says what goes wrong in production without it
More       moves.py (sticky, cooperative, racks), churn.py; contract.py lists them all
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from rebalance_lab.assignors.classic.load_aware import load_bound_violation
from rebalance_lab.assignors.model import EMPTY, Group, Member, Topic, copied
from rebalance_lab.assignors.quality import share_numbers, skew_and_spread
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.sampling.group_events import grown
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, Placed, View

PATIENCE_S = 0.2
"""For asking again and again: a state may need a hundred calls to show."""


def valid(trial: Trial) -> None:
    """Every partition of a subscribed topic goes to exactly one member, and that one subscribes to the topic.

    A partition that is forgotten is not read until somebody notices its lag; one that is given twice is processed
    twice; one that was not asked for fails in the consumer that gets it. Whoever is left out of the answer gets
    nothing, which is fine. One that declares itself cooperative may leave out a partition that a member still holds.
    """
    _ = trial.first


def bounded_time(trial: Trial) -> None:
    """An answer comes, and soon.

    While the leader thinks, nobody in the group reads anything; when it thinks longer than max.poll.interval.ms it is
    thrown out, and the next leader starts thinking. A sticky assignor that never stopped swapping partitions has kept
    whole groups standing still (librdkafka issue 4783).
    """
    _ = trial.first


def pure(trial: Trial) -> None:
    """The group that was handed in is unchanged afterwards.

    The caller still needs it: to send the assignment, to compare it with the last one, to ask another assignor.
    """
    _ = trial.first
    if trial.thorough:  # in a search it has been asked more than once by now
        with suppress(Broken, NotApplicable):
            for _ in range(2):
                trial.subject.ask_again(trial.group)
    if trial.changed:
        raise Broken("the group it was given is not the same afterwards", trial.group, trial.first.answer)


def deterministic(trial: Trial) -> None:
    """Same group, same answer: from this instance or a new one, asked twice, in another process, after other groups.

    When a leader dies, the next one answers for the same group: if it answers differently, partitions move for no
    reason. And what cannot be repeated cannot be debugged.
    """
    first, subject = trial.first, trial.subject
    _same_again(first, subject.ask, "a second new instance")
    for _ in range(2):  # on a replay the first of these is a new instance too
        _same_again(first, subject.ask_again, "an instance that has answered before")
    if len(trial.group.members) > 1:
        # What an instance, or its class, keeps of one group by mistake shows on the return to another.
        subject.tell(fewer(trial.group))
        _same_again(first, subject.ask_again, "an instance that has answered for other groups")
        _same_again(first, subject.ask, "a new instance, after other groups,")
    if trial.thorough:
        others = list(variants(trial.group))
        deadline = time.perf_counter() + PATIENCE_S
        for number, other in enumerate(others * 20):
            for ask in (subject.ask_again, subject.ask):
                with suppress(Broken, NotApplicable):
                    ask(other)
            _same_again(first, subject.ask, "a new instance, after other groups,")
            _same_again(first, subject.ask_again, "an instance that has answered for other groups")
            if number >= len(others) - 1 and time.perf_counter() > deadline:
                break


def _same_again(first: Placed, ask: Callable[[Group, View, Placed], Placed], who: str) -> None:
    view = first.view
    group = view.group
    try:
        again = ask(group, view, first)
    except Broken as broken:
        if broken.blames == "bounded-time":
            raise
        raise Broken(f"{who} {broken.message}; at first it answered", group, broken.answer) from broken
    if again is not first and again.owner != first.owner:
        raise _difference(first, again, f"{who} answers differently: {{}}", group)


def _difference(first: Placed, other: Placed, text: str, group: Group) -> Broken:
    numbers = first.differences(other)
    was, now = (
        first.view.ids[placed.owner[numbers[0]]] if placed.owner[numbers[0]] >= 0 else "nobody"
        for placed in (first, other)
    )
    told = f"{first.view.named(numbers[0])} to {was!r}, then to {now!r}"
    return Broken(text.format(told), group, other.answer, badness=len(numbers))


def variants(group: Group) -> Iterator[Group]:
    """Other groups of the same people, to ask about in between: a state that is kept by mistake shows on the return."""
    members = copied(group.members)
    if members:
        yield fewer(group)
    yield Group({name: grown(topic, 1) for name, topic in group.topics.items()}, members)
    yield group.with_members({i: replace(m, owned=EMPTY, generation=None) for i, m in members.items()})
    yield group.with_members({**members, "~": Member(tuple(group.topics))})
    yield Group({"~": Topic(1)}, {"~": Member(("~",))})
    yield group.with_members({i: replace(m, generation=(m.generation or 0) + 9) for i, m in members.items()})


def fewer(group: Group) -> Group:
    """Without its first member."""
    members = copied(group.members)
    del members[next(iter(members))]
    return group.with_members(members)


def order_independent(trial: Trial) -> None:
    """The order in which members and topics are listed changes nothing.

    It is the order in which join requests happened to arrive, and metadata happened to be hashed: it differs from one
    rebalance to the next, and then partitions move although nothing has changed.
    """
    other = reversed_group(trial.group, subscriptions=trial.closely)
    _same_in_order(trial, other, "members and topics listed in reverse")
    if len(trial.group.members) > 2:
        # An assignor may be fair to both ends of a list and still go by it.
        _same_in_order(trial, rotated_group(trial.group), "members listed from the middle on")


def _same_in_order(trial: Trial, group: Group, how: str) -> None:
    first = trial.first
    answer = trial.subject.ask(group, None, first)
    if answer is first:
        return
    ids, position = answer.view.ids, trial.view.position
    theirs = [position[ids[place]] if place >= 0 else place for place in answer.owner]
    if theirs != first.owner:
        counts = [answer.counts[answer.view.position[member_id]] for member_id in trial.view.ids]
        other = Placed(trial.view, theirs, counts, answer.answer, answer.withheld)
        raise _difference(first, other, f"with {how} it answers differently: {{}}", trial.group)


def reversed_group(group: Group, *, subscriptions: bool = True) -> Group:
    """Members and topics in reverse, or each subscription too; what members own stays in its order."""
    members = dict(reversed(copied(group.members).items()))
    if subscriptions:
        members = {
            member_id: Member(m.topics[::-1], m.owned, m.generation, m.instance_id, m.rack, m.capacity)
            for member_id, m in members.items()
        }
    return Group(dict(reversed(copied(group.topics).items())), members, group.layout)


def rotated_group(group: Group) -> Group:
    """The second half of the members first."""
    members = copied(group.members)
    for member_id in list(members)[: len(members) // 2]:
        members[member_id] = members.pop(member_id)
    return group.with_members(members)


def balanced(trial: Trial) -> None:
    """No partition could go from a member to a subscriber of its topic that holds at least two partitions fewer.

    The slowest member decides how far behind a group falls. This is the bound of Kafka's sticky family: with equal
    subscriptions it means that any two members differ by one at most. Judged when the hand-over has ended.
    """
    placed = trial.settled.placed
    view, counts = placed.view, placed.counts
    if not counts or max(counts) < min(counts) + 2:
        return
    for name, start, count in view.spans:
        if not count or name not in view.readers:
            continue
        lightest = min(view.subscribers(name), key=counts.__getitem__)
        for number, heavy in enumerate(placed.owner[start : start + count], start):
            if counts[heavy] >= counts[lightest] + 2:
                raise Broken(
                    f"{view.ids[heavy]!r} holds {counts[heavy]} partitions, among them {view.named(number)}, and "
                    f"{view.ids[lightest]!r}, who could read that one, holds {counts[lightest]}",
                    trial.settled.group,
                    placed.answer,
                    badness=counts[heavy] - counts[lightest],
                )


def per_topic_balanced(trial: Trial) -> None:
    """Of each topic, any two of its subscribers hold the same number of partitions, give or take one.

    What range promises: topics that are joined by key need not be equally busy, so each must be spread by itself.
    """
    placed = trial.settled.placed
    view = placed.view
    for name, start, count in view.spans:
        owners = placed.owner[start : start + count]
        holders = set(owners)
        if len(holders) == count or name not in view.readers:
            continue  # nobody holds two
        held = {position: owners.count(position) for position in holders}
        if max(held.values()) <= min(held.values()) + 1 and len(held) == len(view.subscribers(name)):
            continue
        least = min(view.subscribers(name), key=lambda position: held.get(position, 0))
        most = max(held, key=held.__getitem__)
        if held[most] > held.get(least, 0) + 1:
            raise Broken(
                f"of {name} {view.ids[most]!r} holds {held[most]} and {view.ids[least]!r} {held.get(least, 0)}",
                trial.settled.group,
                placed.answer,
                badness=held[most] - held.get(least, 0),
            )


def load_balanced(trial: Trial) -> None:
    """Load over capacity is even: no single move would help two members that differ by more than the declared bound.

    Ten quiet partitions are less work than one busy one; counting them alike leaves one member behind and the others
    idle. The bound is the class's `threshold`, a tenth of the mean unless it says otherwise (load_aware.py).
    """
    if "loads" not in trial.shapes and "load-balanced" not in trial.subject.promises:
        raise NotApplicable  # counting partitions is then all there is to it, and `balanced` counts
    settled = trial.settled
    problem = load_bound_violation(settled.group, settled.placed.answer, trial.subject.threshold)
    if problem is not None:
        raise Broken(problem, settled.group, settled.placed.answer, badness=load_skew(settled.placed))


def load_skew(placed: Placed) -> float:
    group = placed.view.group
    shares = [share_numbers(group.layout, placed.answer, member_id) for member_id in group.members]
    return skew_and_spread(group, shares)[0] or 1.0

"""Check what only some classes promise: staying put, moving little, handing over safely, racks.

The form is that of validity.py. Settled means: rebalanced until nothing is withheld.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.assignors.model import NOBODY, Group, Member, copied
from rebalance_lab.assignors.optimal import optimum
from rebalance_lab.assignors.quality import claim_generation, claimed_numbers, previous_owners
from rebalance_lab.assignors.testing.properties.trial import Trial
from rebalance_lab.assignors.testing.properties.validity import _difference
from rebalance_lab.assignors.testing.sampling.group_events import Join, happen
from rebalance_lab.assignors.testing.subject.answers import Broken, NotApplicable, Placed
from rebalance_lab.assignors.testing.subject.rounds import Settled, rejoined, settle

SETTLES_WITHIN = 6
ROUNDS_EQUAL = 2
ROUNDS_MIXED = 3
"""With different subscriptions Kafka's own needs a third round now and then: what the second places tips a balance."""


def sticky(trial: Trial) -> None:
    """In an unchanged group nothing moves.

    Groups rebalance for many reasons that do not concern most members: a heartbeat late, a deploy that touched one.
    Each partition that moves is closed, reopened, its state rebuilt and some of its records read twice.
    """
    if trial.repeated.owner != trial.settled.placed.owner:
        text = "everybody owns what it was given, nothing has changed, and partitions move: {}"
        raise _difference(trial.settled.placed, trial.repeated, text, trial.rejoined)


def sticky_leave(trial: Trial) -> None:
    """When a member leaves, only its partitions move.

    A deploy takes members away one by one. If each departure moves partitions among those who stay, a rolling restart
    of n members moves everything n times. Members subscribe alike here, so that nobody has to make room for anybody.
    """
    settled, group = settled_plain(trial)
    ids = settled.placed.view.ids
    for leaver in {ids[0], ids[-1], ids[len(ids) // 2]} if trial.thorough else {ids[len(ids) // 2]}:
        stay = copied(group.members)
        del stay[leaver]
        fewer = group.with_members(stay)
        after = settle(trial.subject.ask, fewer, view=trial.subject.view_of(fewer))
        check_nobody_loses(settled.placed, after.placed, f"after {leaver!r} has left", fewer)


def sticky_join(trial: Trial) -> None:
    """When a member joins, it takes its share and no more, and nobody else gains anything.

    Adding a member should cost what it relieves: one share moves, the rest goes on reading.
    """
    settled, group = settled_plain(trial)
    total, members = settled.placed.view.readable, len(settled.placed.view.ids)
    topics = next(iter(group.members.values())).topics
    for joiner in ("!new", "~new") if trial.thorough else ("!new" if total % 2 else "~new",):
        more = group.with_members(copied(group.members) | {joiner: Member(topics)})
        after = settle(trial.subject.ask, more, view=trial.subject.view_of(more)).placed
        share = -(-total // (members + 1))
        if after.counts[members] > share:
            raise Broken(
                f"{joiner!r} joins {members} and takes {after.counts[members]} of {total} partitions, not {share}",
                more,
                after.answer,
                badness=after.counts[members] - share,
            )
        check_only_joiner_gains(settled.placed, after, members, more)


def check_nobody_loses(before: Placed, after: Placed, when: str, group: Group) -> None:
    position = after.view.position
    now_at = [position.get(member_id, NOBODY) for member_id in before.view.ids]
    changed = [
        number
        for number, (was, now) in enumerate(zip(before.owner, after.owner, strict=True))
        if was >= 0 and now_at[was] not in (now, NOBODY)
    ]
    if changed:
        number = changed[0]
        was, now = before.view.ids[before.owner[number]], after.owner[number]
        whom = after.view.ids[now] if now != NOBODY else "nobody"
        text = f"{when}, {was!r} loses {before.view.named(number)} to {whom!r}"
        raise Broken(text, group, after.answer, badness=len(changed))


def check_only_joiner_gains(before: Placed, after: Placed, joiner: int, group: Group) -> None:
    changed = [n for n in before.differences(after) if after.owner[n] != joiner]
    if changed:
        ids = after.view.ids
        was, now = (ids[placed.owner[changed[0]]] for placed in (before, after))
        text = f"{ids[joiner]!r} joins, and {before.view.named(changed[0])} goes from {was!r} to {now!r}"
        raise Broken(text, group, after.answer, badness=len(changed))


def settled_plain(trial: Trial) -> tuple[Settled, Group]:
    """With equal subscriptions, no racks and no loads what has to move is beyond dispute. And how the group rejoins."""
    members = trial.group.members.values()
    if (
        len(members) < 2
        or not trial.view.readable
        or len({frozenset(topics) for topics in {m.topics for m in members}}) > 1
    ):
        raise NotApplicable
    return trial.settled_plain


def settles(trial: Trial) -> None:
    """Assigned again and again, the group comes to rest.

    An assignor that prefers B's answer when asked about A's, and A's when asked about B's, moves partitions at every
    rebalance for ever.
    """
    group, placed = trial.rejoined, trial.repeated
    before = trial.settled.placed
    for _ in range(SETTLES_WITHIN):
        if placed.owner == before.owner:
            return
        before = placed
        settled = settle(trial.subject.ask, rejoined(group, placed))
        group, placed = settled.group, settled.placed
    if placed.owner == before.owner:
        return
    text = f"still moves partitions after {SETTLES_WITHIN} rebalances of an unchanged group: {{}}"
    raise _difference(before, placed, text, group)


def minimal_moves(trial: Trial) -> None:
    """No more partitions change hands than the exact optimum needs for the best balance, give or take what is declared.

    The distance is the class's `moves_within`, nothing unless it says otherwise. Racks and loads may ask for moves of
    their own, so groups that have them are passed over.
    """
    if not trial.plain or not any(member.owned for member in trial.group.members.values()):
        raise NotApplicable
    if "mixed" in trial.shapes and "minimal-moves" not in trial.subject.promises:
        raise NotApplicable  # the exact optimum is dear there, and nobody has asked for it
    before = previous_owners(trial.group.layout, trial.group.members.values())
    after = trial.settled.placed
    moves = sum(was not in (NOBODY, now) for was, now in zip(before, after.owner, strict=True) if now != NOBODY)
    fewest = optimum(trial.group).moves
    if moves > fewest + trial.subject.moves_within:
        text = f"{moves} partitions move where {fewest} would do"
        raise Broken(text, trial.group, after.answer, badness=moves - fewest)


def cooperative(trial: Trial) -> None:
    """Nothing is given to a new owner before the old one has been told to let go.

    In a cooperative rebalance members go on reading. A partition that is given to B while A holds it is read by both:
    records are processed twice, and the offsets that A commits overwrite B's.
    """
    check_handover(trial.first)
    if trial.case.events:
        check_handover(trial.after_event)


def check_handover(placed: Placed) -> None:
    """Who holds a partition is who claims it in the highest generation. Where subscriptions differ Kafka's own gives a
    partition back to a member with an old claim at once; so may everybody."""
    view = placed.view
    group = view.group
    layout, members = group.layout, list(group.members.values())
    holders: dict[int, tuple[int, set[int]]] = {}
    claims: dict[int, Sequence[int]] = {}
    for position, member in enumerate(members):
        if member.owned:
            claims[position] = numbers = claimed_numbers(layout, member)
            generation = claim_generation(member)
            for number in numbers:
                if number not in holders or generation > holders[number][0]:
                    holders[number] = generation, {position}
                elif generation == holders[number][0]:
                    holders[number][1].add(position)
    owner = placed.owner
    for number, (_, who) in holders.items():
        now = owner[number]
        if now in who or now == NOBODY or (not view.alike and number in claims.get(now, ())):
            continue
        old = view.ids[min(who)]
        text = f"{view.named(number)} is given to {view.ids[now]!r} while {old!r} still holds it"
        raise Broken(text, group, placed.answer, blames="cooperative")


def cooperative_rounds(trial: Trial) -> None:
    """A hand-over ends: one rebalance to revoke, one to give; with different subscriptions a third at most.

    Each round is a rebalance of the whole group, and a partition that is withheld is read by nobody until the next.
    Judged from a settled group to which one thing happens: the case's first event, or somebody joins.
    """
    if not trial.group.members:
        raise NotApplicable
    if trial.case.events:
        event, first = trial.case.events[0], trial.after_event
    else:
        event = Join("~new", next(iter(trial.group.members.values())).topics)
        first = trial.subject.ask(happen(trial.rejoined, event))
    group = first.view.group
    if not group.members:
        raise NotApplicable
    after = settle(trial.subject.ask, group, first)
    allowed = ROUNDS_EQUAL if after.placed.view.alike else ROUNDS_MIXED
    if after.rounds > allowed:
        withheld = f"partitions are withheld in {after.rounds - 1} rebalances; {allowed - 1} should do"
        text = f"after one {event.kind}, {withheld}"
        raise Broken(text, group, after.placed.answer, badness=after.rounds)


def rack_aware(trial: Trial) -> None:
    """Where every partition can be read from its reader's own rack at no cost of balance, it is (KIP-881).

    Traffic between racks, or availability zones, is slow and is billed.
    """
    if not trial.group.members or not rack_friendly(trial):
        raise NotApplicable
    placed = trial.settled.placed
    racks = [member.rack for member in trial.group.members.values()]
    missed = []
    for name, start, _ in trial.view.spans:
        for number, replicas in enumerate(trial.group.topics[name].racks or (), start):
            if placed.owner[number] != NOBODY and racks[placed.owner[number]] not in replicas:
                missed.append(number)
    if missed:
        number = missed[0]
        member = placed.view.ids[placed.owner[number]]
        text = f"{placed.view.named(number)} goes to {member!r}, who is not on its rack, although all could be"
        raise Broken(text, trial.group, placed.answer, badness=len(missed) / max(1, placed.view.readable))


def rack_friendly(trial: Trial) -> bool:
    """Nothing is owned, all subscribe alike, and of each topic every rack holds its members' exact share."""
    members = trial.group.members.values()
    on_rack: dict[str, int] = {}
    for member in members:
        rack = member.rack
        if not rack or member.owned or member.capacity != 1.0:
            return False
        on_rack[rack] = on_rack.get(rack, 0) + 1
    if not trial.view.alike:
        return False
    topics = [trial.group.topics[name] for name in trial.view.readers]
    for topic in topics:
        if topic.load is not None or topic.partitions % len(members):
            return False
    if len({topic.partitions for topic in topics}) < len(topics):
        return False  # range keeps topics of one size aligned, whatever that costs in racks
    for topic in topics:
        homes = dict.fromkeys(on_rack, 0)
        for replicas in topic.racks or ():
            near = [rack for rack in replicas if rack in homes]
            if len(near) != 1:
                return False
            homes[near[0]] += 1
        each = topic.partitions // len(members)
        if topic.partitions and any(homes[rack] != each * count for rack, count in on_rack.items()):
            return False
    return True

"""What only those are held to who promise it: staying put, moving little, handing over safely, racks. And churn.

The form is that of properties.py. Settled means: rebalanced until nothing is withheld.
"""

from __future__ import annotations

from collections import Counter

from assignors.model import Group, Member, Topic
from assignors.quality import NOBODY, claim_generation, claimed_numbers, previous_owners
from assignors.testing.answers import Broken, NotApplicable, Placed
from assignors.testing.events import happen
from assignors.testing.properties import _difference
from assignors.testing.rounds import Settled, rejoined, settle
from assignors.testing.trial import Trial

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
    settled = settled_plain(trial)
    ids = settled.placed.view.ids
    for leaver in {ids[0], ids[-1], ids[len(ids) // 2]} if trial.thorough else {ids[len(ids) // 2]}:
        group = settled.rejoined()
        group = group.with_members({i: m for i, m in group.members.items() if i != leaver})
        after = settle(trial.subject.ask, group)
        check_nobody_loses(settled.placed, after.placed, f"after {leaver!r} has left", group)


def sticky_join(trial: Trial) -> None:
    """When a member joins, it takes its share and no more, and nobody else gains anything.

    Adding a member should cost what it relieves: one share moves, the rest goes on reading.
    """
    settled = settled_plain(trial)
    total, members = settled.placed.view.readable, len(settled.placed.view.ids)
    topics = next(iter(settled.group.members.values())).topics
    for joiner in ("!new", "~new") if trial.thorough else ("!new" if total % 2 else "~new",):
        group = settled.rejoined()
        group = group.with_members({**group.members, joiner: Member(topics)})
        after = settle(trial.subject.ask, group).placed
        share = -(-total // (members + 1))
        if after.counts[members] > share:
            raise Broken(
                f"{joiner!r} joins {members} and takes {after.counts[members]} of {total} partitions, not {share}",
                group,
                after.answer,
                badness=after.counts[members] - share,
            )
        check_only_joiner_gains(settled.placed, after, members, group)


def check_nobody_loses(before: Placed, after: Placed, when: str, group: Group) -> None:
    position = after.view.position
    lost = 0
    worst = ""
    for number, owner in enumerate(before.owner):
        was = before.view.ids[owner] if owner != NOBODY else None
        now = after.owner[number]
        if was in position and now != position[was]:
            lost += 1
            whom = after.view.ids[now] if now != NOBODY else "nobody"
            worst = worst or f"{when}, {was!r} loses {before.view.named(number)} to {whom!r}"
    if lost:
        raise Broken(worst, group, after.answer, badness=lost)


def check_only_joiner_gains(before: Placed, after: Placed, joiner: int, group: Group) -> None:
    changed = [n for n in before.differences(after) if after.owner[n] != joiner]
    if changed:
        ids = after.view.ids
        was, now = (ids[placed.owner[changed[0]]] for placed in (before, after))
        text = f"{ids[joiner]!r} joins, and {before.view.named(changed[0])} goes from {was!r} to {now!r}"
        raise Broken(text, group, after.answer, badness=len(changed))


def settled_plain(trial: Trial) -> Settled:
    """Equal subscriptions, no racks, no loads: what has to move is then beyond argument. Settled from nothing owned."""
    alike = len({frozenset(member.topics) for member in trial.group.members.values()}) == 1
    if not alike or not trial.view.readable or len(trial.view.ids) < 2:
        raise NotApplicable
    topics = {name: Topic(topic.partitions, id=topic.id) for name, topic in trial.group.topics.items()}
    members = {
        i: Member(m.topics, m.owned, m.generation, instance_id=m.instance_id) for i, m in trial.group.members.items()
    }
    if not trial.shapes & {"racks", "loads"}:
        return trial.settled
    return settle(trial.subject.ask, Group(topics, members))


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
        settled = settle(trial.subject.ask, rejoined(group, placed.shares()))
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
    if trial.shapes & {"racks", "loads"} or not any(member.owned for member in trial.group.members.values()):
        raise NotApplicable
    if "mixed" in trial.shapes and "minimal-moves" not in trial.subject.promises:
        raise NotApplicable  # the exact optimum is dear there, and nobody has asked for it
    from assignors.optimal import optimum

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
    for event in trial.case.events[:1]:
        group = happen(trial.rejoined, event)
        check_handover(trial.subject.ask(group))


def check_handover(placed: Placed) -> None:
    """Who holds a partition is who claims it in the highest generation. Where subscriptions differ Kafka's own gives a
    partition back to a member with an old claim at once; so may everybody."""
    view = placed.view
    group = view.group
    members = list(group.members.values())
    if not any(member.owned for member in members):
        return
    holders: dict[int, tuple[int, set[int]]] = {}
    claims: list[set[int]] = []
    for position, member in enumerate(members):
        numbers = set(claimed_numbers(group.layout, member))
        claims.append(numbers)
        generation = claim_generation(member)
        for number in numbers:
            best, who = holders.setdefault(number, (generation, set()))
            if generation > best:
                holders[number] = generation, {position}
            elif generation == best:
                who.add(position)
    lenient = not view.same_subscriptions()
    for number, (_, who) in holders.items():
        now = placed.owner[number]
        if now == NOBODY or now in who or (lenient and number in claims[now]):
            continue
        old = view.ids[min(who)]
        text = f"{view.named(number)} is given to {view.ids[now]!r} while {old!r} still holds it"
        raise Broken(text, group, placed.answer, blames="cooperative")


def cooperative_rounds(trial: Trial) -> None:
    """A hand-over ends: one rebalance to revoke, one to give; with different subscriptions a third at most.

    Each round is a rebalance of the whole group, and a partition that is withheld is read by nobody until the next.
    Judged from a settled group to which one thing happens.
    """
    if not trial.case.events:
        if trial.first.withheld:
            _ = trial.settled  # raises when it never ends
        raise NotApplicable
    group = happen(trial.rejoined, trial.case.events[0])
    if not group.members:
        raise NotApplicable
    after = settle(trial.subject.ask, group)
    allowed = ROUNDS_EQUAL if after.placed.view.same_subscriptions() else ROUNDS_MIXED
    if after.rounds > allowed:
        kind = trial.case.events[0].kind
        text = f"after one {kind}, partitions are withheld in {after.rounds - 1} rebalances; {allowed - 1} should do"
        raise Broken(text, group, after.placed.answer, badness=after.rounds)


def rack_aware(trial: Trial) -> None:
    """Where every partition can be read from its reader's own rack at no cost of balance, it is (KIP-881).

    Traffic between racks, or availability zones, is slow and is billed.
    """
    if not rack_friendly(trial):
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
    if not members or any(m.owned or not m.rack or m.capacity != 1.0 for m in members):
        return False
    if not trial.view.same_subscriptions():
        return False
    if len({trial.group.topics[name].partitions for name in trial.view.readers}) < len(trial.view.readers):
        return False  # range keeps topics of one size aligned, whatever that costs in racks
    on_rack = Counter(member.rack for member in members)
    for name in trial.view.readers:
        topic = trial.group.topics[name]
        if topic.load is not None or topic.partitions % len(trial.group.members):
            return False
        homes: Counter[str] = Counter()
        for replicas in topic.racks or ():
            near = on_rack.keys() & set(replicas)
            if len(near) != 1:
                return False
            homes.update(near)  # type: ignore[arg-type]
        each = topic.partitions // len(trial.group.members)
        if topic.partitions and any(homes[rack or ""] != each * count for rack, count in on_rack.items()):
            return False
    return True


def churn(trial: Trial) -> None:
    """Members come, go, crash and come back, topics grow and vanish: every rebalance in between is valid and ends.

    One rebalance that goes wrong is enough, and what goes wrong is rarely the first one.
    """
    if not trial.case.events:
        raise NotApplicable

    def ask(group: Group) -> Placed:
        placed = trial.subject.ask(group)
        if "cooperative" in trial.subject.promises:
            check_handover(placed)
        return placed

    driver = trial.driver(ask, trial.group)
    driver.settle()
    for event in trial.case.events:
        driver.apply(event)
        driver.settle()

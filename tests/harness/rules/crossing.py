"""What is known of a group crosses over with it: from the classic book to that of consumer groups, and back.

Upgrade    who is in the classic group's generation is in that epoch, and has what SyncGroup has brought if the group
           was stable; sessions begin anew, and whether somebody has fallen silent is asked when it was heard of since;
           nobody waits for an answer any more; the epoch does not fall behind the generation
Downgrade  who was told the group's epoch is in that generation; sessions begin anew; the generation is not older
Start at   upgraded, downgraded
"""

from __future__ import annotations

from rebalance_lab.harness.measure.broken_invariant import Broken
from rebalance_lab.protocol_v1.common.consumer_protocol import decode_assignment
from rebalance_lab.protocol_v1.common.messages import JoinGroupRequest
from rebalance_lab.protocol_v1.coordinator.state.states import State
from tests.harness.rules import classic
from tests.harness.rules.classic import ClassicRules
from tests.harness.rules.mixed import ClassicSeat, MixedRules


def upgraded(before: ClassicRules, former: MixedRules, now_ms: int) -> MixedRules:
    """`former`: what is known of its last time as a consumer group."""
    check_nobody_waits(before, now_ms)
    rules = MixedRules(before.health)
    rules.life, rules.deleted, rules.gone = before.life, former.deleted, dict(before.gone)
    rules.most_epoch, rules.sessions_since_ms = before.generation, now_ms
    # Static members are in the group even where nobody has heard of them for some generations.
    rules.instances, rules.most_rebalance_ms = dict(before.holders), before.most_rebalance_ms
    for member_id in sorted(before.members_of(before.generation)):
        if before.is_out(member_id) or before.is_replaced(member_id):
            continue
        seat = rules.seats[member_id] = upgraded_seat(before, member_id, now_ms)
        seat.old_timers = member_id in former.seats
        if rules.gone.pop(member_id, None) is None:
            rules.hold(member_id, seat, set(rules.by_name(given_in(before, member_id))))
        seat.given, seat.ever = set(seat.has), set(seat.has)
    rules.ids = {name: member_id for name, member_id in before.ids.items() if member_id in rules.seats}
    rules.killed = {one: since_ms for one, since_ms in before.killed.items() if one in rules.seats}
    return rules


def upgraded_seat(before: ClassicRules, member_id: str, now_ms: int) -> ClassicSeat:
    known = before.seats[member_id]
    behind = member_id not in before.told.get(before.generation, set())
    return ClassicSeat(
        epoch=before.generation,
        heard_ms=now_ms,
        rebalance_ms=known.rebalance_ms,
        life=known.life,
        refused=behind or member_id in before.excused or member_id in before.gone,
        session_ms=known.session_ms,
        instance_id=known.instance_id,
    )


def given_in(before: ClassicRules, member_id: str) -> dict[str, tuple[int, ...]]:
    """What it has for certain: asked of a stable group only, whose assignment it has heard."""
    generation, given = before.given
    stable = before.state == State.STABLE.value and generation == before.generation
    if not stable or member_id not in before.synced or not given.get(member_id):
        return {}
    return dict(decode_assignment(given[member_id]).assigned_partitions)


def check_nobody_waits(before: ClassicRules, now_ms: int) -> None:
    before.check_nobody_waits_for_sync(now_ms)
    present = before.told.get(before.generation, set()) - before.excused
    for request, _, since_ms in before.asked.values():
        if not isinstance(request, JoinGroupRequest) or since_ms <= before.joined_ms.get(request.client_id, -1):
            continue
        if request.member_id in present and not before.is_out(request.member_id):
            message = f"JoinGroup of {request.member_id} is not answered when the group is upgraded"
            raise Broken("members heard", message, now_ms)


def downgraded(before: MixedRules, epoch: int, now_ms: int) -> ClassicRules:
    rules = ClassicRules(before.health)
    rules.life, rules.gone = before.life, dict(before.gone)
    rules.told[epoch], rules.behind[epoch] = set(), set()
    rules.most_rebalance_ms = before.most_rebalance_ms
    rules.holders = {name: member_id for name, member_id in before.instances.items() if member_id not in before.gone}
    for member_id, seat in before.seats.items():
        if not isinstance(seat, ClassicSeat) or member_id in before.gone:
            continue
        rules.seats[member_id] = classic.Seat(seat.session_ms, seat.rebalance_ms, seat.instance_id, now_ms, seat.life)
        (rules.told if seat.epoch == epoch else rules.behind)[epoch].add(member_id)
        if seat.refused:  # it may be in the group or not, and may be waited for
            rules.excused.add(member_id)
            rules.handed_out[member_id] = now_ms + seat.session_ms
    rules.ids = {name: member_id for name, member_id in before.ids.items() if member_id in rules.seats}
    rules.killed = {one: since_ms for one, since_ms in before.killed.items() if one in rules.seats}
    return rules

"""Move one member from what it is assigned towards its target.

Given      the member, its target, the partitions that members hold, and what this member says it owns
Returns    its next CurrentAssignment, which may be the one it has; storing and sending it is the caller's part
States     STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS (tables in ../state/states.py). The member's epoch
           reaches the assignment epoch only when nothing is left to revoke
Invariant  a partition is given only if no other member holds it, or the member itself was about to give it up
Reference  KIP-848, and CurrentAssignmentBuilder in Apache Kafka
Start at   next_assignment
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.fast_dataclass import fast_dataclass
from rebalance_lab.protocol_v2.common.topic_image import TopicPartition
from rebalance_lab.protocol_v2.coordinator.fencing import Refused
from rebalance_lab.protocol_v2.coordinator.state.states import ACTIONS, NEXT, Action, Finding, MemberState, Situation
from rebalance_lab.protocol_v2.coordinator.state.values import NOTHING, CurrentAssignment, Held, Target


@fast_dataclass(kw_only=True)
class Circumstances:
    """Hold all that one step depends on besides the member itself."""

    assignment_epoch: int
    target: Target
    partition_epochs: Mapping[TopicPartition, int]
    is_subscribed: Callable[[str], bool]
    """Whether the member wants this topic id now; no member wants a topic that does not exist."""
    wants_anything: Callable[[], bool]
    """Whether it wants any topic that exists."""
    owned: Collection[TopicPartition] | None
    """None: it does not say, so it may still own everything."""
    subscription_changed: bool = False


def next_assignment(current: CurrentAssignment, at: Circumstances) -> CurrentAssignment:
    if not at.subscription_changed and current.is_reconciled_to(at.assignment_epoch):
        return current
    match ACTIONS[current.state, situation(current, at)]:
        case Action.NEXT:
            return towards_target(current, at)
        case Action.STRIP:
            return stripped(current, at)
        case Action.FENCE:
            raise Refused(Error.FENCED_MEMBER_EPOCH, "The member is in an unknown state and must give everything up.")
        case Action.STAY:
            return current


def situation(current: CurrentAssignment, at: Circumstances) -> Situation:
    match current.state:
        case MemberState.STABLE:
            if current.member_epoch != at.assignment_epoch:
                return Situation.BEHIND
            return Situation.SUBSCRIPTION_CHANGED if at.subscription_changed else Situation.ARRIVED
        case MemberState.UNREVOKED_PARTITIONS:
            if not still_owns(current.revoking, at.owned):
                return Situation.RELEASED
            return Situation.STILL_OWNS_AND_CHANGED if at.subscription_changed else Situation.STILL_OWNS
        case MemberState.UNRELEASED_PARTITIONS:
            return Situation.ANY
        case MemberState.UNKNOWN:
            return Situation.OWNS_NOTHING if at.owned is not None and not at.owned else Situation.OWNS_SOMETHING


def still_owns(partitions: Collection[TopicPartition], owned: Collection[TopicPartition] | None) -> bool:
    """Tell whether the member still owns any of them. A request that says nothing means that it owns all. Revocation
    has to be said.
    """
    return owned is None or any(partition in partitions for partition in owned)


def towards_target(current: CurrentAssignment, at: Circumstances) -> CurrentAssignment:
    target = at.target.partitions
    unwanted = [topic_id for topic_id in {topic_id for topic_id, _ in target} if not at.is_subscribed(topic_id)]
    if unwanted:
        target = frozenset(partition for partition in target if partition[0] not in unwanted)
    keep, revoke = current.assigned, NOTHING
    if not keep.keys() <= target:
        keep = {partition: epoch for partition, epoch in current.assigned.items() if partition in target}
        revoke = {partition: epoch for partition, epoch in current.assigned.items() if partition not in target}
    free: list[TopicPartition] = []
    if len(keep) < len(target):
        free = [
            partition
            for partition in target
            if partition not in keep and (partition not in at.partition_epochs or partition in current.revoking)
        ]
    unreleased = len(keep) + len(free) < len(target)
    must_revoke = bool(revoke) and still_owns(revoke, at.owned)
    outcome = NEXT[Finding(must_revoke, bool(free), unreleased)]
    epoch = at.assignment_epoch
    if not outcome.advances and current.state is not MemberState.UNKNOWN:
        epoch = current.member_epoch
    if outcome.state is MemberState.UNREVOKED_PARTITIONS:
        return moved(current, epoch, outcome.state, keep, revoke)
    if free:
        keep = {**keep, **dict.fromkeys(sorted(free), at.assignment_epoch)}
    return moved(current, epoch, outcome.state, keep, NOTHING)


def stripped(current: CurrentAssignment, at: Circumstances) -> CurrentAssignment:
    """Give up at once what a changed subscription no longer wants, while there is no new target yet."""
    drop = {partition: epoch for partition, epoch in current.assigned.items() if not at.is_subscribed(partition[0])}
    wants_nothing = not current.revoking and not at.wants_anything()
    if not drop and not wants_nothing:
        return current
    keep = {partition: epoch for partition, epoch in current.assigned.items() if partition not in drop}
    revoking = {**current.revoking, **drop}
    if revoking and still_owns(revoking, at.owned):
        return moved(current, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, keep, revoking)
    return moved(current, current.member_epoch, current.state, keep, current.revoking)


def moved(
    current: CurrentAssignment, epoch: int, state: MemberState, assigned: Held, revoking: Held
) -> CurrentAssignment:
    """Move the member. The previous epoch follows even where the epoch stays, so only one lost answer is forgiven."""
    return CurrentAssignment(
        member_epoch=epoch,
        previous_member_epoch=current.member_epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
    )


def waits_for_others(current: CurrentAssignment, target: Target, epochs: Mapping[TopicPartition, int]) -> bool:
    """Tell whether another member holds any partition that this member still lacks."""
    return any(partition in epochs for partition in target.partitions if partition not in current.assigned)

"""Compute the assignment as the leader does between JoinGroup and SyncGroup, from the subscriptions of all members.

Given      the answer to the leader's JoinGroup, and metadata of all topics that the group subscribes to
Returns    assignments as bytes; none at all after a static leader's restart, whose group keeps what it has (KIP-814)
Claims     what a member owns is in its subscription, except for `sticky`, whose members tell it in user data
User data  a custom assignor sees each member's user data in the group, and may send its own with each assignment
Custom     cooperative assignors other than Kafka's own are checked: a partition that a member still claims must not
           be given to another member
Reference  ConsumerCoordinator.onLeaderElected in Apache Kafka 4.3.1
Start at   assignments_of
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.classic.sticky.user_data import decode_cooperative, decode_sticky
from rebalance_lab.assignors.interface import Assignor, RebalanceProtocol
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.strategies import run_assignor
from rebalance_lab.assignors.user_code import keep_error
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Assignment,
    Subscription,
    decode_subscription,
    encode_assignment,
)
from rebalance_lab.protocol_v1.common.messages import JoinGroupResponseMember, SyncGroupRequestAssignment

COOPERATIVE_STICKY = "cooperative-sticky"


def subscriptions_of(members: Sequence[JoinGroupResponseMember]) -> dict[str, Subscription]:
    return {member.member_id: read(member.metadata) for member in members}


@lru_cache(maxsize=1 << 10)
def read(metadata: bytes) -> Subscription:
    """Decode a subscription, and remember it: a leader first looks at all topics, and later assigns with their
    metadata. Where all members revoke before they join, nearly all subscriptions are the same bytes.
    """
    return decode_subscription(metadata)


def topics_of(subscriptions: Mapping[str, Subscription]) -> frozenset[str]:
    return frozenset(topic for subscription in subscriptions.values() for topic in subscription.topics)


def assignments_of(
    assignor: Assignor,
    protocol: RebalanceProtocol,
    members: Sequence[JoinGroupResponseMember],
    cluster: Mapping[str, Topic],
) -> tuple[SyncGroupRequestAssignment, ...]:
    subscriptions = subscriptions_of(members)
    instances = {member.member_id: member.group_instance_id for member in members}
    group = Group(
        {name: cluster[name] for name in sorted(topics_of(subscriptions)) if name in cluster},
        {
            member_id: as_member(assignor.name, subscription, instances[member_id])
            for member_id, subscription in subscriptions.items()
        },
    )
    answer = run_assignor(assignor, group)
    remember = getattr(assignor, "remember_generations", None)
    if remember is not None:
        remember(group)
    if protocol is RebalanceProtocol.COOPERATIVE and assignor.name != COOPERATIVE_STICKY:
        check_cooperative(subscriptions, answer)
    # A member that a custom assignor leaves out gets an empty entry: without one it could not read its assignment.
    shares = {**answer, **{member_id: {} for member_id in group.members if member_id not in answer}}
    user_data = getattr(assignor, "assignment_user_data", None)
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=encoded(share, None if user_data is None else sent_along(assignor, user_data, member_id, share)),
        )
        for member_id, share in shares.items()
    )


def sent_along(
    assignor: Assignor,
    user_data: Callable[[str, Mapping[str, Sequence[int]]], bytes | None],
    member_id: str,
    share: Mapping[str, Sequence[int]],
) -> bytes | None:
    try:
        data = user_data(member_id, share)
    except Exception as error:  # a custom hook may raise anything, as its `assign` may
        keep_error(error)
        raise AssignorError(f"{assignor.name}: assignment_user_data raised {type(error).__name__}: {error}") from error
    if data is not None and not isinstance(data, bytes):
        raise AssignorError(f"{assignor.name}: assignment_user_data returned a {type(data).__name__}, not bytes")
    return data


def encoded(share: Mapping[str, Sequence[int]], user_data: bytes | None = None) -> bytes:
    partitions = {topic: tuple(numbers) for topic, numbers in share.items() if numbers}
    return encode_assignment(Assignment(assigned_partitions=partitions, user_data=user_data))


def as_member(assignor_name: str, subscription: Subscription, instance_id: str | None) -> Member:
    owned: Mapping[str, Sequence[int]] = dict(subscription.owned_partitions)  # custom code may change what it is given
    claim_generation = None
    if assignor_name == "sticky":
        told = decode_sticky(subscription.user_data)
        owned, claim_generation = told.owned, -1 if told.generation is None else told.generation
    elif assignor_name == COOPERATIVE_STICKY:
        claim_generation = decode_cooperative(subscription.user_data)
    return Member(
        topics=subscription.topics,
        owned=owned,
        generation=subscription.generation_id if subscription.generation_id >= 0 else None,
        instance_id=instance_id,
        rack=subscription.rack_id,
        claim_generation=claim_generation,
        user_data=subscription.user_data,
    )


def check_cooperative(
    subscriptions: Mapping[str, Subscription], answer: Mapping[str, Mapping[str, Sequence[int]]]
) -> None:
    added: set[tuple[str, int]] = set()
    revoked: set[tuple[str, int]] = set()
    for member_id, share in answer.items():
        subscription = subscriptions.get(member_id)
        claimed = flat(subscription.owned_partitions) if subscription is not None else set()
        given = flat(share)
        added |= given - claimed
        revoked |= claimed - given
    stolen = sorted(added & revoked)
    if stolen:
        raise AssignorError(
            f"Assignor supporting the COOPERATIVE protocol violates its requirements: {stolen} are given to one "
            "member while another still owns them",
            java_exception="IllegalStateException",
        )


def flat(share: Mapping[str, Sequence[int]]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic, partitions in share.items() for partition in partitions}

"""Join the group in a loop: prepare, JoinGroup, SyncGroup, complete, until no rejoin is needed.

Loop       runs inside poll() and never waits there: the next answer continues an exchange that is in flight
Failures   22, 25, 27 and 79 start over at once; other retriable ones after a back-off; the rest is raised.
           Without a reset in between there is no second prepare, so no callback runs twice
Complete   runs when poll() finds the finished exchange: revoke (cooperative), own, assign, and rejoin if it revoked
Reference  AbstractCoordinator.joinGroupIfNeeded, ConsumerCoordinator.onJoinComplete in Apache Kafka 4.3.1
Start at   join_loop
"""

from __future__ import annotations

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.interface import RebalanceProtocol, Received
from rebalance_lab.assignors.user_code import keep_error
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from rebalance_lab.protocol_v1.common.errors import NONE, Error, MalformedBytes
from rebalance_lab.protocol_v1.common.member_effects import (
    Callback,
    Cause,
    RejoinNeeded,
    RequestMetadata,
    TopicPartition,
)
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    Protocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from rebalance_lab.protocol_v1.member.connection import coordinator_ready, coordinator_unknown, fail_join, join_failure
from rebalance_lab.protocol_v1.member.error_reactions import Reaction, reaction
from rebalance_lab.protocol_v1.member.heartbeat import RESETS, restart_deadlines
from rebalance_lab.protocol_v1.member.leader import assignments_of, flat, subscriptions_of, topics_of
from rebalance_lab.protocol_v1.member.memory import Generation, Join, JoinFailure, MemberTurn, Sent
from rebalance_lab.protocol_v1.member.prepare import prepare
from rebalance_lab.protocol_v1.member.states import MemberEvent, MemberState


def rejoin_needed_or_pending(turn: MemberTurn) -> bool:
    memory, subscribed = turn.memory, turn.memory.subscribed
    if subscribed.assigned_from is not None and not subscribed.assigned_from.matches(subscribed.snapshot):
        if not memory.rejoin_needed:
            turn.request_rejoin("cached metadata has changed", Cause.NEW_PARTITIONS)
        return True
    if subscribed.joined is not None and subscribed.joined != subscribed.topics:
        if not memory.rejoin_needed:
            turn.request_rejoin("subscription has changed", Cause.SUBSCRIPTION)
        return True
    return memory.rejoin_needed or memory.join is not None


def join_loop(turn: MemberTurn) -> None:
    """Go on until something is awaited, raised, or called back."""
    while join_step(turn):
        pass


def join_step(turn: MemberTurn) -> bool:
    """Take one step, and return whether there is more to be done at once."""
    memory = turn.memory
    if not coordinator_ready(turn) or (memory.join is None and turn.now_ms < memory.retry_at_ms):
        return False
    if memory.needs_prepare and not prepare(turn):
        return False
    join = memory.join or send_join(turn)
    if join is None:
        return False
    if join.failure is not None:
        return start_over(turn, join.failure)
    if join.assignment is None:
        return False
    if memory.generation.is_reset or memory.state is not MemberState.STABLE:
        turn.reset(MemberEvent.FULL_RESET, "rebalance failed since the generation was reset by a heartbeat")
        memory.join = None
        return True
    return complete(turn, join.assignment)


def start_over(turn: MemberTurn, failure: JoinFailure) -> bool:
    """Start the loop over after a failure, and return whether it goes on at once."""
    memory = turn.memory
    memory.join = None
    if failure.error is not Error.MEMBER_ID_REQUIRED:
        turn.request_rejoin(f"rebalance failed due to {failure.name}", Cause.FAILED)
    if failure.retriable:
        memory.retry_at_ms = turn.now_ms + turn.config.pause_ms
    elif not failure.at_once:
        turn.throw(failure.error, failure.message)
    return failure.at_once


# JoinGroup


def send_join(turn: MemberTurn) -> Join | None:
    """Send JoinGroup, or return None where an assignor cannot say what to send along: poll() raises that, and the next
    one tries again.
    """
    memory, config = turn.memory, turn.config
    if not memory.rejoin_reason:
        turn.tell(RejoinNeeded(cause=Cause.JOIN, reason=""))  # the first one; every later JoinGroup has a reason
    turn.move(MemberEvent.JOIN_SENT)
    memory.subscribed.joined = memory.subscribed.topics
    try:
        offered = protocols(turn)
    except Exception as error:  # noqa: BLE001 - a stranger's hook may raise anything
        keep_error(error)
        turn.throw(None, f"subscription_user_data: {error}")
        return None
    memory.join = join = Join()
    request = JoinGroupRequest(
        group_id=config.group_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms,
        member_id=memory.generation.member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=offered,
        reason=memory.rejoin_reason,
        **turn.header(),
    )
    turn.send(request, config.join_group_timeout_ms)
    return join


def protocols(turn: MemberTurn) -> tuple[Protocol, ...]:
    memory = turn.memory
    topics, owned = memory.subscribed.topics, memory.owned_by_topic

    def entry(name: str) -> Protocol:
        user_data = getattr(memory.assignors[name], "subscription_user_data", None)
        subscription = Subscription(
            topics=tuple(sorted(topics)),
            user_data=None if user_data is None else user_data(topics),
            owned_partitions=owned,
            generation_id=memory.generation.generation_id,
            rack_id=turn.config.client_rack,
        )
        return Protocol(name=name, metadata=encode_subscription(subscription))

    return tuple(entry(name) for name in memory.assignors)


def on_join(turn: MemberTurn, sent: Sent, response: JoinGroupResponse) -> None:
    memory, error = turn.memory, response.error_code
    if error is not NONE:
        join_refused(turn, sent, response)
    elif response.protocol_type not in (None, PROTOCOL_TYPE):
        fail_join(turn, join_failure(Error.INCONSISTENT_GROUP_PROTOCOL))
    elif memory.state is not MemberState.PREPARING_REBALANCE:
        # A heartbeat's or commit's answer has reset us meanwhile: what we joined is no longer ours.
        fail_join(turn, JoinFailure(None, "UnjoinedGroupException", "left meanwhile", retriable=True))
    else:
        turn.move(MemberEvent.JOIN_ANSWERED)
        memory.generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        restart_deadlines(turn)
        if response.leader == response.member_id:
            lead(turn, response)
        else:
            send_sync(turn)


def join_refused(turn: MemberTurn, sent: Sent, response: JoinGroupResponse) -> None:
    memory, error = turn.memory, response.error_code
    how = reaction(JoinGroupRequest, error)
    if how is Reaction.FULL_RESET and memory.generation == sent.generation:
        turn.reset_on_error(MemberEvent.FULL_RESET, error, "JOIN_GROUP")
    elif how is Reaction.ADOPT_ID:
        memory.generation = Generation(member_id=response.member_id)
        turn.request_rejoin(f"need to re-join with the given member-id: {response.member_id}", Cause.MEMBER_ID)
    exchange_failed(turn, how, error)


def exchange_failed(turn: MemberTurn, how: Reaction, error: Error) -> None:
    if how is Reaction.COORDINATOR_UNKNOWN:
        coordinator_unknown(turn, f"error response {error.name}")
    retriable = how in (Reaction.COORDINATOR_UNKNOWN, Reaction.RETRY)
    at_once = how in (Reaction.FULL_RESET, Reaction.SOFT_RESET, Reaction.REJOIN, Reaction.ADOPT_ID)
    fail_join(turn, join_failure(error, at_once=at_once, retriable=retriable))


# SyncGroup


def lead(turn: MemberTurn, response: JoinGroupResponse) -> None:
    """Watch the topics of all members; metadata of topics that this member does not subscribe to is fetched first."""
    subscribed = turn.memory.subscribed
    try:
        subscribed.group = topics_of(subscriptions_of(response.members))
    except MalformedBytes as error:
        fail_join(turn, JoinFailure(None, "SchemaException", str(error)))
        return
    turn.memory.electing = response
    if subscribed.cluster is None or not subscribed.topics >= subscribed.group:
        turn.tell(RequestMetadata())
    else:
        assign(turn)


def assign(turn: MemberTurn) -> None:
    memory, subscribed = turn.memory, turn.memory.subscribed
    response, memory.electing = memory.electing, None
    assert response is not None
    if memory.state is not MemberState.COMPLETING_REBALANCE:
        fail_join(turn, join_failure(Error.ILLEGAL_GENERATION, at_once=True))
        return
    assert response.protocol_name is not None
    assert subscribed.cluster is not None
    subscribed.look()
    memory.is_leader = True
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()
    if not response.skip_assignment:
        try:
            assignor = memory.assignors[response.protocol_name]
            assignments = assignments_of(assignor, memory.protocol, response.members, subscribed.cluster)
        except (AssignorError, MalformedBytes) as error:
            fail_join(turn, JoinFailure(None, "KafkaException", str(error)))
            return
        except KeyError:
            fail_join(turn, JoinFailure(None, "IllegalStateException", invalid_protocol(response.protocol_name)))
            return
    subscribed.assigned_from = subscribed.snapshot
    send_sync(turn, assignments)


def invalid_protocol(name: str | None) -> str:
    return f"Coordinator selected invalid assignment protocol: {name}"


def send_sync(turn: MemberTurn, assignments: tuple[SyncGroupRequestAssignment, ...] = ()) -> None:
    memory = turn.memory
    if not memory.coordinator_known:
        fail_join(turn, join_failure(Error.COORDINATOR_NOT_AVAILABLE, retriable=True))
        return
    request = SyncGroupRequest(
        group_id=turn.config.group_id,
        generation_id=memory.generation.generation_id,
        member_id=memory.generation.member_id,
        group_instance_id=turn.config.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=memory.generation.protocol_name,
        assignments=assignments,
        **turn.header(),
    )
    turn.send(request)


def on_sync(turn: MemberTurn, sent: Sent, response: SyncGroupResponse) -> None:
    memory, error = turn.memory, response.error_code
    if error is not NONE:
        how = reaction(SyncGroupRequest, error)
        if how in RESETS and memory.generation == sent.generation:
            turn.reset_on_error(RESETS[how], error, "SYNC_GROUP")
        exchange_failed(turn, how, error)
    elif response.protocol_type not in (None, PROTOCOL_TYPE):
        fail_join(turn, join_failure(Error.INCONSISTENT_GROUP_PROTOCOL))
    elif memory.state is not MemberState.COMPLETING_REBALANCE:
        fail_join(turn, join_failure(Error.ILLEGAL_GENERATION, at_once=True))
    elif response.protocol_name not in (None, memory.generation.protocol_name):
        fail_join(turn, join_failure(Error.INCONSISTENT_GROUP_PROTOCOL))
    else:
        turn.move(MemberEvent.SYNC_ANSWERED)
        memory.rejoin_needed, memory.rejoin_reason = False, ""
        memory.join = Join(assignment=response.assignment)


# Complete


def complete(turn: MemberTurn, data: bytes) -> bool:
    """Finish the exchange, and return whether the loop goes on at once; otherwise a callback runs, or an error was
    raised.
    """
    memory, subscribed = turn.memory, turn.memory.subscribed
    if not memory.is_leader:
        subscribed.assigned_from = None
    name = memory.generation.protocol_name
    if name not in memory.assignors:
        turn.throw(None, invalid_protocol(name))
        return False
    try:
        if len(data) < 2:
            raise MalformedBytes(f"an assignment of {len(data)} bytes: the leader gave this member none")
        received = decode_assignment(data)
    except MalformedBytes as error:
        turn.throw(None, str(error))
        return False
    assigned = frozenset(flat(received.assigned_partitions))
    if not all(subscribed.accepts(topic) for topic, given in received.assigned_partitions.items() if given):
        turn.request_rejoin("received assignment does not match the current subscription", Cause.FOREIGN_ASSIGNMENT)
        exchange_over(turn)
        return True
    gone = memory.owned - assigned
    if memory.protocol is RebalanceProtocol.COOPERATIVE and gone:

        def revoked(turn: MemberTurn, error: str | None) -> None:
            turn.request_rejoin("need to revoke partitions and re-join", Cause.REVOKED)
            take_over(turn, assigned, received.user_data, error)

        turn.call(Callback.REVOKED, gone, revoked)
    else:
        take_over(turn, assigned, received.user_data, None)
    return False


def take_over(
    turn: MemberTurn, assigned: frozenset[TopicPartition], user_data: bytes | None, error: str | None
) -> None:
    memory, subscribed = turn.memory, turn.memory.subscribed
    if subscribed.pattern is not None:
        # Topics that the leader saw before we did: adopted, so that they do not look like a change of subscription.
        unseen = frozenset(topic for topic, _ in assigned) - (subscribed.joined or frozenset())
        if unseen:
            subscribed.topics |= unseen
            subscribed.joined = (subscribed.joined or frozenset()) | unseen
    memory.auto_commit_at_ms = turn.now_ms + turn.config.auto_commit_interval_ms
    added = assigned - memory.owned
    turn.own(assigned)
    error = error or tell_assignor(turn, Received(dict(memory.owned_by_topic), user_data))

    def done(turn: MemberTurn, later: str | None) -> None:
        if error or later:
            # The exchange is kept: the next poll() completes it again, with nothing left to add.
            turn.throw(None, f"User rebalance callback throws an error: {error or later}")
        else:
            exchange_over(turn)

    turn.call(Callback.ASSIGNED, added, done)


def tell_assignor(turn: MemberTurn, received: Received) -> str | None:
    generation = turn.memory.generation
    hook = getattr(turn.memory.assignors.get(generation.protocol_name or ""), "on_assignment", None)
    if hook is None:
        return None
    try:
        hook(received, generation.generation_id)
    except Exception as error:  # noqa: BLE001 - a stranger's hook may raise anything; Kafka treats it like a callback's
        keep_error(error)
        return f"on_assignment: {error}"
    return None


def exchange_over(turn: MemberTurn) -> None:
    turn.memory.join = None
    turn.memory.needs_prepare = True

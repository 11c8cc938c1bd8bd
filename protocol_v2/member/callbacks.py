"""Queue callbacks and exceptions for the application's thread, until poll() or unsubscribe() takes them.

Batch      the thread takes all that is in the queue and works it off; then it raises the first error among it
Why        the member works in the background, but the application is only ever called on its own thread
Reference  AsyncKafkaConsumer.processBackgroundEvents in Apache Kafka 4.3.1
Start at   serve
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalance_lab.protocol_v1.common.errors import Error, InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import Call, Callback, TopicPartition
from rebalance_lab.protocol_v2.member.memory import MemberTurn, Queued, QueuedCall, QueuedError

FORGIVEN_BY_UNSUBSCRIBE = (Error.GROUP_AUTHORIZATION_FAILED, Error.TOPIC_AUTHORIZATION_FAILED)


def serve(turn: MemberTurn) -> None:
    memory = turn.memory
    while memory.serving and (memory.batch or memory.queue or memory.thrown):
        if not memory.batch and memory.thrown is not None:
            thrown, memory.thrown = memory.thrown, None
            turn.throw(*thrown)
        elif not memory.batch:
            memory.batch, memory.queue = memory.queue, []
        else:
            work_off(turn, memory.batch.pop(0))
    idle = not memory.leaving and not memory.batch and not memory.queue and memory.then is None
    memory.unsubscribing = memory.unsubscribing and not idle


def work_off(turn: MemberTurn, event: Queued) -> None:
    memory = turn.memory
    if isinstance(event, QueuedCall):
        if event.prepare is None or event.prepare(turn):
            call(turn, event.callback, event.partitions, event.then)
    elif not (memory.unsubscribing and event.error in FORGIVEN_BY_UNSUBSCRIBE):
        memory.thrown = memory.thrown or event


def call(
    turn: MemberTurn,
    callback: Callback,
    partitions: Iterable[TopicPartition],
    then: Callable[[MemberTurn, str | None], None],
) -> None:
    """Call the application. max.poll.interval goes on counting inside a callback, and heartbeats go on too."""
    turn.memory.then = then
    turn.memory.poll_at_ms = turn.now_ms + turn.config.max_poll_interval_ms
    turn.tell(Call(callback, tuple(sorted(partitions))))


def called(turn: MemberTurn, error: str | None) -> None:
    memory = turn.memory
    if memory.then is None:
        raise InvariantBroken("no callback runs")
    then, memory.then = memory.then, None
    if error is not None and memory.closing is None:
        memory.thrown = memory.thrown or QueuedError(None, f"User rebalance callback throws an error: {error}")
    then(turn, error)

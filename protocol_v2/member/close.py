"""Close a member on the application's thread within a time limit: commit, then the callback, then the leave.

Callback   onPartitionsRevoked if the member ever had an epoch, even if it was fenced since; else onPartitionsLost
Background heartbeats go on until the leave; the member stops looking for the coordinator once the commit is over
Reference  AsyncKafkaConsumer.close in Apache Kafka 4.3.1
Start at   close
"""

from __future__ import annotations

from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import Callback, Close, Closed
from rebalance_lab.protocol_v2.member.callbacks import call
from rebalance_lab.protocol_v2.member.commits import CLOSE, commit, note_positions
from rebalance_lab.protocol_v2.member.membership import leave_group
from rebalance_lab.protocol_v2.member.memory import Closing, MemberTurn


def close(turn: MemberTurn, event: Close) -> None:
    memory = turn.memory
    if memory.then is not None:
        raise InvariantBroken("closed from inside a callback")
    memory.polling = memory.unsubscribing = False
    note_positions(memory, event.positions)
    closing = memory.closing = Closing(event.option, turn.now_ms + event.timeout_ms)
    if turn.config.enable_auto_commit:
        commit(turn, memory.positions, CLOSE, closing.deadline_ms, lambda turn, outcome: release(turn))
    else:
        release(turn)


def release(turn: MemberTurn) -> None:
    """Release all that is owned in one callback; what waits in the queue is not called any more."""
    memory = turn.memory
    memory.queue.clear()
    memory.batch.clear()
    if memory.owned:
        memory.pending_revocation = memory.owned
        call(turn, Callback.REVOKED if memory.last_epoch > 0 else Callback.LOST, memory.owned, released)
    else:
        released(turn, None)


def released(turn: MemberTurn, error: str | None) -> None:
    closing = turn.memory.closing
    assert closing is not None
    closing.left, closing.error = True, error
    leave_group(turn, callbacks=False)


def closed_if_done(turn: MemberTurn) -> None:
    memory = turn.memory
    closing = memory.closing
    if closing is None or not closing.left:
        return
    awaited = memory.leaving or any(sent.commit is not None for sent in memory.in_flight.values())
    if awaited and turn.now_ms < closing.deadline_ms:
        return
    memory.closed = True
    memory.in_flight.clear()
    if closing.error is not None:
        turn.throw(None, f"User rebalance callback throws an error: {closing.error}")
    turn.tell(Closed())

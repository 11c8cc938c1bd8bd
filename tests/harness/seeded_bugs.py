# ruff: noqa: E501 - a bug is a line
"""Protocol bugs made by hand, one at a time, each of which random scenarios must show by breaking an invariant.

A bug is an edit of one place in a module's source. The functions that it changes are given their new code in place, so
whoever imported them sees it, and their own back afterwards. A bug counts as found only if an invariant of
harness/measure/invariants.py breaks (a crash of a machine does not count), and if the very same run without it breaks none.

    python -m tests.harness.seeded_bugs [COST_DESCRIPTIONS OF A BUG ...]
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import getsource
from random import Random
from time import process_time
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rebalance_lab.harness.scenario.model import RollingRestart, Scenario
from tests.harness.random_scenarios import CRASH, broken, random_scenario

SEED = 8
MOST_RUNS = 60
EAGER = ("classic/range", "classic/roundrobin", "classic/sticky")
COOPERATIVE = ("classic/cooperative-sticky",)
CLASSIC = (*EAGER[:1], *COOPERATIVE)
STATIC = ("classic/range+static", "classic/cooperative-sticky+static")
CONSUMER = ("consumer/uniform", "consumer/range")
BOTH = ("classic/range", "consumer/uniform", "classic/cooperative-sticky")


@dataclass(frozen=True, slots=True)
class Bug:
    what: str
    module: str
    old: str
    new: str
    strategies: tuple[str, ...]
    """Those that can show it, in turn."""
    migrates: bool = False
    """Only scenarios that migrate can show it: runs are those."""


@dataclass(frozen=True, slots=True)
class Found:
    invariant: str
    runs: int
    strategy: str
    message: str


# fmt: off
BUGS: dict[str, list[Bug]] = {
    "classic coordinator": [
        Bug("heartbeats are answered NONE during a rebalance", "rebalance_lab.protocol_v1.coordinator.heartbeat", "    rebalancing = group.state is State.PREPARING_REBALANCE\n", "    rebalancing = False\n", CLASSIC),
        Bug("sessions have no timer", "rebalance_lab.protocol_v1.coordinator.state.shard", "        self.set_timer(session_key(group, member.member_id), delay_ms)\n", "", CLASSIC),
        Bug("a loaded group has no sessions", "rebalance_lab.protocol_v1.coordinator.coordinator", "                turn.restart_session(group, member)\n            if len", "                pass\n            if len", CLASSIC),
        Bug("an expired session causes no rebalance", "rebalance_lab.protocol_v1.coordinator.heartbeat", "            prepare_rebalance(turn, group, Event.SESSION_EXPIRED, member_id=member_id)\n", "", CLASSIC),
        Bug("a rejoin never causes a rebalance", "rebalance_lab.protocol_v1.coordinator.join", "    if group.state is State.STABLE and unchanged and not leads:\n", "    if group.state is State.STABLE:\n", CLASSIC),
        Bug("a fetch does not see commits", "rebalance_lab.protocol_v1.coordinator.offsets", "    offsets = turn.shard.image.offsets.get(asked.group_id, {})\n", "    offsets = {}\n", CLASSIC),
        Bug("a leave is answered and forgotten", "rebalance_lab.protocol_v1.coordinator.leave", "if gone and group.state is not State.EMPTY:", "if False:", CLASSIC),
        Bug("old generations may commit", "rebalance_lab.protocol_v1.coordinator.offsets", "    if generation_id != group.generation_id:\n        return Error.ILLEGAL_GENERATION\n", "", STATIC),
        Bug("heartbeats of old generations are answered NONE", "rebalance_lab.protocol_v1.coordinator.heartbeat", "        return Error.ILLEGAL_GENERATION\n", "        return NONE\n", STATIC),
        Bug("sync answers the generation before", "rebalance_lab.protocol_v1.coordinator.sync", "        member.assignment = assignments.get(member.member_id, b\"\")\n        answer_sync(turn, group, member, stored_assignment(group, member))\n", "        answer = stored_assignment(group, member) if member.assignment else None\n        member.assignment = assignments.get(member.member_id, b\"\")\n        answer_sync(turn, group, member, answer or stored_assignment(group, member))\n", CLASSIC),
        Bug("the assignment goes to the wrong members", "rebalance_lab.protocol_v1.coordinator.sync", "    given = {entry.member_id: entry.assignment for entry in request.assignments}\n", "    given = dict(zip(sorted(entry.member_id for entry in request.assignments), [entry.assignment for entry in sorted(request.assignments, key=lambda entry: entry.member_id)][::-1]))\n", CLASSIC),
        Bug("sessions last twice as long", "rebalance_lab.protocol_v1.coordinator.state.shard", "member.session_timeout_ms if timeout_ms is None else timeout_ms", "2 * member.session_timeout_ms if timeout_ms is None else timeout_ms", CLASSIC),
        Bug("heartbeats do not put the session off", "rebalance_lab.protocol_v1.coordinator.heartbeat", "    turn.restart_session(group, group.members[request.member_id])\n", "", CLASSIC),
        Bug("a rebalance waits for nobody", "rebalance_lab.protocol_v1.coordinator.rebalance", "turn.set_timer(join_key(group), group.rebalance_timeout_ms)\n\n\ndef try", "turn.set_timer(join_key(group), 10)\n\n\ndef try", CLASSIC),
        Bug("a rebalance never times out", "rebalance_lab.protocol_v1.coordinator.rebalance", "    else:\n        turn.set_timer(join_key(group), group.rebalance_timeout_ms)\n", "    else:\n        pass\n", CLASSIC),
        Bug("a classic replay loses the last record", "rebalance_lab.protocol_v1.coordinator.state.records", "    for record in records:\n        apply(image, record)\n    return image", "    for record in list(records)[:-1]:\n        apply(image, record)\n    return image", CLASSIC),
        Bug("the generation does not go up", "rebalance_lab.protocol_v1.coordinator.rebalance", "    group.generation_id += 1\n", "    group.generation_id += not group.generation_id\n", CLASSIC),
        Bug("who leaves is answered, and stays", "rebalance_lab.protocol_v1.coordinator.leave", "    remove_member(turn, group, member_id)\n    return Error.NONE\n", "    return Error.NONE\n", CLASSIC),
        Bug("new members wait no longer than a session", "rebalance_lab.protocol_v1.coordinator.join", "turn.restart_session(group, member, turn.config.new_member_join_timeout_ms)", "turn.restart_session(group, member)", CLASSIC),
        Bug("sessions of those who wait end", "rebalance_lab.protocol_v1.coordinator.heartbeat", "        if waits_for_us and not member.is_new:\n            return", "        if False:\n            return", CLASSIC),
        Bug("nobody commits before it rejoins", "rebalance_lab.protocol_v1.coordinator.offsets", "    return Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING_REBALANCE else Error.NONE\n", "    return Error.REBALANCE_IN_PROGRESS if group.state is not State.STABLE else Error.NONE\n", CLASSIC),
        Bug("commits are answered, and not in the log", "rebalance_lab.protocol_v1.coordinator.offsets", "        turn.append(tuple(records), written)\n", "        written(turn, NONE)\n", CLASSIC),
        Bug("loaded members have no instance ids", "rebalance_lab.protocol_v1.coordinator.state.records", "            group_instance_id=member.group_instance_id,\n            client_id=member.client_id,\n            client_host=member.client_host,\n            session", "            group_instance_id=None,\n            client_id=member.client_id,\n            client_host=member.client_host,\n            session", STATIC),
        Bug("who waits for the leader is forgotten when a rebalance begins", "rebalance_lab.protocol_v1.coordinator.rebalance", "        reset_assignments(turn, group, Error.REBALANCE_IN_PROGRESS)\n    group.pending", "        pass\n    group.pending", CLASSIC),
        Bug("a session's end does not end the join phase", "rebalance_lab.protocol_v1.coordinator.heartbeat", "    if group.state is State.PREPARING_REBALANCE and group.all_joined:\n        complete_join(turn, group)\n", "    pass\n", CLASSIC),
        Bug("a leave does not end the join phase", "rebalance_lab.protocol_v1.coordinator.rebalance", "        try_complete_join(turn, group)\n    else", "        event is not Event.MEMBER_LEFT and try_complete_join(turn, group)\n    else", CLASSIC),
    ],
    "classic member and assignor": [
        Bug("no follow-up after a cooperative revocation", "rebalance_lab.protocol_v1.member.join", '            turn.request_rejoin("need to revoke partitions and re-join", Cause.REVOKED)\n', "", COOPERATIVE),
        Bug("eager members keep what they own", "rebalance_lab.protocol_v1.member.prepare", "        turn.own(turn.memory.owned - partitions)\n", "", EAGER),
        Bug("cooperative members claim nothing", "rebalance_lab.protocol_v1.member.join", "owned_partitions=owned,", "owned_partitions={},", COOPERATIVE),
        Bug("a classic member is deaf to REBALANCE_IN_PROGRESS", "rebalance_lab.protocol_v1.member.heartbeat", "        if memory.state is MemberState.STABLE:\n", "        if False:\n", CLASSIC),
        Bug("leaders do not watch metadata", "rebalance_lab.protocol_v1.member.join", "    subscribed.assigned_from = subscribed.snapshot\n    send_sync", "    send_sync", CLASSIC),
        Bug("a classic member joins without preparing", "rebalance_lab.protocol_v1.member.join", "memory.needs_prepare and not prepare(turn)", "False", CLASSIC),
        Bug("a classic member starts one record after the committed offset", "rebalance_lab.protocol_v1.member.offsets", "found[topic.name, partition.partition_index] = partition.committed_offset\n", "found[topic.name, partition.partition_index] = partition.committed_offset + 1\n", CLASSIC),
        Bug("what breaks with a connection is forgotten", "rebalance_lab.protocol_v1.member.connection", "        request_failed(turn, sent)\n", "        pass\n", CLASSIC),
        Bug("cooperative-sticky does not withhold what changes hands", "rebalance_lab.assignors.classic.cooperative_sticky", "    if not revoked and not contested:\n        return\n", "    return\n", COOPERATIVE),
        Bug("a cooperative member calls lost for revoked", "rebalance_lab.protocol_v1.member.join", "turn.call(Callback.REVOKED, gone, revoked)", "turn.call(Callback.LOST, gone, revoked)", COOPERATIVE),
        Bug("a classic member forgets to call revoked", "rebalance_lab.protocol_v1.member.prepare", "    turn.call(callback, partitions, given_up)\n", "    given_up(turn, None)\n", EAGER),
        Bug("a cooperative member is called with all that is assigned", "rebalance_lab.protocol_v1.member.join", "    added = assigned - memory.owned\n", "    added = assigned\n", COOPERATIVE),
        Bug("a classic member keeps what it has lost", "rebalance_lab.protocol_v1.member.prepare", "        if memory.owned:\n            give_up(turn, Callback.LOST, memory.owned)\n", "        pass\n", CLASSIC),
        Bug("cooperative members revoke all that they have", "rebalance_lab.protocol_v1.member.prepare", "    elif memory.protocol is RebalanceProtocol.EAGER:\n", "    elif True:\n", COOPERATIVE),
        Bug("a member that polls too late does not leave", "rebalance_lab.protocol_v1.member.heartbeat", "            leave(turn, CloseOption.DEFAULT,", "            leave(turn, CloseOption.REMAIN_IN_GROUP,", CLASSIC),
        Bug("a member that is closed does not leave", "rebalance_lab.protocol_v1.member.leave", "            leave(turn, closing.option,", "            leave(turn, CloseOption.REMAIN_IN_GROUP,", CLASSIC),
        Bug("eager members read on while they commit", "rebalance_lab.protocol_v1.member.prepare", "            memory.pending_revocation = memory.owned\n", "            pass\n", EAGER),
        Bug("no commit before a rebalance", "rebalance_lab.protocol_v1.member.prepare", "    if turn.config.enable_auto_commit and memory.prepare_commit is None:\n", "    if False:\n", EAGER),
        Bug("a rebalance does not wait for the commit before it", "rebalance_lab.protocol_v1.member.prepare", "    return commit.outcome is not None\n", "    return True\n", EAGER),
    ],
    "migration": [
        Bug("an upgrade forgets what members have", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "        assigned=dict.fromkeys(partitions, image.generation_id),\n", "        assigned={},\n", EAGER, migrates=True),
        Bug("upgraded members have no session", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "        turn.set_timer((SESSION, group_id, member.member_id), member.session_timeout_ms)\n", "        pass\n", EAGER, migrates=True),
        Bug("classic members are not woken", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "        answer = Error.REBALANCE_IN_PROGRESS\n", "", EAGER, migrates=True),
        Bug("a classic member is given its target at once", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "turn.shard.image, member.current.assigned)", "turn.shard.image, group.target_of(member.member_id).partitions)", EAGER, migrates=True),
        Bug("who leaves as a classic member is answered, and stays", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "        remove_members(turn, group, list(leaving.values()), Event.MEMBER_LEFT, durable)\n", "        turn.when_durable(durable)\n", EAGER, migrates=True),
        Bug("a downgrade goes without a rebalance", "rebalance_lab.harness.hosts.dual_coordinator", "        if rebalance:\n            prepare", "        if False:\n            prepare", EAGER, migrates=True),
        Bug("heartbeats of classic members do not put off their session", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "    turn.restart_session(group.group_id, member.member_id)\n    answer", "    answer", EAGER, migrates=True),
        Bug("classic members are not believed what they own", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "        owned=owned_by_name(turn, member.current, subscription.owned),\n", "        owned=[],\n", COOPERATIVE, migrates=True),
        Bug("an upgraded group starts over at epoch 1", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "    group_id, epoch = image.group_id, image.generation_id\n", "    group_id, epoch = image.group_id, 1\n", EAGER, migrates=True),
        Bug("who waits is not answered when its group is upgraded", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "    turn.from_classic(turn.shard.classic.answer_parked(group_id, Error.REBALANCE_IN_PROGRESS, turn.now_ms))\n", "", EAGER, migrates=True),
        Bug("SyncGroup does not end the wait for it", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "            turn.cancel_timer((SYNC, *key))\n", "", EAGER, migrates=True),
        Bug("JoinGroup does not end the wait for it", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "            turn.cancel_timer((JOIN, *key))\n", "", EAGER, migrates=True),
        Bug("a classic member is told the group epoch", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "        generation_id=current.member_epoch,\n", "        generation_id=step.group_epoch,\n", EAGER, migrates=True),
        Bug("classic members are given a moment to join", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "turn.set_timer((JOIN, *key), max(0, member.metadata.rebalance_timeout_ms))", "turn.set_timer((JOIN, *key), 50)", EAGER, migrates=True),
        Bug("a downgrade starts over at generation 0", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "        generation_id=group.group_epoch,\n", "        generation_id=0,\n", EAGER, migrates=True),
        Bug("a downgrade leaves all but one behind", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "        members=tuple(\n            classic_member(turn, group, member, former.get(member.member_id, member.member_id)) for member in members\n", "        members=tuple(\n            classic_member(turn, group, member, former.get(member.member_id, member.member_id)) for member in members[:1]\n", EAGER, migrates=True),
        Bug("commits of classic members are refused in a consumer group", "rebalance_lab.protocol_v2.coordinator.offsets", "    if member.metadata.classic is None and request.version < MEMBER_EPOCH_SINCE:\n        return Error.UNSUPPORTED_VERSION\n", "    if member.metadata.classic is not None:\n        return Error.ILLEGAL_GENERATION\n", EAGER, migrates=True),
        Bug("an upgrade erases commits", "rebalance_lab.harness.hosts.dual_coordinator", "        group = self.coordinator.shard.groups.pop(group_id)\n", "        group = self.coordinator.shard.groups.pop(group_id)\n        self.coordinator.shard.image.offsets.pop(group_id, None)\n", EAGER, migrates=True),
        Bug("a classic member is not woken when what it waits for is free", "rebalance_lab.protocol_v2.coordinator.classic_members.migration", "        return not waits_for_others(current, group.target_of(member.member_id), group.partition_epochs)\n", "        return False\n", EAGER, migrates=True),
        Bug("an upgrade leaves the first member behind", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "        members = [upgraded_member(turn, image, member) for member in image.members]\n", "        members = [upgraded_member(turn, image, member) for member in image.members[1:]]\n", EAGER, migrates=True),
        Bug("classic members have the session of a consumer", "rebalance_lab.protocol_v2.coordinator.state.shard", "            timeout_ms = classic.session_timeout_ms if classic else self.setting(group_id, SESSION_TIMEOUT)\n", "            timeout_ms = self.setting(group_id, SESSION_TIMEOUT)\n", EAGER, migrates=True),
        Bug("a group with classic members only stays a consumer group", "rebalance_lab.protocol_v2.coordinator.classic_members.conversion", "    return 0 < left == classic_left and may_be_classic(config, left)\n", "    return False\n", EAGER, migrates=True),
    ],
    "KIP-848 coordinator": [
        Bug("silence counts as revocation", "rebalance_lab.protocol_v2.coordinator.assignment.reconciliation", "    return owned is None or any(", "    return owned is not None and any(", CONSUMER),
        Bug("a leave does not bump the group epoch", "rebalance_lab.protocol_v2.coordinator.leave", "    records.append(bumped(turn, group,", "    len(records) and (bumped(turn, group,", CONSUMER),
        Bug("sessions of consumer members have no timer", "rebalance_lab.protocol_v2.coordinator.heartbeat", "turn.set_timer((SESSION, request.group_id, member_id)", "(lambda *_: None)((SESSION, request.group_id, member_id)", CONSUMER),
        Bug("changed topics are not looked at", "rebalance_lab.protocol_v2.coordinator.assignment.subscriptions", "group.deadline = RefreshDeadline(turn.now_ms, group.group_epoch)", "pass", CONSUMER),
        Bug("former members may commit", "rebalance_lab.protocol_v2.coordinator.offsets", "        return Error.UNKNOWN_MEMBER_ID\n    if member.metadata.classic", "        return Error.NONE\n    if member.metadata.classic", CONSUMER),
        Bug("nothing is ever revoked", "rebalance_lab.protocol_v2.coordinator.assignment.reconciliation", "    must_revoke = bool(revoke) and still_owns(revoke, at.owned)\n", "    must_revoke = False\n", CONSUMER),
        Bug("anybody may commit to a KIP-848 group", "rebalance_lab.protocol_v2.coordinator.offsets", "    if epoch < 0 and (group is None or not group.members):\n", "    if epoch < 0:\n", CONSUMER),
        Bug("an epoch goes up before the acknowledgement", "rebalance_lab.protocol_v2.coordinator.assignment.reconciliation", "    if not outcome.advances and current.state is not MemberState.UNKNOWN:\n", "    if False:\n", CONSUMER),
        Bug("a member is told the epoch before", "rebalance_lab.protocol_v2.coordinator.heartbeat", "        member_epoch=current.member_epoch,\n        heartbeat", "        member_epoch=current.previous_member_epoch or current.member_epoch,\n        heartbeat", CONSUMER),
        Bug("KIP-848 sessions are not put off", "rebalance_lab.protocol_v2.coordinator.heartbeat", "    turn.set_timer((SESSION, request.group_id, member_id), turn.setting(request.group_id, SESSION_TIMEOUT))\n", "    request.member_epoch == 0 and turn.set_timer((SESSION, request.group_id, member_id), turn.setting(request.group_id, SESSION_TIMEOUT))\n", CONSUMER),
        Bug("revocation has a deadline of a moment", "rebalance_lab.protocol_v2.coordinator.assignment.progress", "max(0, self.metadata.rebalance_timeout_ms))\n", "50)\n", CONSUMER),
        Bug("who leaves a KIP-848 group is answered, and stays", "rebalance_lab.protocol_v2.coordinator.heartbeat", "        remove_members(turn, group, [member], Event.MEMBER_LEFT, durable)\n", "        durable(turn, Error.NONE)\n", CONSUMER),
        Bug("an instance id is taken from who has not left", "rebalance_lab.protocol_v2.coordinator.static_members", "    if not classic and member.metadata.classic is None and not member.current.stepped_out:\n", "    if False:\n", ("consumer/uniform+static",)),
        Bug("a KIP-848 replay loses the last record", "rebalance_lab.protocol_v2.coordinator.coordinator", "        records = list(records)\n", "        records = list(records)[:-1]\n", CONSUMER),
    ],
    "KIP-848 member": [
        Bug("what is owned is told only in a join", "rebalance_lab.protocol_v2.member.heartbeat", "    if full or memo.owned != owned:\n", "    if full:\n", CONSUMER),
        Bug("a changed subscription is not told", "rebalance_lab.protocol_v2.member.heartbeat", "    if full or memo.names != subscribed.topics:\n", "    if full or memo.names is None:\n", CONSUMER),
        Bug("a consumer member starts one record after the committed offset", "rebalance_lab.protocol_v2.member.offsets", "else one.committed_offset for", "else one.committed_offset + 1 for", CONSUMER),
        Bug("a consumer member gives nothing up", "rebalance_lab.protocol_v2.member.reconciliation", "        turn.own(this.resolved.partitions)\n", "        turn.own(this.resolved.partitions | turn.memory.owned)\n", CONSUMER),
        Bug("a KIP-848 member calls lost for revoked", "rebalance_lab.protocol_v2.member.reconciliation", "QueuedCall(Callback.REVOKED, this.revoked", "QueuedCall(Callback.LOST, this.revoked", CONSUMER),
        Bug("a KIP-848 member does not call revoked", "rebalance_lab.protocol_v2.member.reconciliation", "    if this.revoked:\n        turn.enq", "    if False:\n        turn.enq", CONSUMER),
        Bug("a KIP-848 member calls assigned for all", "rebalance_lab.protocol_v2.member.reconciliation", "QueuedCall(Callback.ASSIGNED, this.added,", "QueuedCall(Callback.ASSIGNED, this.resolved.partitions,", CONSUMER),
        Bug("a fenced KIP-848 member keeps what it had", "rebalance_lab.protocol_v2.member.membership", "    lose(turn, released)\n\n\ndef fail", "    released(turn, None)\n\n\ndef fail", CONSUMER),
        Bug("a KIP-848 member acknowledges before it has revoked", "rebalance_lab.protocol_v2.member.heartbeat", "        return memory.current.partitions\n    this", "        return memory.current.partitions & memory.target.partitions\n    this", CONSUMER),
    ],
    "KIP-848 member, taking its leave": [
        Bug("a KIP-848 member reads on while it commits", "rebalance_lab.protocol_v2.member.reconciliation", "    memory.pending_revocation = revoked\n    commit", "    commit", CONSUMER),
        Bug("a KIP-848 member does not commit before it revokes", "rebalance_lab.protocol_v2.member.commits", "    if not config.enable_auto_commit:\n        then", "    if True:\n        then", CONSUMER),
        Bug("close of a KIP-848 member commits nothing", "rebalance_lab.protocol_v2.member.close", "    if turn.config.enable_auto_commit:\n", "    if False:\n", CONSUMER),
        Bug("a KIP-848 member that is closed does not leave", "rebalance_lab.protocol_v2.member.heartbeat", "    if not memory.coordinator_known or (remains and", "    if True or (remains and", CONSUMER),
        Bug("static KIP-848 members leave for good", "rebalance_lab.protocol_v2.member.membership", "    return LEAVE_EPOCH if leaves or memory.config.group_instance_id is None else STEP_OUT_EPOCH\n", "    return LEAVE_EPOCH\n", ("consumer/uniform+static",)),
        Bug("a KIP-848 member sends heartbeats in poll() only", "rebalance_lab.protocol_v2.member.heartbeat", "    if not memory.coordinator_known or memory.state in NOT_IN_GROUP:\n        return None\n    poll", "    if not memory.coordinator_known or memory.state in NOT_IN_GROUP or not memory.polling:\n        return None\n    poll", CONSUMER),
    ],
    "application and log": [
        Bug("members read from the beginning, not from the committed offset", "rebalance_lab.harness.simulator.fetch_positions", "        self.starts |= starts\n", "        self.starts |= dict.fromkeys(starts, 0)\n", BOTH),
        Bug("a new coordinator does not read offsets", "rebalance_lab.harness.simulator.broker", "self._obey(self.coordinator.load(self.log, self._kernel.now_ms))", "self._obey(self.coordinator.load([one for one in self.log if not isinstance(one, OffsetCommit)], self._kernel.now_ms))", BOTH),
        Bug("close commits what was never processed", "rebalance_lab.harness.simulator.consumer_process", "self.tell(Close(positions=positions))", "self.tell(Close(positions={tp: offset + 9 for tp, offset in positions.items()}))", BOTH),
        Bug("commits are one record ahead of processing", "rebalance_lab.protocol_v1.member.commits", "OffsetCommitRequestPartition(tp[1], offsets[tp],", "OffsetCommitRequestPartition(tp[1], offsets[tp] + 1,", BOTH),
    ],
}
# fmt: on


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    changed = list(changes(bug))
    before = [(function, function.__code__) for function, _ in changed]
    try:
        for function, code in changed:
            function.__code__ = code
        yield
    finally:
        for function, code in before:
            function.__code__ = code


def changes(bug: Bug) -> Iterator[tuple[FunctionType, CodeType]]:
    """Functions of the module, with the code that the edited source gives them."""
    module = importlib.import_module(bug.module)
    source = getsource(module)
    if source.count(bug.old) != 1:
        raise LookupError(f"{bug.what}: its text is {source.count(bug.old)} times in {bug.module}")
    wrong = functions_in(compile(source.replace(bug.old, bug.new), f"{bug.module} (with a bug)", "exec"))
    for name, right in functions_in(compile(source, bug.module, "exec")).items():
        if not same(right, wrong[name]):
            yield function_named(module, name), wrong[name]


def functions_in(code: CodeType) -> dict[str, CodeType]:
    """By qualified name; those inside functions belong to them."""
    found: dict[str, CodeType] = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if "__module__" in inner.co_names and "__qualname__" in inner.co_names:  # a class
                found |= functions_in(inner)
            else:
                found[inner.co_qualname] = inner
    return found


def same(one: CodeType, other: CodeType) -> bool:
    """Wherever in its file it stands."""
    if (one.co_code, one.co_names, len(one.co_consts)) != (other.co_code, other.co_names, len(other.co_consts)):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=True)
    return all(same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else a == b for a, b in pairs)


def function_named(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    found = getattr(found, "fget", found)
    assert isinstance(found, FunctionType), name
    return found


def case(number: int, strategies: tuple[str, ...], *, migrates: bool = False) -> tuple[Scenario, str, int]:
    scenario, again = random_scenario(Random(f"{SEED}/{number}")), 0
    while migrates and not is_migration(scenario):
        again += 1
        scenario = random_scenario(Random(f"{SEED}/{number}/{again}"))
    return scenario, strategies[number % len(strategies)], number


def is_migration(scenario: Scenario) -> bool:
    return any(isinstance(one, RollingRestart) and one.strategy is not None for one in scenario.timeline)


def hunt(bug: Bug) -> Found | None:
    for number in range(MOST_RUNS):
        given = case(number, bug.strategies, migrates=bug.migrates)
        with planted(bug):
            breach = broken(*given)
        if breach is not None and breach.invariant == CRASH:
            raise RuntimeError(f"{bug.what}: {breach}")
        if breach is not None:
            innocent = broken(*given)
            assert innocent is None, f"this run breaks an invariant without any bug: {innocent}"
            return Found(breach.invariant, number + 1, given[1], str(breach))
    return None


def main() -> None:
    for bug in (bug for family in BUGS.values() for bug in family):
        if all(word in bug.what for word in sys.argv[1:]):
            begun = process_time()
            try:
                found: object = hunt(bug)
            except Exception as crash:  # noqa: BLE001 - told, and the next one
                found = f"CRASH {type(crash).__name__}: {crash}"
            print(f"{process_time() - begun:5.1f} s  {bug.what}: {found}", flush=True)


if __name__ == "__main__":
    main()

# ruff: noqa: E501 - a mutant is a line
"""Faults made by hand, one at a time, each of which some test must notice.

    python -m tests.protocol_v1.coordinator.mutants

A mutant is an edit of one place in a module's source. The suspects are the vectors, the error table, the scenarios and
some random runs; the first that fails has caught it. A mutant whose text is no longer in the source is an error, so
this list cannot rot in silence. Modules are loaded anew all the time, so this runs in a process of its own.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

MODULES = (
    "state.member_order",
    "state.group",
    "state.records",
    "state.shard",
    "rebalance",
    "static_members",
    "join",
    "sync",
    "heartbeat",
    "leave",
    "offsets",
    "admin",
    "gate",
    "coordinator",
)
"""In the order of their imports: later ones are loaded anew, so that they see the fault."""

USERS = (
    "rebalance_lab.harness.conversation.sequence_player",
    "tests.protocol_v1.coordinator.watched",
    "tests.protocol_v1.coordinator.script",
    "tests.protocol_v1.coordinator.random_runs",
)


@dataclass(frozen=True, slots=True)
class Mutant:
    what: str
    module: str
    old: str
    new: str


# fmt: off
MUTANTS = [
    Mutant("skip the generation check of SyncGroup", "sync", "request.generation_id != group.generation_id", "False"),
    Mutant("skip the generation check of Heartbeat", "heartbeat", "request.generation_id != group.generation_id", "False"),
    Mutant("skip the generation check of OffsetCommit", "offsets", "generation_id != group.generation_id", "False"),
    Mutant("never fence", "state.group", "if holder != member_id:", "if False:"),
    Mutant("forget to restart a session at join completion", "rebalance", "        turn.restart_session(group, member)\n        member.is_new", "        member.is_new"),
    Mutant("forget to restart a session with the answer to a sync", "rebalance", "        turn.reply(request, response)\n        turn.restart_session(group, member)", "        turn.reply(request, response)"),
    Mutant("forget the session at a heartbeat", "heartbeat", "    turn.restart_session(group, group.members[request.member_id])\n", ""),
    Mutant("forget the session at a commit", "offsets", "        turn.restart_session(group, group.members[request.member_id])", "        pass"),
    Mutant("expire a member whose JoinGroup is parked", "heartbeat", "if waits_for_us and not member.is_new:", "if False:"),
    Mutant("never expire a newcomer", "heartbeat", "if waits_for_us and not member.is_new:", "if waits_for_us:"),
    Mutant("answer a sync before its assignment is durable", "sync", "    turn.append((group_metadata(group, assignments),), written)", "    written(turn, Error.NONE)\n    turn.append((group_metadata(group, assignments),), lambda turn, error: None)"),
    Mutant("answer a sync in PreparingRebalance", "sync", "Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else Error.NONE", "Error.NONE"),
    Mutant("tell heartbeats of a rebalance in CompletingRebalance", "heartbeat", "group.state is State.PREPARING_REBALANCE\n    answer", "group.state is not State.STABLE\n    answer"),
    Mutant("commit in CompletingRebalance", "offsets", "Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING_REBALANCE else Error.NONE", "Error.NONE"),
    Mutant("do not wait for handed-out ids", "state.group", "self.awaiting_join == len(self.members) and not self.pending_join", "self.awaiting_join == len(self.members)"),
    Mutant("end the initial delay as soon as all are there", "rebalance", " and group.previous_state is not State.EMPTY", ""),
    Mutant("never extend the initial delay", "rebalance", "not group.new_member_added", "True"),
    Mutant("let the initial delay outlast the rebalance timeout", "rebalance", "initial.left_ms == 0 or ", ""),
    Mutant("drop absent static members", "rebalance", " and m.group_instance_id is None", ""),
    Mutant("keep absent dynamic members", "rebalance", "        group.remove(member_id)\n        turn.cancel_timer(session_key(group, member_id))\n\n\ndef answer_joins", "        pass\n\n\ndef answer_joins"),
    Mutant("keep a leader that did not rejoin", "state.group", "            self.leader = joined.member_id\n", "            pass\n"),
    Mutant("list the members to everyone", "rebalance", "members=member_list(group) if leads else ()", "members=member_list(group)"),
    Mutant("do not count up the generation", "rebalance", "group.generation_id += 1", "group.generation_id += 0"),
    Mutant("rebalance on a follower's repeated JoinGroup", "join", "group.state is State.STABLE and unchanged and not leads", "False"),
    Mutant("do not rebalance when the leader rejoins", "join", "unchanged and not leads", "unchanged"),
    Mutant("no MEMBER_ID_REQUIRED", "join", "MEMBER_ID_REQUIRED_SINCE = 4", "MEMBER_ID_REQUIRED_SINCE = 99"),
    Mutant("take who shares no protocol", "state.group", "self.supported[p.name] == size", "True"),
    Mutant("the first member's list decides, not the vote", "state.group", "max(in_hash_order(votes), key=votes.__getitem__)", "next(iter(votes))"),
    Mutant("ties go to the last name", "state.group", "in_hash_order(votes)", "in_hash_order(votes)[::-1]"),
    Mutant("count members, not the joined, against the maximum", "join", "group.awaiting_join\n", "len(group.members)\n"),
    Mutant("rebalance at every takeover", "static_members", "group.select_protocol() == group.protocol_name", "False"),
    Mutant("never rebalance at a takeover", "static_members", "group.select_protocol() == group.protocol_name", "True"),
    Mutant("let a returning leader assign", "static_members", "skip_assignment=group.leader == new.member_id", "skip_assignment=False"),
    Mutant("leave the fenced JoinGroup parked", "static_members", "        turn.reply(join, fenced)\n", ""),
    Mutant("do not write a takeover down", "static_members", "    turn.append((group_metadata(group, assignments),), written)", "    written(turn, Error.NONE)"),
    Mutant("keep a takeover that the log refused", "static_members", "    restored = group.replace(new, old.member_id)", "    restored = new"),
    Mutant("one rebalance per leaver is none for a pending id", "leave", "if gone and group.state is not State.EMPTY:", "if group.members.keys() and gone and gone[0].member_id in group.members:"),
    Mutant("do not answer the leaver's parked JoinGroup", "rebalance", "        turn.reply(request, JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID))", "        pass"),
    Mutant("forget the timer of the sync phase", "rebalance", "    turn.set_timer(sync_key(group), group.rebalance_timeout_ms)", "    pass"),
    Mutant("keep the timer of the sync phase after everyone synced", "sync", "        turn.cancel_timer(sync_key(group))\n    if group.state", "        pass\n    if group.state"),
    Mutant("send nobody away when a rebalance overtakes a sync", "rebalance", "        reset_assignments(turn, group, Error.REBALANCE_IN_PROGRESS)", "        pass"),
    Mutant("do not write down that a group is empty", "rebalance", "        turn.append((group_metadata(group, {}),), ignore)\n", ""),
    Mutant("load a group without its instance ids", "state.records", "group_instance_id=member.group_instance_id,\n            client_id=member.client_id,\n            client_host=member.client_host,\n            session", "group_instance_id=None,\n            client_id=member.client_id,\n            client_host=member.client_host,\n            session"),
    Mutant("load a group without sessions", "coordinator", "                turn.restart_session(group, member)", "                pass"),
    Mutant("forget the instance id of who is removed", "state.group", "                del self.static[member.group_instance_id]", "                pass"),
    Mutant("lead by age, not by hash order", "state.group", "self.leader = self.order.first()", "self.leader = next(iter(self.members), None)"),
    Mutant("commit to an unknown group at version 9 as before", "offsets", "UNKNOWN_GROUP_SINCE = 9", "UNKNOWN_GROUP_SINCE = 10"),
    Mutant("check the group before the partition", "offsets", "    if not wanted:\n", "    if False:\n"),
    Mutant("let refused appends count as durable offsets", "offsets", "        if error is Error.NONE:\n            for record in records:", "        if True:\n            for record in records:"),
]
# fmt: on


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The module with the fault in it, and everything that has imported from it, loaded anew; then all put back."""
    importlib.import_module("rebalance_lab.harness.conversation.sequence_player")
    source = inspect.getsource(sys.modules[f"rebalance_lab.protocol_v1.coordinator.{mutant.module}"])
    if source.count(mutant.old) < 1:
        raise LookupError(f"{mutant.what}: its text is not in {mutant.module}.py any more")
    try:
        reload_all(mutant.module, source.replace(mutant.old, mutant.new))
        yield
    finally:
        reload_all(None, "")


def reload_all(faulty: str | None, source: str) -> None:
    for name in MODULES:
        module = sys.modules[f"rebalance_lab.protocol_v1.coordinator.{name}"]
        if name == faulty:
            execute(module, source)
        else:
            importlib.reload(module)
    for name in USERS:
        importlib.reload(importlib.import_module(name))


def execute(module: ModuleType, source: str) -> None:
    exec(compile(source, f"{module.__name__} (mutant)", "exec"), module.__dict__)


def suspects() -> Iterator[tuple[str, Callable[[], object]]]:
    from tests.protocol_v1.coordinator import random_runs, script, test_error_table, test_scenarios, test_vectors

    for name, text in (test_vectors.VECTORS | test_scenarios.SCENARIOS).items():
        yield name, lambda text=text: script.check(text)
    for cell in test_error_table.CELLS:
        yield str(cell.id), lambda cell=cell: test_error_table.test_an_error_follows_from_state_and_sender(*cell.values)
    for seed in range(150):
        yield f"random run {seed}", lambda seed=seed: no_failure(random_runs.run_once(*random_runs.seeded(seed))[1])


def no_failure(error: Exception | None) -> None:
    if error is not None:
        raise error


def caught_by(mutant: Mutant) -> str | None:
    with applied(mutant):
        return first_failure()


def first_failure() -> str | None:
    for name, test in suspects():
        try:
            test()
        except Exception:  # noqa: BLE001 - a crash is as good as a failed assertion
            return name
    return None


def main() -> None:
    innocent = first_failure()
    if innocent is not None:
        sys.exit(f"without any fault this fails already: {innocent}")
    survivors = 0
    for mutant in MUTANTS:
        name = caught_by(mutant)
        survivors += name is None
        print(f"{'SURVIVED' if name is None else 'caught':8}  {mutant.what}" + (f"  <- {name}" if name else ""))
    print(f"{len(MUTANTS) - survivors} of {len(MUTANTS)} caught")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()

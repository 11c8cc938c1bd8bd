"""Make one fault by hand: `python -m tests.protocol_v2.coordinator.mutants NAME` exits 1 when the tests notice it.

The fault is written into the source as it is imported. What runs then is the vectors, the scenarios and random runs, in
this order and only up to the first failure.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.paths import ROOT

RANDOM_RUNS = 150


class Mutant(NamedTuple):
    module: str
    right: str
    wrong: str


MUTANTS = {
    "a partition is given although somebody holds it": Mutant(
        "coordinator.assignment.reconciliation",
        "if partition not in keep and (partition not in at.partition_epochs or",
        "if partition not in keep and (True or",
    ),
    "the epoch advances before the revocation": Mutant(
        "coordinator.state.states",
        "REVOKE_FIRST = Outcome(MemberState.UNREVOKED_PARTITIONS, False)",
        "REVOKE_FIRST = Outcome(MemberState.UNREVOKED_PARTITIONS, True)",
    ),
    "silence counts as revocation": Mutant(
        "coordinator.assignment.reconciliation", "return owned is None or any(", "return owned is not None and any("
    ),
    "a returning partition is not given back": Mutant(
        "coordinator.assignment.reconciliation", " or partition in current.revoking)", ")"
    ),
    "assignment epochs start anew at every step": Mutant(
        "coordinator.assignment.reconciliation",
        "keep = {partition: epoch for partition, epoch in current.assigned.items() if partition in target}",
        "keep = {partition: at.assignment_epoch for partition in current.assigned if partition in target}",
    ),
    "the previous epoch is kept where the epoch stays": Mutant(
        "coordinator.assignment.reconciliation",
        "previous_member_epoch=current.member_epoch,",
        "previous_member_epoch=min(current.member_epoch, epoch - 1),",
    ),
    "an unsubscribed topic stays until the next target": Mutant(
        "coordinator.assignment.reconciliation", "if not drop and not wants_nothing:", "if True:"
    ),
    "the previous epoch is accepted without owned partitions": Mutant(
        "coordinator.fencing", "if not not_told_yet or owned is None or not all(", "if not not_told_yet or not all("
    ),
    "the previous epoch is accepted whatever is owned": Mutant(
        "coordinator.fencing", "or not all(partition in current.assigned for partition in owned)", ""
    ),
    "an older epoch is accepted": Mutant("coordinator.fencing", "if epoch < current.member_epoch:", "if False:"),
    "a newer epoch is accepted": Mutant("coordinator.fencing", "if epoch > current.member_epoch:", "if False:"),
    "a full group lets strangers in": Mutant(
        "coordinator.fencing",
        "len(group.members) >= config.group_consumer_max_size",
        "len(group.members) > config.group_consumer_max_size",
    ),
    "a live static member can be taken over": Mutant(
        "coordinator.static_members", "and not member.current.stepped_out:", "and False:"
    ),
    "stepping out keeps what was being revoked": Mutant("coordinator.static_members", "revoking=NOTHING, ", ""),
    "stepping out keeps assignment epochs": Mutant(
        "coordinator.static_members", "assigned=dict.fromkeys(current.assigned, 0)", "assigned=current.assigned"
    ),
    "a leave does not bump the group epoch": Mutant(
        "coordinator.leave", "records.append(bumped(turn, group,", "len(records) and (bumped(turn, group,"
    ),
    "the session timer is not restarted": Mutant(
        "coordinator.heartbeat",
        "turn.set_timer((SESSION, request.group_id, member_id)",
        "(lambda *_: None)((SESSION, request.group_id, member_id)",
    ),
    "the rebalance timer is not stopped": Mutant(
        "coordinator.assignment.progress", "self.turn.cancel_timer((REBALANCE, *key))", "pass"
    ),
    "the rebalance timer removes whoever has moved on": Mutant(
        "coordinator.leave", "if kind == REBALANCE and member.current.member_epoch != started_at:", "if False:"
    ),
    "the assignment interval is not waited for": Mutant(
        "coordinator.assignment.target_assignment", "and interval_is_over(turn, group)", ""
    ),
    "the first target waits for the interval": Mutant(
        "coordinator.assignment.target_assignment", "or last_ms is None or", "or last_ms is not None and"
    ),
    "changed topics are not looked at": Mutant(
        "coordinator.assignment.subscriptions",
        "group.deadline = RefreshDeadline(turn.now_ms, group.group_epoch)",
        "pass",
    ),
    "an unresolved expression bumps at once": Mutant(
        "coordinator.heartbeat", "step.regex is RegexUpdate.RESOLVED", "step.regex is not RegexUpdate.UNCHANGED"
    ),
    "expressions are resolved at every heartbeat": Mutant(
        "coordinator.assignment.subscriptions", "turn.now_ms <= last.timestamp + MIN_REFRESH_INTERVAL_MS", "False"
    ),
    "a recreated topic is the old one": Mutant(
        "common.topic_image", 'return name if incarnation == 1 else f"{name}#{incarnation}"', "return name"
    ),
    "a late commit is judged by the member's epoch alone": Mutant(
        "coordinator.offsets", "return given is not None and given <= epoch", "return given is not None"
    ),
    "a commit of the exact epoch needs the partition": Mutant(
        "coordinator.offsets",
        "if epoch == member.current.member_epoch:\n        return Error.NONE\n    topics",
        "topics",
    ),
    "a classic member is not woken for free partitions": Mutant(
        "coordinator.classic_members.migration",
        "return not waits_for_others(",
        "return False and not waits_for_others(",
    ),
    "any policy downgrades": Mutant(
        "coordinator.classic_members.conversion",
        "return config.group_consumer_migration_policy.downgrades and",
        "return",
    ),
    "a downgrade bumps the generation": Mutant(
        "coordinator.classic_members.conversion",
        "generation_id=group.group_epoch,",
        "generation_id=group.group_epoch + 1,",
    ),
    "the target's time is not stored": Mutant(
        "coordinator.state.records",
        "group.assignment_timestamp = value.assignment_timestamp if value else None",
        "group.assignment_timestamp = group.assignment_timestamp",
    ),
    "what the log refused stays": Mutant("coordinator.state.shard", "appends[number].undo(self)", "pass"),
    "an answer does not wait for the log": Mutant(
        "coordinator.heartbeat",
        "opened.commit(turn, step.records, durable,",
        "durable(turn, Error.NONE) or opened.commit(turn, step.records, lambda *_: None,",
    ),
    "the assignor sees what members hold instead of their targets": Mutant(
        "coordinator.assignment.target_assignment",
        "target = group.targets.get(member_id)\n    if target is None:",
        "target = None\n    if target is None:",
    ),
    "ties inside a slot forget who came first": Mutant(
        "coordinator.state.member_order",
        "self._slot(key).append(key)\n\n    def remove",
        "self._slot(key).insert(0, key)\n\n    def remove",
    ),
}


class Saboteur(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != f"rebalance_lab.protocol_v2.{self.mutant.module}":
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(source_of(self.mutant)))

    def exec_module(self, module: ModuleType) -> None:
        source = source_of(self.mutant).read_text()
        module.__file__ = str(source_of(self.mutant))
        exec(compile(source.replace(self.mutant.right, self.mutant.wrong), module.__file__, "exec"), module.__dict__)


def source_of(mutant: Mutant) -> Path:
    return ROOT / "protocol_v2" / f"{mutant.module.replace('.', '/')}.py"


def check_everything() -> None:
    from tests.protocol_v2.coordinator import (
        random_runs,
        test_coordinator,
        test_log,
        test_member_order,
        test_scenarios,
        test_vectors,
    )

    for title in test_vectors.VECTORS:
        test_vectors.test_the_coordinator_answers_as_the_broker_did(title)
    for title in test_scenarios.SCENARIOS:
        test_scenarios.test_epoch_by_epoch(title)
    for module in (test_member_order, test_log, test_coordinator):
        for name in module.PLAIN_TESTS:
            getattr(module, name)()
    for seed in range(RANDOM_RUNS):
        random_runs.run(seed)


if __name__ == "__main__":
    chosen = MUTANTS[sys.argv[1]]
    assert source_of(chosen).read_text().count(chosen.right) == 1, "the source no longer reads so"
    sys.meta_path.insert(0, Saboteur(chosen))
    try:
        check_everything()
    except Exception as caught:  # noqa: BLE001 - a fault may show itself in any way
        print(f"{type(caught).__name__}: {str(caught)[:200]}")
        sys.exit(1)

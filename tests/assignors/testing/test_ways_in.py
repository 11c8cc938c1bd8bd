"""The other ways in: the pytest base class, the plugin, the state machine, the strategies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from rebalance_lab.assignors.json_contract import group_from_json, group_to_json
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.testing import AssignorContract, churn_machine, groups, members, topics
from rebalance_lab.assignors.testing.sampling.cases import case_from_json, draw_case, events_from_json, events_to_json
from rebalance_lab.assignors.testing.sampling.group_events import Event, happen
from rebalance_lab.assignors.testing.sampling.hypothesis_strategies import groups_with_churn
from rebalance_lab.assignors.testing.search.report_card import NOT_RUN
from rebalance_lab.assignors.testing.subject.answers import Broken
from rebalance_lab.assignors.testing.subject.rounds import Churns, Rounds
from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn
from tests.assignors.testing.good import GoodHandOver, GoodKeeper
from tests.assignors.testing.zoo.churn import FailsAfterALostGeneration
from tests.assignors.testing.zoo.given import KeepsWhatItNoLongerSubscribesTo
from tests.paths import ROOT

FOUND = (Phase.generate,)
"""Where it only matters that something is found: to make it small takes half a minute."""


class TestAGoodOne(AssignorContract):
    assignor = GoodKeeper
    examples = 200


TestChurnOfAGoodOne = churn_machine(GoodHandOver).TestCase
TestChurnOfAGoodOne.settings = settings(max_examples=30, stateful_step_count=15)


class TestAGoodOneInConsumers(AssignorContract):
    assignor = GoodHandOver
    examples = 400
    machines = ProtocolChurn


TestProtocolChurnOfAGoodOne = churn_machine(GoodHandOver, machines=ProtocolChurn).TestCase
TestProtocolChurnOfAGoodOne.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)


def test_a_contract_with_machines_looks_at_a_churn_through_the_protocol() -> None:
    assert TestAGoodOneInConsumers.report().row("survives-churn").examples >= 5
    assert TestAGoodOne.report().row("survives-churn").verdict == NOT_RUN


def test_the_state_machine_finds_what_only_consumers_show() -> None:
    machine = churn_machine(FailsAfterALostGeneration, machines=ProtocolChurn).TestCase
    machine.settings = settings(max_examples=30, stateful_step_count=12, database=None, deadline=None, phases=FOUND)
    with pytest.raises((Broken, ExceptionGroup)):
        machine().runTest()


def test_the_state_machine_finds_what_only_a_churn_shows() -> None:
    """A member that unsubscribes in the middle of a crash keeps an old claim."""

    class Forgetful(GoodKeeper):
        def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
            shares = super().assign(group)
            if any(m.generation and m.generation > 3 for m in group.members.values()):
                shares.popitem()
            return shares

    machine = churn_machine(Forgetful).TestCase
    machine.settings = settings(max_examples=50, stateful_step_count=15, database=None, phases=FOUND)
    with pytest.raises((Broken, ExceptionGroup)):
        machine().runTest()


def test_a_driver_can_be_handed_in() -> None:
    """The hook for real protocol machines: whatever drives the churn sees every event."""
    seen: list[Event] = []

    class Watching(Rounds):
        def apply(self, event: Event) -> None:
            seen.append(event)
            super().apply(event)

    from rebalance_lab.assignors.testing.search.checking import check
    from rebalance_lab.assignors.testing.search.search import search
    from rebalance_lab.assignors.testing.subject.targets import target_of

    assert check(target_of(GoodKeeper), 40, driver=Watching).row("churn").examples >= 5
    search(target_of(GoodKeeper).subject(), 20, 0, churns=Churns(Watching))
    assert len({event.kind for event in seen}) >= 3


@given(groups())
@settings(max_examples=150)
def test_every_drawn_group_is_json_that_assign_accepts(group: Group) -> None:
    text = json.dumps(group_to_json(group))
    assert group_to_json(group_from_json(json.loads(text))) == json.loads(text)


@given(groups(max_members=3, max_topics=1, max_partitions=4, claims=False, racks=False, loads=False, odd_names=False))
@settings(max_examples=80)
def test_knobs_keep_groups_small_and_plain(group: Group) -> None:
    assert len(group.members) <= 3
    assert len(group.topics) <= 1
    assert group.layout.total <= 4
    for name, member in group.members.items():
        assert not member.owned
        assert member.rack is None
        assert name.isascii()
    with pytest.raises(TypeError, match="unknown knob 'max_member'"):
        groups(max_member=3)


@given(topics(max_topics=2).flatmap(lambda known: members(known, max_members=4, odd_names=False)))
@settings(max_examples=50)
def test_members_subscribe_to_the_topics_they_are_given(drawn: dict[str, object]) -> None:
    assert len(drawn) <= 4


@given(groups_with_churn(max_members=4))
@settings(max_examples=80)
def test_events_are_json_and_any_of_them_may_happen_to_any_group(drawn: tuple[Group, tuple[Event, ...]]) -> None:
    group, events = drawn
    assert events_from_json(json.loads(json.dumps(events_to_json(events)))) == events
    for event in events:
        group = happen(group, event)
        group_from_json(json.loads(json.dumps(group_to_json(group))))


def test_a_case_is_the_same_in_every_process() -> None:
    script = (
        "from rebalance_lab.assignors.testing.sampling.cases import draw_case;"
        "print(*[draw_case(3, n).to_json() for n in range(40)])"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert case_from_json(draw_case(3, 4).to_json()).to_json() == draw_case(3, 4).to_json()


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with the plugin and nothing else: the lab's own tests have it loaded by name."""
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "rebalance_lab.assignors.testing.pytest_plugin",
        "--rootdir",
        str(folder),
    ]
    command += ["-p", "no:cacheprovider", "-c", os.devnull]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_failing_contract_shows_its_counterexample_and_nothing_of_the_kit(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from rebalance_lab.assignors.testing import AssignorContract\n"
        f"from tests.assignors.testing.zoo.given import {KeepsWhatItNoLongerSubscribesTo.__name__} as Mine\n"
        "class TestMine(AssignorContract):\n    assignor = Mine\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1, done.stdout
    assert "valid is broken: gives 'A' t-0, which it did not subscribe to" in done.stdout
    assert (
        "rebalance-lab check tests.assignors.testing.zoo.given:KeepsWhatItNoLongerSubscribesTo --replay" in done.stdout
    )
    assert "Traceback" not in done.stdout


def test_the_plugin_runs_a_contract_without_a_test_file(tmp_path: Path) -> None:
    good = run_pytest(tmp_path, "--assignor", "tests.assignors.testing.good:GoodBlocks", "--assignor-examples", "100")
    assert good.returncode == 0, good.stdout
    assert "18 passed" in good.stdout
    bad = run_pytest(tmp_path, "--assignor", "tests.assignors.testing.zoo.given:OffByOne", "--assignor-examples", "50")
    assert bad.returncode == 1
    assert "valid is broken" in bad.stdout

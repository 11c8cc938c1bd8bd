"""Custom assignors that do what they should not: each is told, in a run and in a comparison."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.assignors.classic.range import RangeAssignor
from rebalance_lab.harness.evaluate.comparison import compare
from rebalance_lab.harness.evaluate.runs import watched_run
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.api.conftest import Run, run  # noqa: F401 - the fixture
from tests.harness.small_scenarios import RESTART, write
from tests.paths import ROOT

HERE = "tests.harness.evaluate.test_wrong_assignors"


class Nameless:
    def assign(self, group: Any) -> Any:
        return {}


class Exits(Nameless):
    name = "exits"

    def assign(self, group: Any) -> Any:
        sys.exit(3)


class Strangers(Nameless):
    name = "strangers"

    def assign(self, group: Any) -> Any:
        return {"nobody": {"orders": [0]}}


class EndsIt(Nameless):
    name = "ends-it"

    def assign(self, group: Any) -> Any:
        os._exit(7)


class Hangs(Nameless):
    name = "hangs"

    def assign(self, group: Any) -> Any:
        while True:
            time.sleep(0.01)


class HangsWhenMade(Nameless):
    name = "hangs-when-made"
    made = 0

    def __init__(self) -> None:
        HangsWhenMade.made += 1
        if HangsWhenMade.made > 1:  # it has been looked at before the runs begin
            time.sleep(600)


class TakesItsTime(Nameless):
    name = "takes-its-time"

    def assign(self, group: Any) -> Any:
        time.sleep(0.3)
        return RangeAssignor().assign(group)


class HangsInAHook(Nameless):
    name = "hangs-in-a-hook"

    def on_assignment(self, assignment: Any, generation: int) -> None:
        time.sleep(600)


class Uniform(Nameless):
    """As who derives from Kafka's own and leaves its name."""

    name = "uniform"


class Range(Nameless):
    name = "range"


class OnlyCooperative(Nameless):
    name = "only-cooperative"
    supported_protocols = ("cooperative",)


class Nonsense(Nameless):
    name = "nonsense"
    supported_protocols = ("nonsense",)


class Method(Nameless):
    name = "method"

    def supported_protocols(self) -> tuple[str, ...]:
        return ("cooperative",)


class NoProtocol(Nameless):
    name = "no-protocol"
    supported_protocols = ()


class RaisesWhenRead(Nameless):
    name = "raises-when-read"

    @property
    def supported_protocols(self) -> tuple[str, ...]:
        raise ValueError("not today")


class NameRaises(Nameless):
    @property
    def name(self) -> str:
        raise ValueError("no name today")


class Endless(Nameless):
    name = "endless"

    def assign(self, group: Any) -> Any:
        return {member: {"orders": range(10**12)} for member in group.members}


class Beyond(Nameless):
    name = "beyond"
    partition = 1 << 31

    def assign(self, group: Any) -> Any:
        return {member: {"orders": [self.partition]} for member in group.members}


class FarBelow(Beyond):
    name = "far-below"
    partition = -(1 << 31) - 1


class Talks(Nameless):
    name = "talks"

    def assign(self, group: Any) -> Any:
        print("aside")
        return {sorted(group.members)[0]: {name: range(topic.partitions) for name, topic in group.topics.items()}}


@pytest.mark.parametrize("kind", ["Exits", "Strangers"])
def test_a_group_whose_broker_gets_no_assignment_does_not_come_to_rest(kind: str) -> None:
    """Its members fail and are started again, over and over: at the end perhaps none of them is alive."""
    scenario = parse_scenario({**RESTART, "duration": "15m"})
    found = watched_run(scenario, f"consumer/{HERE}:{kind}", 1).broken
    assert found is not None
    assert (found.invariant, found.now_ms) == ("convergence", 900_000)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_assignor_without_a_name_is_refused_in_a_line(run: Run, tmp_path: Path, protocol: str) -> None:  # noqa: F811
    ended = run("simulate", write(tmp_path), "--strategy", f"{protocol}/{HERE}:Nameless")
    assert ended.code == 2
    assert ended.err == (
        f"rebalance-lab: --strategy: {HERE}:Nameless has no name: members of a group list their assignors by it\n"
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Nonsense", "Nonsense.supported_protocols: 'nonsense' is not a valid RebalanceProtocol"),
        ("Method", "Method.supported_protocols: 'method' object is not iterable"),
        ("NoProtocol", "NoProtocol.supported_protocols: names none"),
        ("RaisesWhenRead", "RaisesWhenRead.supported_protocols: not today"),
        ("NameRaises", "NameRaises.name: no name today"),
        ("Range,range", "Range,range: two assignors are called range, and Kafka tells them by their names"),
        ("OnlyCooperative,range", "OnlyCooperative,range: the assignors [only-cooperative, range] have no rebalance"),
    ],
)
def test_assignors_that_no_member_could_offer_are_refused_in_a_line(
    run: Run,  # noqa: F811
    tmp_path: Path,
    kind: str,
    said: str,
) -> None:
    file, strategy = write(tmp_path), f"classic/{HERE}:{kind}"
    migrates = write(tmp_path, timeline=[{"at": "1m", "rolling restart": {"downtime": "5s", "strategy": strategy}}])
    for arguments in (
        ["simulate", file, "--strategy", strategy],
        ["compare", file, "--strategies", f"{strategy};range"],
        ["simulate", migrates, "--strategy", "classic/range"],
    ):
        ended = run(*arguments)
        assert ended.code == 2
        assert f"{HERE}:{said}" in ended.err.splitlines()[0]
        if "today" not in said:  # raised in a file of the user's, and so followed by a traceback
            assert ended.err.count("\n") == 1


def test_a_brokers_assignor_may_have_the_name_of_one_of_kafkas_own() -> None:
    """The broker asked Kafka's, and what that gave was told as the other's."""
    scenario = parse_scenario(RESTART)
    found = watched_run(scenario, f"consumer/{HERE}:Uniform", 1).costs
    assert found.unowned_s == pytest.approx(6 * 80)  # from the first event to the end


def test_two_assignors_of_a_broker_with_one_name_are_refused_in_a_line(run: Run, tmp_path: Path) -> None:  # noqa: F811
    """A migration between them could not be told from none."""
    migrates = {"at": "1m", "rolling restart": {"downtime": "5s", "strategy": "consumer/uniform"}}
    ended = run("simulate", write(tmp_path, timeline=[migrates]), "--strategy", f"consumer/{HERE}:Uniform")
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "two assignors are called uniform" in ended.err


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Endless", "Endless.assign returned more than 10,000,000 partitions"),
        ("Beyond", "Beyond.assign returned a partition of 'orders' beyond 32 bits, for member "),
        ("FarBelow", "FarBelow.assign returned a partition of 'orders' beyond 32 bits, for member "),
    ],
)
def test_what_no_message_could_hold_is_told_and_costs_nobody_else(protocol: str, kind: str, said: str) -> None:
    """A leader that took a trillion partitions for an answer took the memory of the machine with it."""
    strategy = f"{protocol}/{HERE}:{kind}"
    best, last = compare(parse_scenario(RESTART), [strategy, "classic/range"], range(1, 3), jobs=1).ranking
    assert (best.strategy, best.broken) == ("classic/range", ())
    assert last.strategy == strategy
    assert [said in str(one.broken) for one in last.broken] == [True, True]


def test_an_assignor_that_ends_its_process_is_told_in_a_line(run: Run, tmp_path: Path) -> None:  # noqa: F811
    strategies = f"classic/range,classic/{HERE}:EndsIt"
    ended = run("compare", write(tmp_path), "--strategies", strategies, "--seeds", "2", "--jobs", "2")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "a run's process ended before the run did" in ended.err


def test_a_static_member_killed_between_two_cooperative_rounds_leaves_partitions_behind_as_in_kafka() -> None:
    """Only who gives partitions up asks for the round that hands them on, and it is not the one that comes back."""
    scenario = parse_scenario(
        {
            "duration": "20m",
            "topics": {"orders": {"partitions": 4, "rate": "40/s"}},
            "members": {"c": {"count": 1, "topics": "orders", "record": "1ms"}},
            "client": {"max.poll.records": 10},
            "timeline": [
                {"at": "60s", "slow": {"members": "c-1", "factor": 1000, "for": "100s"}},
                {"at": "62s", "scale": {"members": "c", "to": 2}},
                {"at": "95s", "restart": {"members": "c-1", "downtime": "5s", "kill": True}},
            ],
        }
    )
    told = watched_run(scenario, "classic/cooperative-sticky+static", 1)
    assert told.broken is not None
    assert told.broken.invariant == "convergence"
    assert told.known_violation is not None
    assert "between the two rounds" in told.known_violation
    assert watched_run(scenario, "classic/cooperative-sticky", 1).broken is None


@pytest.mark.parametrize(
    "strategy", ["classic/{}:Hangs", "consumer/{}:Hangs", "classic/{}:HangsInAHook", "classic/{}:HangsWhenMade"]
)
def test_an_assignor_that_never_answers_ends_its_run_and_no_other(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalance_lab.harness.evaluate.call_timeout.LIMIT_S", 0.5)
    monkeypatch.setattr("rebalance_lab.harness.evaluate.call_timeout.LIMIT_AGAIN_S", 0.5)
    hangs = strategy.format(HERE)
    compared = compare(parse_scenario(RESTART), [hangs, "classic/range"], range(1, 3), jobs=1)
    best, last = compared.ranking
    assert (best.strategy, best.broken) == ("classic/range", ())
    assert (last.strategy, last.rank) == (hangs, None)
    assert len(last.broken) == 2
    assert f"{hangs.partition('/')[2]} gave no answer within 0.5 s" in str(last.broken[0].broken)


def test_an_assignor_may_take_its_time_with_each_of_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they last longer than one may."""
    monkeypatch.setattr("rebalance_lab.harness.evaluate.call_timeout.LIMIT_S", 0.5)
    assert watched_run(parse_scenario(RESTART), f"classic/{HERE}:TakesItsTime", 1).broken is None


def test_a_sticky_leader_that_knows_less_than_others_claim_gives_twice_as_in_kafka() -> None:
    """The next leader has not heard of the partition that the last one gave away. Members subscribe unlike each other
    only from an event on."""
    scenario = parse_scenario(
        {
            "duration": "5m",
            "topics": {"a": {"partitions": 2}, "b": {"partitions": 1}, "c": {"partitions": 8, "rate": "80/s"}},
            "members": {"m": {"count": 4, "topics": ["a", "b", "c"]}},
            "client": {"metadata.max.age.ms": 60_000},
            "timeline": [
                {"at": "60s", "subscribe": {"members": ["m-1", "m-2"], "topics": ["c"]}},
                {"at": "61s", "add partitions": {"topic": "b", "to": 2}},
                {"at": "70s", "stop": "m-1"},
            ],
        }
    )
    runs = (watched_run(scenario, "classic/sticky", seed) for seed in range(1, 41))
    told = next(one for one in runs if one.broken is not None)
    assert told.broken is not None
    assert told.broken.invariant == "one owner"
    assert told.known_violation is not None
    assert "older than what others claim" in told.known_violation


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_an_assignor_prints_is_no_part_of_the_answer(tmp_path: Path, jobs: str) -> None:
    """Saved runs began with it, and could not be read again."""
    talks = f"classic/{HERE}:Talks"
    for arguments in (
        ["compare", write(tmp_path), "--strategies", talks, "--seeds", "2", "--jobs", jobs],
        ["simulate", write(tmp_path), "--strategy", talks],
        ["assign", "examples/orders.json", "--strategy", talks],
    ):
        command = [sys.executable, "-m", "rebalance_lab.api.cli", *arguments, "--json"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (ended.returncode, "aside" in ended.stdout, "aside" in ended.stderr) == (0, False, True), arguments
        assert json.loads(ended.stdout)

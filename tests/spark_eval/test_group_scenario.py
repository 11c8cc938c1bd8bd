"""A group's comings and goings as a scenario, and what is told of it by records of __consumer_offsets."""

from __future__ import annotations

import json
from typing import Any

from rebalance_lab.harness.evaluate.runs import sample
from rebalance_lab.harness.scenario.model import Restart
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.spark_eval.ingest.group_scenario import AFTER_MS, BEFORE_MS, Happening, scenario_of_history
from rebalance_lab.spark_eval.ingest.membership_records import happenings

T0 = 1_760_000_000_000
TOPICS = {"orders": 6}


def history(*events: tuple[int, str, str]) -> list[Happening]:
    return [Happening(T0 + second * 1_000, member, event) for second, member, event in events]


def test_a_leave_and_the_next_join_are_a_restart_with_that_downtime() -> None:
    document = scenario_of_history(
        "g",
        history((0, "a", "join"), (1, "b", "join"), (600, "a", "leave"), (625, "a", "join"), (900, "b", "crash"),
                (930, "b", "join")),
        TOPICS,
    )  # fmt: skip
    scenario = parse_scenario(document)
    first, second = scenario.timeline
    assert isinstance(first, Restart)
    assert isinstance(second, Restart)
    assert (first.members, first.at_ms, first.downtime_ms, first.kill) == (("a",), BEFORE_MS + 600_000, 25_000, False)
    assert (second.members, second.downtime_ms, second.kill) == (("b",), 30_000, True)
    assert scenario.duration_ms == BEFORE_MS + 930_000 + AFTER_MS


def test_who_comes_late_starts_late_and_who_never_returns_is_gone() -> None:
    document = scenario_of_history(
        "g", history((0, "a", "join"), (5, "b", "leave"), (300, "c", "join"), (400, "c", "crash")), {}
    )
    scenario = parse_scenario(document)
    assert [(one.KIND, one.members) for one in scenario.timeline] == [  # type: ignore[union-attr]
        ("stop", ("b",)),
        ("start", ("c",)),
        ("crash", ("c",)),
    ]
    assert scenario.topics[0].partitions == 12


def test_what_repeats_changes_nothing() -> None:
    once = history((0, "a", "join"), (1, "b", "join"), (60, "a", "leave"), (70, "a", "join"))
    twice = [*once, *history((2, "b", "join"), (61, "a", "leave"), (80, "a", "join"))]
    first, second = (scenario_of_history("g", events, TOPICS)["timeline"] for events in (once, twice))
    assert first == second


def test_a_recorded_history_can_be_run() -> None:
    events = history((0, "a", "join"), (1, "b", "join"), (120, "a", "restart"), (300, "b", "crash"))
    scenario = parse_scenario(scenario_of_history("g", events, TOPICS))
    for strategy in ("classic/range", "consumer/uniform+static"):
        ran = sample(scenario, strategy, 1)
        assert ran.broken is None
        assert ran.costs is not None
        assert ran.costs["unowned_s"] > 0


def record(second: int, kind: str, member: str | None, value: dict[str, Any] | None) -> dict[str, Any]:
    key = {"group": "g", **({"member_id": member} if member else {})}
    told = None if value is None else json.dumps(value)
    return {"time_ms": second * 1_000, "group": "g", "kind": kind, "key": json.dumps(key), "value": told}


def metadata(instance_id: str | None = None) -> dict[str, Any]:
    return {
        "instance_id": instance_id,
        "client_id": "c",
        "client_host": "/127.0.0.1",
        "subscribed_topic_names": ["orders"],
    }


def test_a_dynamic_member_that_comes_after_one_of_its_client_left_takes_its_place() -> None:
    kind = "ConsumerGroupMemberMetadata"
    rows = [
        record(1, kind, "id-1", metadata()),
        record(2, kind, "id-2", metadata("pod-2")),
        record(10, kind, "id-1", None),
        record(15, kind, "id-3", metadata()),
        record(20, kind, "id-2", None),
        record(25, kind, "id-4", metadata("pod-2")),
    ]
    told = [(one.time_ms // 1_000, one.member, one.event) for _, one in happenings(rows)]
    assert told == [
        (1, "id-1", "join"),
        (2, "pod-2", "join"),
        (10, "id-1", "leave"),
        (15, "id-1", "join"),
        (20, "pod-2", "leave"),
        (25, "pod-2", "join"),
    ]

"""Send 100 random sequences of each kind to Kafka and to our coordinator. The many are in test-deep."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.harness.kafka.wire.recordings.differential import Outcome
from tests.harness.kafka.wire.differential import TALKS, TOPICS, Tally, open_bench, run_all
from tests.harness.kafka.wire.sequence_shrinking import shrunk

pytestmark = pytest.mark.xdist_group("wire")
RUNS = 100


def test_a_real_broker_and_our_coordinator_answer_alike(broker, record_property, tmp_path):
    tally = asyncio.run(compare_many(broker.bootstrap))
    record_property("table: differential test against Kafka 4.3.1", str(tally))
    for name, outcome in tally.failures.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(outcome.recorded))
    told = [f"{name}: {each}" for name, outcome in tally.failures.items() for each in outcome.unexplained]
    assert not told, f"recordings are in {tmp_path}\n" + "\n".join(told)
    assert tally.runs == len(TALKS) * RUNS
    # A machine that is too busy to keep clear of timers compares less; a good part must be proof all the same.
    assert tally.compared > tally.requests / 4


async def compare_many(bootstrap: str) -> Tally:
    bench = await open_bench(bootstrap)
    try:
        return await run_all(bench, list(TALKS), range(1, RUNS + 1), lambda _: None)
    finally:
        await bench.close()


def test_a_difference_is_found_shortened_and_saved_as_a_sequence_that_play_takes(broker):
    """Told of another delay than the broker has, our coordinator is still in the join phase when the broker is not."""
    outcome = asyncio.run(compare_wrongly(broker.bootstrap))
    assert {each.step for each in outcome.unexplained} == {"join"}
    saved = json.loads(json.dumps(outcome.recorded))
    assert [each["as"] for each in saved["steps"]] == ["id", "join"]  # without what has nothing to do with it
    assert [each["body"]["error_code"] for each in saved["answered"]] == ["MEMBER_ID_REQUIRED", "NONE"]
    assert play(saved).to_json()["responses"][-1] == {"as": "join", "at_ms": saved["until_ms"], "body": None}


async def compare_wrongly(bootstrap: str) -> Outcome:
    bench = await open_bench(bootstrap)
    try:
        bench.config = {**bench.config, "group.initial.rebalance.delay.ms": 5_000}
        steps = [UNRELATED, *LONE_MEMBER["steps"]]
        return await shrunk(bench, await bench.compare({**LONE_MEMBER, "steps": steps}))
    finally:
        await bench.close()


UNRELATED = {"at_ms": 0, "as": "other", "request": "DescribeGroups", "version": 5, "body": {"groups": ["another"]}}
JOIN = {
    "group_id": "g",
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": ""}],
}
LONE_MEMBER: dict[str, Any] = {
    "protocol": "classic",
    "topics": TOPICS,
    "steps": [
        {"at_ms": 0, "as": "id", "request": "JoinGroup", "version": 9, "body": JOIN},
        {
            "at_ms": 50,
            "as": "join",
            "request": "JoinGroup",
            "version": 9,
            "body": {**JOIN, "member_id": "$id.member_id"},
        },
        {"at_ms": 900, "as": "view", "request": "DescribeGroups", "version": 5, "body": {"groups": ["g"]}},
    ],
    "until_ms": 1_200,
}

"""Java's heartbeats come when they are due, so that members of a classic group, which began together, hear of a
rebalance together; as in the simulation."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from itertools import pairwise
from random import Random
from statistics import median

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.conformance import java_oracle
from tests.harness.kafka.brokers.clients import fresh
from tests.harness.kafka.live.java_application import Application, application
from tests.harness.kafka.live.java_heartbeats import drift_ms, late_ms

LOOK_MS = 100
"""retry.backoff.ms, after which a heartbeat thread looks at the clock again: looks without regard to the last heartbeat
would be late by half of that."""
MEMBERS, HEARTBEAT_MS = 4, 3_000
JUST_BEGUN = Constants(head_start_ms=0)


@pytest.fixture(autouse=True)
def java() -> None:
    if reason := java_oracle.why_not():
        pytest.skip(reason)


@pytest.mark.parametrize("works", [False, True], ids=["waits", "works"])
def test_a_classic_consumers_heartbeats_are_late_by_milliseconds(works: bool) -> None:
    assert Constants().heartbeat_look_ms < LOOK_MS / 2
    assert median(late_ms("RangeAssignor", 9, 500, works=works)) < LOOK_MS / 2


def test_what_is_late_adds_up_to_a_drift_and_noise_on_the_way_does_not() -> None:
    random = Random(1)
    late = [random.gauss(3, 5) for _ in range(240)]
    on_the_way = [random.gauss(0, 5) for _ in range(241)]
    assert drift_ms(late) == pytest.approx(5, rel=0.2)
    assert drift_ms([after - before for before, after in pairwise(on_the_way)]) < 1


def test_an_eager_group_stops_as_one(node: Cluster) -> None:
    """Whoever is the first to hear of a rebalance could hear of it a heartbeat before the last one does."""
    seen = seconds_apart(node)
    scenario = parse_scenario(
        {
            "duration": "2m",
            "topics": {"in-step": {"partitions": MEMBERS}},
            "members": {"a": {"count": MEMBERS, "topics": "in-step"}},
            "timeline": [{"at": "61s", "stop": "a-1"}],
        }
    )
    facts = simulate(scenario, "classic/range", 1, constants=JUST_BEGUN).facts
    revoked_ms = [
        fact["t"]
        for fact in facts
        if fact.get("callback") == "onPartitionsRevoked" and fact["t"] > 61_000 and fact["member"] != "a-1"
    ]
    assert len(revoked_ms) == MEMBERS - 1
    foretold = (revoked_ms[-1] - revoked_ms[0]) / 1_000
    assert foretold < HEARTBEAT_MS / 10_000
    assert seen == pytest.approx(foretold, abs=HEARTBEAT_MS / 6_000)


def seconds_apart(cluster: Cluster) -> float:
    """From the first revocation to the last, where one of Java's consumers leaves its group."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = fresh("in-step")
    for made in admin.create_topics([NewTopic(topic, MEMBERS, 1)]).values():
        made.result()
    given = cluster.bootstrap, topic, topic, "RangeAssignor"
    with ExitStack() as stack:
        members = [stack.enter_context(application(*given, heartbeat_interval_ms=HEARTBEAT_MS)) for _ in range(MEMBERS)]
        for number, member in enumerate(members):
            member.go()
            for one in members[: number + 1]:  # this rebalance is over before the next
                one.until("assigned")
        time.sleep(1.5 * HEARTBEAT_MS / 1_000)
        heard_s: list[float] = []

        def listen(one: Application) -> None:
            one.until("revoked")
            heard_s.append(time.monotonic())

        listeners = [threading.Thread(target=listen, args=(one,)) for one in members[1:]]
        for listener in listeners:
            listener.start()
        members[0].close()
        for listener in listeners:
            listener.join()
    return max(heard_s) - min(heard_s)

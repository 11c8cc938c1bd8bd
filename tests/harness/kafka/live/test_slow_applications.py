"""Applications in trouble, with Java's own consumer: what happens to them, and when, live and simulated.

Called back   A works on batches of five seconds. With the beginning of one of them B is started, to get half of A's
              partitions; A hears of it during that batch. Counted are the batches A begins until it is called back
Thrown out    what becomes of batches that are longer than the session, as the simulation had foretold
Deleted       a topic is deleted under an eager group: how long nobody reads anything
Between       a static member is restarted between the two rounds of a cooperative rebalance: what nobody reads then
"""

from __future__ import annotations

import time
from queue import Empty
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.measure.invariants import Broken, Checker
from rebalance_lab.harness.measure.known_violations import known_violation
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.conformance import java_oracle
from tests.harness.kafka.brokers.clients import fresh
from tests.harness.kafka.live.java_application import PATIENCE_S, RECORD_MS, RECORDS, application

PARTITIONS = 6
BATCH_MS = RECORDS * RECORD_MS
PROTOCOLS = {
    "classic/range": "RangeAssignor",
    "classic/cooperative-sticky": "CooperativeStickyAssignor",
    "consumer/uniform": "consumer",
}
WHEN_BUSY = {"classic/range": (0,), "classic/cooperative-sticky": (-1, 0), "consumer/uniform": (-1, 0, 1)}
"""Polls more than else, where Java's threads wait for a processor. Cooperative: one of the three answers that it waits
for has come before that poll() returns. KIP-848: a poll() returns with what was fetched before, while the consumer's
own thread has not begun the commit that it asked for; or it is held up, and the commit is over before it returns."""
Counts = tuple[int, int]
"""Batches that A has begun until it is told to revoke, and until it is told what it has."""


@pytest.fixture(scope="module")
def backlog(node: Cluster) -> str:
    """A topic with more than can be worked off."""
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for made in admin.create_topics([NewTopic("backlog", PARTITIONS, 1)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(PARTITIONS * RECORDS * 10):
        producer.produce("backlog", b"", partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush()
    return "backlog"


def live(cluster: Cluster, topic: str, strategy: str) -> Counts:
    group, protocol = fresh(strategy.replace("/", "-")), PROTOCOLS[strategy]
    given = cluster.bootstrap, topic, group, protocol
    with application(*given) as first, application(*given) as second:
        first.go()
        heard = [first.get(timeout=PATIENCE_S) for _ in range(3)]
        assert heard == ["assigned", "batch", "batch"]
        second.go()
        batches = dict.fromkeys(("revoked", "assigned"), 0)
        begun = 0
        for wanted in batches:
            try:
                while (line := first.get(timeout=PATIENCE_S)) != wanted:
                    assert line == "batch"
                    begun += 1
            except Empty:
                pytest.fail(f"it is never told what was {wanted}; batches begun: {begun}")
            batches[wanted] = begun
        return batches["revoked"], batches["assigned"]


def simulated(strategy: str) -> Counts:
    """B is started just after A has begun its third batch, as far as A is then known to read from."""
    began_ms = next(fact["t"] for fact in facts_of(strategy, 59_000) if fact["fact"] == "reads")
    start_ms = began_ms + 2 * BATCH_MS + 100
    facts = facts_of(strategy, start_ms)

    def begun(callback: str) -> int:
        """Just before it is called."""
        at_ms = next(
            fact["t"]
            for fact in facts
            if fact["t"] > start_ms and fact.get("member") == "a-1" and fact.get("callback") == callback
        )
        return (at_ms - began_ms - 100) // BATCH_MS - 2

    return begun("onPartitionsRevoked"), begun("onPartitionsAssigned")


def facts_of(strategy: str, start_ms: int) -> list[Fact]:
    return simulate(behind(strategy, [{"at": f"{start_ms}ms", "start": "b-1"}]), strategy, 1).facts


def behind(strategy: str, timeline: list[dict[str, Any]], records: int = RECORDS, **client: int) -> Scenario:
    reads = {"count": 1, "topics": "backlog", "record": f"{RECORD_MS}ms"}
    heartbeats = {"heartbeat.interval.ms": 500} if strategy.startswith("classic") else {}
    more = {name.replace("_", "."): value for name, value in client.items()}
    document = {
        "name": "behind",
        "duration": "60s",
        "topics": {"backlog": {"partitions": PARTITIONS, "rate": "5000/s"}},
        "members": {"a": reads, "b": reads},
        "client": {"max.poll.records": records, **heartbeats, **more},
        "broker": {
            "group.initial.rebalance.delay.ms": 0,
            "group.consumer.min.heartbeat.interval.ms": 50,
            "group.consumer.heartbeat.interval.ms": 500,
        },
        "network": {"latency": "1ms"},
        "timeline": timeline,
    }
    return parse_scenario(document)


@pytest.mark.parametrize("strategy", PROTOCOLS)
def test_who_is_behind_is_called_back_in_the_same_poll_as_javas(node: Cluster, backlog: str, strategy: str) -> None:
    """Or on a busy machine with a poll more or less (`WHEN_BUSY`)."""
    expected, seen = simulated(strategy), live(node, backlog, strategy)
    assert seen in [(expected[0] + polls, expected[1] + polls) for polls in WHEN_BUSY[strategy]]


def test_eager_gives_up_at_once_and_the_others_poll_by_poll() -> None:
    """Cooperative: a poll() to commit, one to join, one to hear who leads, and then the callback. KIP-848: one to
    commit, one for each callback."""
    assert {strategy: simulated(strategy) for strategy in PROTOCOLS} == {
        "classic/range": (0, 0),
        "classic/cooperative-sticky": (3, 3),
        "consumer/uniform": (1, 2),
    }


# Thrown out


def test_batches_longer_than_the_session_throw_a_cooperative_member_out(node: Cluster, backlog: str) -> None:
    """Its JoinGroup is answered in the middle of a batch, and nobody reads the answer, nor heartbeats, before that is
    over. By then it has been removed; and so it goes on, in turn."""
    seven_seconds = 350
    session = {"session_timeout_ms": 6_000}
    given = (
        node.bootstrap,
        backlog,
        fresh("longer-than-a-session"),
        "CooperativeStickyAssignor",
        seven_seconds,
        RECORD_MS,
    )
    with application(*given, **session) as first, application(*given, **session) as second:
        first.go()
        first.until("batch")
        second.go()
        heard = first.until("lost")
    scenario = behind("classic/cooperative-sticky", [{"at": "8s", "start": "b-1"}], seven_seconds, **session)
    facts = simulate(scenario, "classic/cooperative-sticky", 1).facts
    called = [fact["callback"] for fact in facts if fact["fact"] == "callback" and fact["member"] == "a-1"]
    assert called[:2] == ["onPartitionsAssigned", "onPartitionsLost"]
    assert "revoked" not in heard


def test_kip_848_batches_longer_than_half_of_max_poll_interval_throw_a_member_out(node: Cluster, backlog: str) -> None:
    """Every second poll() that has something to return does not tell the consumer's own thread of itself: 5 s of work
    are too much for 8 s. A classic consumer is not put out by that."""
    allowed = {"max_poll_interval_ms": 8_000}
    with application(node.bootstrap, backlog, fresh("half-of-the-interval"), "consumer", **allowed) as alone:
        alone.go()
        heard = alone.until("lost")
    assert heard.count("batch") <= 4
    assert "onPartitionsLost" in called_in("consumer/uniform", **allowed)
    assert "onPartitionsLost" not in called_in("classic/range", **allowed)


def called_in(strategy: str, **client: int) -> list[str]:
    facts = simulate(behind(strategy, [{"at": "59s", "start": "b-1"}], **client), strategy, 1).facts
    return [fact["callback"] for fact in facts if fact["fact"] == "callback" and fact["member"] == "a-1"]


# Deleted


ALLOWED_MS = 6_000


def test_a_deleted_topic_keeps_an_eager_group_from_reading_as_long_as_javas(node: Cluster) -> None:
    """The commit before the rebalance is refused, and tried again until max.poll.interval.ms is over, by the leader and
    then by the other."""
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    kept, deleted = fresh("kept"), fresh("deleted")
    for made in admin.create_topics([NewTopic(kept, 2, 1), NewTopic(deleted, 2, 1)]).values():
        made.result()
    given = node.bootstrap, f"{kept},{deleted}", fresh("with-a-deleted-topic"), "RangeAssignor"
    settings = {"allow_auto_create_topics": "false", "max_poll_interval_ms": ALLOWED_MS, "session_timeout_ms": 6_000}
    with application(*given, **settings) as first, application(*given, **settings) as second:
        first.go()
        first.until("assigned")
        second.go()
        first.until("assigned")
        second.until("assigned")
        time.sleep(ALLOWED_MS / 1_000)
        for gone in admin.delete_topics([deleted]).values():
            gone.result()
        deleted_s = time.monotonic()
        called_s = []
        for one in (first, second):
            one.get(timeout=PATIENCE_S)
            called_s.append(time.monotonic() - deleted_s)
    assert sorted(called_s) == pytest.approx(deletion_simulated(), abs=2.5)


def deletion_simulated() -> list[float]:
    """When, after the deletion, each of the two is first called back."""
    document = {
        "name": "a deleted topic",
        "duration": "60s",
        "topics": {"kept": {"partitions": 2}, "deleted": {"partitions": 2}},
        "members": {"a": {"count": 2, "topics": ["kept", "deleted"]}},
        "client": {"max.poll.interval.ms": ALLOWED_MS, "session.timeout.ms": 6_000, "heartbeat.interval.ms": 500},
        "network": {"latency": "1ms"},
        "timeline": [{"at": "20s", "delete topic": "deleted"}],
    }
    facts = simulate(parse_scenario(document), "classic/range", 1).facts
    first: dict[str, float] = {}
    for fact in facts:
        if fact["fact"] == "callback" and fact["t"] > 20_000:
            first.setdefault(fact["member"], fact["t"] / 1_000 - 20)
    return sorted(first.values())


# Between


def test_a_static_member_restarted_between_two_cooperative_rounds_leaves_partitions_without_an_owner(
    node: Cluster, backlog: str
) -> None:
    """It comes back without a rebalance, to what is stored for it, and has nothing to give up: nobody asks for the
    second round, in which the other would get its part (harness/measure/known_violations.py, never_gave_it_up)."""
    given = node.bootstrap, backlog, fresh("between-two-rounds"), "CooperativeStickyAssignor", 1, 0
    settings = {"session_timeout_ms": 20_000}
    with application(*given, group_instance_id="b", **settings) as second:
        with application(*given, group_instance_id="a", revoked_ms=60_000, **settings) as first:
            first.go()
            first.until("assigned")
            second.go()
            first.until("revoked")  # and is killed in there
        with application(*given, group_instance_id="a", **settings) as again:
            again.go()
            again.until("assigned")
            time.sleep(25.0)  # a session and more
            owned = assigned_in(node, given[2])
    assert owned == {"a": PARTITIONS // 2, "b": 0}
    assert left_between_two_rounds() == PARTITIONS // 2


def assigned_in(cluster: Cluster, group: str) -> dict[str, int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    described = admin.describe_consumer_groups([group])[group].result(timeout=PATIENCE_S)
    return {one.group_instance_id: len(one.assignment.topic_partitions) for one in described.members}


def left_between_two_rounds() -> int:
    """Partitions that nobody reads at the end of the simulated run, in which the same is done."""
    reads = {"topics": "backlog", "record": "0.1ms"}
    document = {
        "name": "between two rounds",
        "duration": "15m",
        "topics": {"backlog": {"partitions": PARTITIONS, "rate": "100/s"}},
        "members": {"a": {**reads, "instance_id": "a"}, "b": {**reads, "instance_id": "b"}},
        "client": {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 500},
        "callbacks": {"revoked": "60s"},
        "timeline": [
            {"at": "30s", "start": "b"},
            {"at": "35s", "restart": {"members": "a", "downtime": "2s", "kill": True}},
        ],
    }
    scenario = parse_scenario(document)
    with pytest.raises(Broken, match="convergence") as caught:
        simulate(scenario, "classic/cooperative-sticky", 1, watch=Checker().feed)
    assert "without a rebalance" in str(known_violation(scenario, "classic/cooperative-sticky", caught.value))
    return int(str(caught.value).split()[1])

"""Processes in the simulator, where what happens to them meets what they are doing."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest

from rebalance_lab.assignors.model import Group
from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.kafka.wire.broker_connection import encode_request
from rebalance_lab.harness.kafka.wire.codec import TopicIds, to_wire
from rebalance_lab.harness.measure.costs import Costs, costs
from rebalance_lab.harness.measure.invariants import Broken, Checker
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from rebalance_lab.harness.simulator.coordinator_log import Log
from rebalance_lab.harness.simulator.request_sizes import offset_commit_bytes, request_bytes
from rebalance_lab.protocol_v1.common.messages import OffsetCommitRequest, OffsetFetchRequest
from rebalance_lab.protocol_v1.coordinator.state.records import GroupTombstone, OffsetCommit, OffsetTombstone
from rebalance_lab.protocol_v1.member.commits import commit_topics
from tests.harness.small_scenarios import RESTART
from tests.paths import SCENARIOS


class LastFirst:
    """A server's assignor of one's own: members in reverse, one partition after the other."""

    name = "last-first"

    def assign(self, group: Group) -> Mapping[str, Mapping[str, Sequence[int]]]:
        members = sorted(group.members, reverse=True)
        shares: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        for name, topic in group.topics.items():
            for partition in range(topic.partitions):
                shares[members[partition % len(members)]].setdefault(name, []).append(partition)
        return shares


def scenario(**changes: Any) -> Scenario:
    return parse_scenario({**RESTART, **changes})


def cost(scenario: Scenario, strategy: str, seed: int = 1) -> Costs:
    return costs(simulate(scenario, strategy, seed, watch=Checker().feed).facts)


@pytest.mark.parametrize(("rate", "hours", "records"), [("1/m", 5, 300), ("1/h", 100, 100), ("61/s", 1, 219_600)])
def test_topics_are_written_at_their_rate_however_low_or_crooked(rate: str, hours: int, records: int) -> None:
    """A part of a record in each of twelve partitions is not to be seen."""
    topics = {"orders": {"partitions": 12, "rate": rate}}
    facts = simulate(scenario(topics=topics, duration=f"{hours}h"), "consumer/uniform", 1).facts
    last = {}
    for fact in facts:
        if fact["fact"] == "stops":
            last |= dict(zip(fact["partitions"]["orders"], fact["at"]["orders"], strict=True))
    assert records - 12 <= sum(last.values()) <= records


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_a_pause_inside_a_callback_ends_with_the_pause(strategy: str) -> None:
    """consumer-1 is stopped while onPartitionsAssigned runs, and works on what has piled up afterwards."""
    pauses = [{"at": f"{at}ms", "pause": {"members": "consumer-1", "for": "3s"}} for at in range(40_100, 60_000, 4_000)]
    troubled = scenario(callbacks={"assigned": "2s"}, timeline=[*RESTART["timeline"], *pauses], duration="4m")
    facts = simulate(troubled, strategy, 1, watch=Checker().feed).facts
    lags = [fact["records"] for fact in facts if fact["fact"] == "lag"]
    assert max(lags) > 60
    assert lags[-1] == 0


def test_a_pause_does_not_get_a_poisoned_record_out_of_the_way() -> None:
    poison = [{"topic": "orders", "partition": 0, "offset": 500, "stall": "40s"}]
    pause = [{"at": "60s", "pause": {"members": "consumer-1", "for": "1s"}}]
    held_up = scenario(poison=poison, timeline=pause, duration="4m")
    facts = simulate(held_up, "classic/range", 1, watch=Checker().feed).facts
    stalled = next(fact for fact in facts if fact["fact"] == "process" and fact["is"] == "stalled")
    lags = {fact["t"]: fact["records"] for fact in facts if fact["fact"] == "lag"}
    during = [records for at_ms, records in lags.items() if stalled["t"] + 5_000 < at_ms < stalled["t"] + 38_000]
    assert during == sorted(during)  # nothing of it is worked off before the record is through
    assert during[-1] > 600


def test_a_servers_assignor_of_ones_own_is_the_brokers() -> None:
    run = simulate(
        scenario(), "consumer/tests.harness.simulator.test_consumer_process:LastFirst", 1, watch=Checker().feed
    )
    first = next(fact for fact in run.facts if fact["fact"] == "reads")
    assert not any(fact["fact"] == "process" and fact["is"] == "failed" for fact in run.facts)
    assert costs(run.facts).unsettled == 0
    assert first["partitions"]["orders"]


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_who_commits_after_each_batch_reads_little_twice_in_a_rolling_restart(strategy: str) -> None:
    restart = {"at": "20s", "rolling restart": {"downtime": "1s", "gap": "2s"}}
    found = cost(scenario(timeline=[restart], client={"enable.auto.commit": False}), strategy)
    assert found.read_twice <= 40  # a record or two of each partition in each rebalance


@pytest.mark.parametrize("interval", ["15s", "20s"])
def test_a_consumer_that_is_stopped_inside_a_slow_batch_commits_the_whole_batch(interval: str) -> None:
    """Batches of ten seconds are events of their own. The process ends its batch, commits it, and closes."""
    slow = scenario(
        topics={"orders": {"partitions": 2, "rate": "60/s"}},
        members={"c": {"count": 2, "topics": "orders", "record": "100ms"}},
        client={
            "max.poll.records": 100,
            "max.poll.interval.ms": interval,
            "enable.auto.commit": False,
            "session.timeout.ms": "6s",
        },
        timeline=[{"at": "24s", "stop": "c-1"}],
        duration="60s",
    )
    assert [cost(slow, "classic/range", seed).read_twice for seed in range(6)] == [0] * 6


@pytest.mark.parametrize("leaps", [True, False])
@pytest.mark.parametrize(
    ("rate", "record", "commits"),
    [
        # One a record, as seen with Java's consumer, but for those that have waited for the group to form.
        ("60/s", "1ms", pytest.approx(18_000 - 7 * 60, rel=0.01)),
        ("3000/s", "1ms", pytest.approx(1_800, rel=0.05)),  # who is behind does 300,000 a member, 500 at a time
    ],
)
def test_who_commits_after_each_batch_asks_as_often_as_there_are_batches(
    rate: str, record: str, commits: object, leaps: bool
) -> None:
    told = scenario(
        topics={"orders": {"partitions": 6, "rate": rate}},
        members={"consumer": {"count": 3, "topics": "orders", "record": record}},
        client={"enable.auto.commit": False},
        timeline=[{"at": "100s", "fail over": {"down": "1s"}}],
        duration="5m",
    )
    facts = simulate(told, "classic/range", 1, leaps=leaps, watch=Checker().feed).facts
    assert next(fact["count"]["OffsetCommit"] for fact in facts if fact["fact"] == "requests") == commits


@pytest.mark.parametrize("leaps", [True, False])
def test_who_is_cut_off_has_nothing_to_commit_when_it_is_back(leaps: bool) -> None:
    """It reads nothing meanwhile, so its polls bring nothing, and are followed by no commit."""
    cut_off = {"at": "30s", "isolate": {"members": "consumer", "for": "100s"}}
    told = scenario(
        topics={"orders": {"partitions": 1, "rate": "1/s"}},
        members={"consumer": {"topics": "orders"}},
        client={"enable.auto.commit": False},
        timeline=[cut_off],
        duration="140s",
    )
    facts = simulate(told, "classic/range", 1, leaps=leaps, watch=Checker().feed).facts
    # One a second before, a batch or two of all that has waited, and again one a second.
    assert next(fact["count"]["OffsetCommit"] for fact in facts if fact["fact"] == "requests") <= 30 + 5 + 10


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_commits_that_wait_for_a_coordinator_do_not_come_after_later_ones(strategy: str) -> None:
    """There is a coordinator again, which the consumer has not found yet when that one goes down, too: all that it was
    asked to commit since the first went down waits, and goes out in order."""
    fails = [{"at": "15s", "fail over": {"down": "30s"}}, {"at": "45005ms", "fail over": {"down": "1s"}}]
    told = scenario(members={"consumer": {"topics": "orders"}}, timeline=fails, client={"enable.auto.commit": False})
    committed: list[int] = []

    def watch(fact: Fact) -> None:
        if fact["fact"] == "durable":
            committed.append(fact["offsets"]["orders"][0])
        if fact["fact"] == "coordinator" and fact["t"] == 45_005:
            assert max(committed) <= 10 * 15

    simulate(told, strategy, 1, watch=watch)
    assert committed == sorted(committed)


def test_members_migrated_to_static_membership_commit_as_who_they_are() -> None:
    """Killed right after: what they committed while nothing happened was accepted, so little is read twice."""
    migration = {"at": "20s", "rolling restart": {"downtime": "1s", "gap": "2s", "strategy": "classic/range+static"}}
    kill = {"at": "150s", "restart": {"members": "consumer-1", "downtime": "5s", "kill": True}}
    settings = {"enable.auto.commit": False}
    found = cost(scenario(timeline=[migration, kill], duration="5m", client=settings), "classic/range")
    assert found.rebalances > 0
    assert found.read_twice <= 20


def test_a_batch_that_was_begun_in_bad_times_ends_soon_after_them() -> None:
    """500 records at 6 s each would last 50 minutes; after 50 s they take 2 ms each again."""
    slow = [{"at": "37s", "slow": {"members": "consumer-1", "factor": 3_000, "for": "50s"}}]
    busy = {"orders": {"partitions": 6, "rate": "1200/s"}}
    facts = simulate(scenario(topics=busy, timeline=slow, duration="5m"), "consumer/uniform", 1).facts
    lags = [fact["records"] for fact in facts if fact["fact"] == "lag"]
    assert max(lags) > 10_000
    assert lags[-1] < 100


@pytest.mark.parametrize("strategy", ["classic/range", "classic/sticky", "consumer/uniform"])
def test_who_is_behind_commits_what_it_has_read_before_it_gives_anything_up(strategy: str) -> None:
    """Batches of ten seconds, and an auto-commit that comes due in each of them: nothing may be read, and lost again,
    between the commit and the revocation, or the end. (cooperative-sticky reads on in between, in Kafka as here.)"""
    reads = {"topics": "orders", "record": "20ms"}
    grows = {
        "topics": {"orders": {"partitions": 12, "rate": "400/s"}},
        "members": {"consumer": {"count": 4, **reads}, "late": {"count": 2, **reads}},
        "timeline": [
            {"at": "60s", "start": {"members": ["late-1", "late-2"]}},
            {"at": "3m", "stop": {"members": "consumer-2"}},
        ],
        "duration": "5m",
    }
    for seed in range(3):
        found = costs(simulate(scenario(**grows), strategy, seed, watch=Checker().feed).facts)
        assert (found.read_twice, found.moved > 0) == (0, True), seed


def test_a_commit_that_is_not_made_counts_as_many_bytes_as_one_that_is() -> None:
    offsets = {("orders", 3): 7, ("orders", 0): 9, ("clicks", 1): 0}
    made = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id="m-1", client_id="m", topics=commit_topics(offsets)
    )
    assert offset_commit_bytes("m", "m-1", None, "g", offsets) == request_bytes(made)


@pytest.mark.parametrize(
    "strategy", ["classic/cooperative-sticky", "classic/range+static", "consumer/uniform", "consumer/range+static"]
)
def test_requests_have_the_bytes_that_kio_writes(strategy: str) -> None:
    """Of every request of a run, in the version that Java's consumer sends; each connection begins with a length."""
    names = [f"topic-{'x' * n}" for n in (0, 200)]
    topics = {name: {"partitions": partitions, "rate": "1/s"} for name, partitions in zip(names, (3, 200), strict=True)}
    ids, kinds = TopicIds(), set()
    for name in names:
        ids.add(name, UUID(bytes=sha256(name.encode()).digest()[:16]))
    members = {"größer": {"count": 3, "topics": names, "rack": "a"}}
    told = scenario(topics=topics, members=members, timeline=[{"at": "60s", "rolling restart": {"downtime": "9s"}}])

    def watch(fact: Fact) -> None:
        if fact["fact"] == "asks":
            request = fact["request"]
            kinds.add(type(request))
            written = encode_request(to_wire(request, request.latest, ids), 7, request.client_id)
            assert request_bytes(request) == 4 + len(written), request

    simulate(told, strategy, 1, messages=True, watch=watch)
    assert {OffsetCommitRequest, OffsetFetchRequest} < kinds


def test_of_a_log_the_last_offset_of_each_partition_is_left() -> None:
    log = Log()
    commits = [
        OffsetCommit(
            group="g", topic="t", partition=partition, offset=offset, leader_epoch=-1, metadata="", commit_timestamp=0
        )
        for partition, offset in ((0, 1), (1, 5), (0, 2), (2, 9))
    ]
    log.append([*commits, GroupTombstone(group="g"), OffsetTombstone(group="g", topic="t", partition=2)])
    assert list(log) == [GroupTombstone(group="g"), commits[2], commits[1]]


def test_a_consumer_that_is_out_for_want_of_a_poll_takes_commits_back_in_an_empty_group() -> None:
    """As Java's does (tests/harness/random_scenarios.py, takes_commits_back): consumer-1 is out, consumer-2 has read on
    and is gone, and the first commit of consumer-1 is of where it had been."""
    timeline = [
        {"at": "10s", "slow": {"members": "consumer-1", "factor": 100_000, "for": "60s"}},
        {"at": "11s", "start": "other"},
        {"at": "60s", "stop": "other"},
    ]
    members = {"consumer-1": {"topics": "orders"}, "other": {"topics": "orders"}}
    client = {"max.poll.interval.ms": "20s", "max.poll.records": 10}
    alone = scenario(members=members, timeline=timeline, client=client, duration="5m")
    with pytest.raises(Broken, match=r"honest commits: consumer-1 commits orders-\d \d+ after \d+"):
        simulate(alone, "consumer/uniform", 1, watch=Checker().feed)
    simulate(alone, "classic/range", 1, watch=Checker().feed)


def out_for_want_of_a_poll(strategy: str, record: str, lag: str = "1000/s") -> list[Fact]:
    """Batches of 50 records, and max.poll.interval.ms is 8 s."""
    document = {
        "name": "behind",
        "duration": "60s",
        "topics": {"orders": {"partitions": 4, "rate": lag}},
        "members": {"a": {"topics": "orders", "record": record}},
        "client": {"max.poll.interval.ms": "8s", "max.poll.records": 50, "session.timeout.ms": "6s"},
        "broker": {
            "group.consumer.min.heartbeat.interval.ms": "1s",
            "group.consumer.heartbeat.interval.ms": "1s",
            "group.consumer.session.timeout.ms": "45s",
        },
    }
    return simulate(parse_scenario(document), strategy, 1, watch=Checker().feed).facts


def lost(facts: Sequence[Fact]) -> int:
    return sum(fact.get("callback") == "onPartitionsLost" for fact in facts)


def test_who_is_behind_needs_two_batches_of_kip_848_to_fit_into_max_poll_interval() -> None:
    """As Java's consumer (Kafka 4.3.1) does: every second poll() that returns what was fetched before goes unheard."""
    assert lost(out_for_want_of_a_poll("consumer/uniform", "90ms")) >= 3
    assert not lost(out_for_want_of_a_poll("consumer/uniform", "70ms"))
    assert not lost(out_for_want_of_a_poll("classic/range", "90ms"))


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_a_batch_is_worked_on_to_its_end_by_who_has_been_put_out_meanwhile(strategy: str) -> None:
    """Its records are in the application's hands, whatever the group thinks of it."""
    facts = out_for_want_of_a_poll(strategy, "400ms")  # 20 s for 50 records
    first = next(fact for fact in facts if fact["fact"] == "reads")
    stopped = next(fact for fact in facts if fact["fact"] == "stops")
    called = next(fact for fact in facts if fact.get("callback") == "onPartitionsLost")
    assert stopped["t"] == called["t"]
    assert stopped["t"] - first["t"] >= 20_000
    assert sum(stopped["at"]["orders"]) >= 48


def test_batches_of_who_falls_behind_grow_as_javas_do() -> None:
    """Four times as much comes in as is done, and each batch is what was written during the one before last, so twice
    the last: seen with Java's consumer were 1, 3, 4, 11, 17, 44, 68 and 176 records. The first that takes 15 s begins
    after 15 s, the next takes 30, and that is too long. If a poll() had all that waits, it would begin after 5 s."""
    document = {
        "name": "slow",
        "duration": "3m",
        "topics": {"orders": {"partitions": 4, "rate": "40/s"}},
        "members": {"a": {"topics": "orders", "record": "1ms"}},
        "client": {"max.poll.interval.ms": "29s", "max.poll.records": 4_000},
        "timeline": [{"at": "20s", "slow": {"members": "a", "factor": 100}}],
    }
    facts = simulate(parse_scenario(document), "classic/range", 1, watch=Checker().feed).facts
    out = next(fact for fact in facts if fact.get("because") == "member left")
    assert 57_000 < out["t"] - 20_000 < 61_000


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_after_a_poisoned_record_the_rest_of_its_batch_is_worked_on(strategy: str) -> None:
    """It was given to the application together with that record, which is the middle one of its batch."""
    document = {
        "name": "poisoned",
        "duration": "60s",
        "topics": {"orders": {"partitions": 1, "rate": "2000/s"}},
        "members": {"a": {"topics": "orders", "record": "1ms"}},
        "client": {"max.poll.interval.ms": "8s", "max.poll.records": 100, "session.timeout.ms": "6s"},
        "poison": [{"topic": "orders", "partition": 0, "offset": 1050, "stall": "20s"}],
    }
    facts = simulate(parse_scenario(document), strategy, 1, watch=Checker().feed).facts
    stalled = next(fact for fact in facts if fact.get("is") == "stalled")
    stopped = next(fact for fact in facts if fact["fact"] == "stops")
    assert stopped["at"]["orders"][0] == pytest.approx(1_100, abs=5)
    assert stopped["t"] - stalled["t"] == pytest.approx(20_050, abs=5)


def test_records_that_two_read_wait_only_once() -> None:
    """Two cooperative members whose batches outlast the session throw each other out, and read on until they hear."""
    example = load_scenario(SCENARIOS / "long_batches.yaml")
    facts = simulate(example, "classic/cooperative-sticky", 1, watch=Checker().feed).facts
    lost = [fact["member"] for fact in facts if fact.get("callback") == "onPartitionsLost"]
    lags = [fact["records"] for fact in facts if fact["fact"] == "lag"]
    assert lost[:6] == ["first", "second"] * 3
    assert 10_000 < max(lags) < 51_000  # a burst of 50,000 records; the rest can be kept up with


def test_a_deleted_topic_keeps_an_eager_group_from_reading_for_twice_what_a_poll_may_take() -> None:
    example = load_scenario(SCENARIOS / "deleted_topic.yaml")
    gaps = {
        strategy: cost(example, strategy).unowned_longest_s
        for strategy in ("classic/range", "classic/cooperative-sticky", "consumer/uniform")
    }
    assert gaps.pop("classic/range") == pytest.approx(2 * 300, abs=10)
    assert max(gaps.values()) < 10


EVERY_KIND = ["classic/range", "classic/cooperative-sticky", "classic/range+static", "consumer/uniform"]


@pytest.mark.parametrize("strategy", EVERY_KIND)
@pytest.mark.parametrize("gone", [0, 1, 20])
def test_a_topic_that_is_created_again_is_read_from_its_beginning(strategy: str, gone: int) -> None:
    """And nothing that was read of the one before counts as progress in it."""
    again = {"name": "orders", "partitions": 6, "rate": "6/s"}
    timeline = [{"at": "60s", "delete topic": "orders"}, {"at": f"{60 + gone}s", "create topic": again}]
    told = scenario(timeline=timeline, duration="30m")
    for seed in range(3):
        facts = simulate(told, strategy, seed, watch=Checker().feed).facts
        since = [fact for fact in facts if fact["t"] >= 60_000]
        first: dict[int, int] = {}
        for fact in since:
            if fact["fact"] == "reads":
                for index, start in zip(fact["partitions"]["orders"], fact["from"]["orders"], strict=True):
                    first.setdefault(index, start)
        assert first == dict.fromkeys(range(6), 0)


@pytest.mark.parametrize("strategy", EVERY_KIND)
def test_offsets_of_a_deleted_topic_are_gone_whoever_is_the_coordinator(strategy: str) -> None:
    """It is deleted while there is none, and the new one has more records by the time that it is read."""
    again = {"name": "orders", "partitions": 6, "rate": "6000/s"}
    timeline = [
        {"at": "40s", "fail over": {"down": "20s"}},
        {"at": "50s", "delete topic": "orders"},
        {"at": "50s", "create topic": again},
        {"at": "70s", "rolling restart": {"downtime": "1s"}},
    ]
    simulate(scenario(timeline=timeline, duration="30m"), strategy, 1, watch=Checker().feed)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_who_commits_with_every_poll_reads_next_to_nothing_twice(strategy: str) -> None:
    """auto.commit.interval.ms=0, and a crash."""
    crash = [{"at": "60s", "restart": {"members": "consumer-2", "downtime": "10s", "kill": True}}]
    found = cost(scenario(timeline=crash, client={"auto.commit.interval.ms": 0}), strategy)
    assert found.read_twice <= 6
    assert sum(cost(scenario(timeline=crash), strategy, seed).read_twice for seed in range(1, 6)) > 5 * 20


@pytest.mark.parametrize(("record", "thrown_out"), [("2ms", False), ("5ms", True)])
def test_a_batch_and_a_heartbeat_interval_must_fit_into_a_cooperative_follower_s_session(
    record: str, thrown_out: bool
) -> None:
    """It hears that a rebalance is complete after its batch, and sends its first heartbeat an interval later. Three of
    Java's consumers, with the same times: batches of 5 s cost one its partitions, batches of 2 s nobody."""
    reads = {"count": 1, "topics": "orders", "record": record}
    told = scenario(
        topics={"orders": {"partitions": 6, "rate": "5000/s"}},
        members={"a": reads, "b": reads, "c": reads},
        client={"max.poll.records": 1_000, "heartbeat.interval.ms": 3_000, "session.timeout.ms": 6_000},
        timeline=[{"at": "5s", "start": "b-1"}, {"at": "40s", "start": "c-1"}],
        duration="2m",
    )
    facts = simulate(told, "classic/cooperative-sticky", 1).facts
    lost = {fact["member"] for fact in facts if fact["fact"] == "callback" and fact["callback"].endswith("Lost")}
    assert lost == ({"b-1"} if thrown_out else set())


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
@pytest.mark.parametrize(("wants", "within_s"), [({"topics": ["orders", "new"]}, 6), ({"pattern": "orders|new"}, 301)])
def test_a_topic_that_was_missing_is_heard_of_by_those_who_ask_for_it(
    strategy: str, wants: dict[str, Any], within_s: int
) -> None:
    """By name, every second; by pattern, with metadata.max.age.ms. (Java's consumers read it after 0.2 to 0.4 s.)"""
    creates = {"at": "60s", "create topic": {"name": "new", "partitions": 2, "rate": "1/s"}}
    told = scenario(members={"consumer": {"count": 2, **wants}}, timeline=[creates], duration="10m")
    facts = simulate(told, strategy, 1, watch=Checker().feed).facts
    read_ms = next(fact["t"] for fact in facts if fact["fact"] == "reads" and "new" in fact["partitions"])
    assert 60_000 < read_ms <= 60_000 + within_s * 1_000
    assert "topics" in wants or read_ms > 70_000


@pytest.mark.parametrize("strategy", ["classic/cooperative-sticky", "consumer/uniform"])
def test_who_subscribes_again_to_what_it_still_owns_reads_on_where_it_was(strategy: str) -> None:
    """A deleted topic keeps a classic member from rebalancing, so it owns what it has unsubscribed from meanwhile. (An
    eager one reads nothing then.)"""
    known = {name: {"partitions": 2, "rate": "10/s"} for name in ("kept", "gone", "other")}
    timeline = [
        {"at": "60s", "delete topic": "gone"},
        {"at": "65s", "subscribe": {"members": "consumer-1", "topics": "other"}},
        {"at": "80s", "subscribe": {"members": "consumer-1", "topics": "kept"}},
    ]
    members = {"consumer": {"count": 1, "topics": list(known)}}
    told = scenario(topics=known, members=members, timeline=timeline, duration="16m")
    facts = simulate(told, strategy, 1, watch=Checker().feed).facts
    begins = [fact for fact in facts if fact["fact"] == "reads" and "kept" in fact["partitions"]]
    assert [fact["t"] < 90_000 for fact in begins[1:2]] == [True]
    assert costs(facts).read_twice == 0


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/range"])
def test_what_was_read_of_a_topic_of_that_name_does_not_count_once_the_new_one_is_as_large(
    strategy: str,
) -> None:
    timeline = [
        {"at": "60s", "delete topic": "orders"},
        {"at": "62s", "create topic": {"name": "orders", "partitions": 2, "rate": "10/s"}},
        {"at": "64s", "add partitions": {"topic": "orders", "to": 6}},
    ]
    members = {"consumer": {"count": 1, "topics": "orders"}}
    for seed in range(3):
        told = scenario(members=members, timeline=timeline, duration="16m")
        assert costs(simulate(told, strategy, seed, watch=Checker().feed).facts).read_twice == 0


@pytest.mark.parametrize("trouble", [{"fail over": {"down": "1s"}}, {"pause": {"members": "consumer", "for": "50s"}}])
def test_who_does_not_wait_before_it_tries_again_still_lets_time_pass(trouble: dict[str, Any]) -> None:
    """retry.backoff.ms may be 0: a member asked for its coordinator for ever, in one and the same millisecond."""
    impatient = {"retry.backoff.ms": 0, "retry.backoff.max.ms": 0}

    def too_long(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(30)
    try:
        for strategy in ("classic/range", "consumer/uniform"):
            run = simulate(scenario(client=impatient, timeline=[{"at": "40s", **trouble}]), strategy, 1)
            assert run.facts[-1]["t"] == 120_000
    finally:
        signal.alarm(0)

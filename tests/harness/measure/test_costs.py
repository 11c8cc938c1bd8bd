"""What a run is said to have cost, checked by hand: in simulated runs, and in the intervals that a chart draws."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import pytest

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.costs import Costs, costs
from rebalance_lab.harness.measure.ownership import timelines
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.harness.one_group import FOUR, cost, facts_of


class TestToTheEnd:
    """What is not over when the run ends has cost as much as if it had ended then."""

    def test_nobody_is_left(self) -> None:
        found = cost({"at": "1m", "crash": "c-1"})
        assert (found.unowned_s, found.unowned_worst_s, found.unowned_longest_s) == (4 * 540, 540, 540)
        assert found.unsettled == 1

    def test_what_waits_when_the_run_ends(self) -> None:
        """10 records a second for 2.5 s."""
        assert cost({"at": "597500ms", "crash": "c-1"}).lag_peak == 25

    @pytest.mark.parametrize("event", ["pause", "isolate"])
    def test_the_owner_stands_still(self, event: str) -> None:
        """It is the owner until it hears that it is not."""
        found = cost({"at": "590s", event: {"members": "c-1", "for": "1h"}})
        assert found.stalled_s == 4 * 10
        assert found.unsettled == 1

    def test_a_record_holds_the_owner_up(self) -> None:
        poison = [{"topic": "t", "partition": 0, "offset": 1_400, "stall": "1h"}]
        found = cost(poison=poison, duration="600s", client={"max.poll.interval.ms": "2h"})
        assert found.stalled_s == pytest.approx(4 * (600 - 560), abs=8)

    def test_a_topic_is_never_read(self) -> None:
        """From the first event on, as any other."""
        nothing = "classic/tests.harness.measure.test_costs:Nothing"
        found = cost({"at": "1m", "pause": {"members": "c-1", "for": "1s"}}, strategy=nothing, duration="3m")
        assert found.unowned_s == 4 * 120

    def test_a_topic_is_never_read_and_nothing_happens(self) -> None:
        found = cost(strategy="classic/tests.harness.measure.test_costs:Nothing", duration="3m")
        assert found.unowned_s == pytest.approx(4 * 180, abs=4 * 10)

    def test_a_group_that_never_finds_back_costs_more_than_one_that_does(self) -> None:
        crash = {"at": "1m", "crash": "c-1"}
        members = {"c": {"count": 3, "topics": "t"}}
        given: dict[str, Any] = {"members": members, "client": {"session.timeout.ms": "20m"}}
        assert cost(crash, strategy="consumer/uniform", **given).unowned_s < cost(crash, **given).unowned_s


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
@pytest.mark.parametrize("how", ["stop", "crash"])
def test_who_ends_for_good_leaves_a_gap_however_it_ends(how: str, strategy: str) -> None:
    assert cost({"at": "1m", how: "c-1"}, strategy=strategy).unowned_s == pytest.approx(4 * 540, abs=4)


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_who_closes_reads_nothing_while_it_waits_for_a_coordinator(strategy: str) -> None:
    """It is to commit and to leave, and there is nobody for 20 s."""
    down = {"at": "100s", "fail over": {"down": "20s"}}
    found = cost(down, {"at": "101s", "stop": "c-1"}, strategy=strategy, members={"c": {"count": 2, "topics": "t"}})
    assert found.unowned_longest_s == pytest.approx(19 + 3, abs=3)
    assert found.unowned_s + found.stalled_s > 2 * 19


class TestStandstill:
    def test_it_ends_with_the_process(self) -> None:
        poison = [{"topic": "t", "partition": 0, "offset": 100, "stall": "20m"}]
        found = cost({"at": "1m", "crash": "c-1"}, poison=poison)
        assert found.stalled_s == pytest.approx(4 * (60 - 40), abs=4)

    def test_two_reasons_count_once(self) -> None:
        pauses = {"at": "1m", "pause": {"members": "c-1", "for": "40s"}}
        found = cost(pauses, {"at": "70s", "isolate": {"members": "c-1", "for": "5s"}})
        assert found.stalled_s == 4 * 40

    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    def test_it_ends_when_somebody_else_reads(self, strategy: str) -> None:
        """Who is paused has been put out by then, and has only not heard of it."""
        broker = {"group.consumer.session.timeout.ms": 45_000}
        pauses = {"at": "2m", "pause": {"members": "c-1", "for": "5m"}}
        found = cost(pauses, strategy=strategy, members={"c": {"count": 2, "topics": "t"}}, broker=broker)
        assert found.stalled_s == pytest.approx(2 * 47, abs=2 * 8)
        assert found.unsettled == 0

    def test_it_goes_on_when_that_one_is_gone(self) -> None:
        pauses = {"at": "2m", "pause": {"members": "c-1", "for": "6m"}}
        crash = {"at": "5m", "crash": "c-2"}
        found = cost(pauses, crash, members={"c": {"count": 2, "topics": "t"}})
        assert found.stalled_s == pytest.approx(2 * 45 + 2 * 180, abs=10)

    def test_it_counts_once_where_two_have_not_heard_that_they_are_out(self) -> None:
        """The partition is the second one's again when the third is gone, and not the first one's as well."""
        pauses = [{"at": at, "pause": {"members": name, "for": "20m"}} for at, name in (("1m", "c-1"), ("3m", "c-2"))]
        topics, members = {"t": {"partitions": 1}}, {"c": {"count": 3, "topics": "t"}}
        found = cost(*pauses, {"at": "5m", "crash": "c-3"}, topics=topics, members=members)
        assert found.stalled_s == pytest.approx(2 * 45 + 300, abs=10)


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_who_is_cut_off_fetches_nothing(strategy: str) -> None:
    """Half of 10 records a second wait for 30 s, and are caught up with; then for a session, and only the few that were
    processed before the cut and not committed are read twice."""
    members = {"c": {"count": 2, "topics": "t", "record": "10ms"}}
    short, long = ({"at": "2m", "isolate": {"members": "c-1", "for": lasts}} for lasts in ("30s", "5m"))
    found = cost(short, strategy=strategy, members=members)
    assert (found.lag_peak, found.read_twice, found.moved) == (pytest.approx(150, abs=12), 0, 0)
    found = cost(long, strategy=strategy, members=members)
    assert found.lag_peak == pytest.approx(5 * 47, abs=45)
    assert found.read_twice <= 5 * 6


class TestWhatNobodyWants:
    def test_a_topic_is_wanted_again_later(self) -> None:
        topics = {"t": FOUR, "other": FOUR}
        turns = [{"at": at, "subscribe": {"members": "c-1", "topics": to}} for at, to in (("1m", "other"), ("8m", "t"))]
        assert cost(*turns, topics=topics).unowned_s < 4 * 10

    def test_who_takes_a_place_in_a_surge_takes_its_wishes(self) -> None:
        topics = {"t": FOUR, "other": FOUR}
        turns = {"at": "1m", "subscribe": {"members": "c-1", "topics": "other"}}
        surge = {"at": "2m", "rolling restart": {"downtime": "5s", "gap": "5s", "surge": True}}
        assert cost(turns, surge, topics=topics).unowned_s < 4 * 30

    @pytest.mark.parametrize("other", ["d", "c~1", "c~2"])
    def test_who_is_called_as_if_it_were_in_anothers_place_has_wishes_of_its_own(self, other: str) -> None:
        """Half a minute in which nobody reads what the one that stops alone reads."""
        members = {"c": {"topics": "t"}, other: {"topics": "other"}}
        found = cost({"at": "9m30s", "stop": "c"}, topics={"t": FOUR, "other": FOUR}, members=members)
        assert found.unowned_s == pytest.approx(4 * 30, abs=4)

    def test_nobody_ever_subscribes(self) -> None:
        topics = {"t": FOUR, "other": FOUR}
        found = cost({"at": "1m", "pause": {"members": "c-1", "for": "1s"}}, topics=topics)
        assert (found.unowned_s, found.unsettled) == (0, 0)

    def test_what_is_written_there_waits_for_nobody(self) -> None:
        found = cost(topics={"t": FOUR, "other": {"partitions": 4, "rate": "1000/s"}})
        assert (found.lag_peak < 200, found.recover_s < 10) == (True, True)

    def test_everybody_unsubscribes(self) -> None:
        topics = {"t": FOUR, "other": FOUR}
        drops = {"at": "1m", "subscribe": {"members": "c-1", "topics": "t"}}
        later = {"at": "5m", "pause": {"members": "c-1", "for": "1s"}}
        found = cost(drops, later, topics=topics, members={"c": {"count": 1, "topics": ["t", "other"]}})
        assert found.unowned_s < 4 * 10
        assert found.unsettled == 0

    def test_a_topic_is_deleted(self) -> None:
        assert cost({"at": "1m", "delete topic": "t"}).unowned_s == 0


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_a_topic_that_is_deleted_and_created_again_begins_anew(strategy: str) -> None:
    """Its records count from 0 again. Who asks for it all the time has it within a second, or with a heartbeat."""
    deletes = {"at": "2m", "delete topic": "t"}
    creates = {"at": "5m", "create topic": {"name": "t", **FOUR}}
    found = cost(deletes, creates, strategy=strategy, duration="20m")
    assert (found.read_twice, found.moved) == (0, 0)
    assert found.unowned_s < 4 * 6


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_it_is_chance_when_heartbeats_and_commits_are_due_as_an_event_comes(strategy: str) -> None:
    """A timeline that is a second later costs as much, and in some seeds a heartbeat has just been sent."""
    scenario = {"duration": "5m", "topics": {"t": FOUR}, "members": {"c": {"count": 2, "topics": "t"}}}

    def rows(event: str, at_s: int) -> list[Costs]:
        told = parse_scenario({**scenario, "timeline": [{"at": f"{at_s}s", event: "c-1"}]})
        return [costs(simulate(told, strategy, seed).facts) for seed in range(1, 31)]

    unowned_s = [fmean(row.unowned_s for row in rows("stop", at_s)) for at_s in range(100, 105)]
    assert max(unowned_s) < 1.5 * min(unowned_s)
    twice = [fmean(row.read_twice for row in rows("crash", at_s)) for at_s in range(100, 105)]
    assert twice == [pytest.approx(2.5 * 5, rel=0.4)] * 5


def test_what_members_are_called_is_nothing_that_costs() -> None:
    """Who leads a group after its leader goes by the order of a hash table; here that is fatal if it is one that is
    gone, and waited for because it is static."""
    surge = {"at": "100s", "rolling restart": {"downtime": "10s", "gap": "20s", "surge": True}}

    def mean(name: str) -> float:
        members = {name: {"count": 3, "topics": "t"}}
        told = {"duration": "8m", "topics": {"t": FOUR}, "members": members, "timeline": [surge]}
        runs = [simulate(parse_scenario(told), "classic/cooperative-sticky+static", seed) for seed in range(1, 41)]
        return fmean(costs(run.facts).unowned_s for run in runs)

    assert mean("c") == pytest.approx(mean("worker"), rel=0.15)


class TestRebalances:
    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    def test_new_partitions_are_a_rebalance_also_for_one_who_is_alone(self, strategy: str) -> None:
        """A KIP-848 group with one member is stable all the time: its epoch is bumped, its state stays."""
        found = cost({"at": "2m", "add partitions": {"topic": "t", "to": 8}}, strategy=strategy)
        assert found.rebalances == 1

    def test_those_before_an_event_are_not_counted_after_it(self) -> None:
        """All have joined when it comes, and the group goes on handing out partitions for some seconds."""
        early = {"at": "1500ms", "pause": {"members": "c-1", "for": "10ms"}}
        assert cost(early, strategy="consumer/uniform", members={"c": {"count": 4, "topics": "t"}}).rebalances == 0


def test_an_event_that_changes_nothing_is_settled_at_once() -> None:
    found = cost({"at": "1m", "slow": {"members": "c-1", "factor": 2, "for": "10s"}})
    assert (found.unsettled, found.settle_worst_s) == (0, 0)


@pytest.mark.parametrize("event", ["pause", "isolate"])
@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
def test_an_event_is_not_settled_while_an_owner_stands_still(event: str, strategy: str) -> None:
    """Nobody is put out in 20 s, and nothing changes hands. A second event comes to a group that is at rest."""
    later = {"at": "3m", "slow": {"members": "c-1", "factor": 2, "for": "10s"}}
    found = cost({"at": "1m", event: {"members": "c-1", "for": "20s"}}, later, strategy=strategy)
    assert (found.unsettled, found.settle_worst_s, found.settle_mean_s) == (0, 20, 10)


def test_nor_while_a_record_holds_an_owner_up() -> None:
    """From the 1,000th record on, in the 400th second; the slow one is met before that."""
    poison = [{"topic": "t", "partition": 0, "offset": 1_000, "stall": "30s"}]
    found = cost({"at": "399s", "slow": {"members": "c-1", "factor": 2, "for": "10s"}}, poison=poison)
    assert (found.unsettled, found.settle_worst_s) == (0, pytest.approx(31, abs=1))


class Nothing:
    """An assignor that gives nobody anything."""

    name = "nothing"

    def assign(self, group: object) -> dict[str, dict[str, list[int]]]:
        return {}


class TestStartUp:
    """What it takes until a group runs is no cost of what happens to it."""

    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    def test_a_group_to_which_nothing_happens_costs_nothing(self, strategy: str) -> None:
        """A KIP-848 group hands partitions on while it starts; a classic one waits before it begins."""
        hardly_anything = {"at": "2m", "pause": {"members": "c-1", "for": "100ms"}}
        found = cost(hardly_anything, strategy=strategy, members={"c": {"count": 3, "topics": "t"}})
        assert (found.unowned_s, found.moved, found.rebalances, found.needless_revocations) == (0, 0, 0, 0)
        assert (found.lag_peak, found.behind_s, found.recover_s) == (0, 0, 0)

    @pytest.mark.parametrize("strategy", ["classic/cooperative-sticky", "classic/load-aware", "classic/range"])
    @pytest.mark.parametrize("jitter", ["0ms", "20ms"])
    def test_nor_is_it_over_between_two_rounds_of_a_cooperative_rebalance(self, jitter: str, strategy: str) -> None:
        """Who comes first has everything, because nobody is waited for; what it gives up is handed on a round later."""
        hardly_anything = {"at": "2m", "pause": {"members": "c-1", "for": "100ms"}}
        given = {"broker": {"group.initial.rebalance.delay.ms": 0}, "network": {"latency": "2ms", "jitter": jitter}}
        found = cost(hardly_anything, strategy=strategy, members={"c": {"count": 3, "topics": "t"}}, **given)
        assert (found.unowned_s, found.moved, found.rebalances, found.needless_revocations) == (0, 0, 0, 0)

    @pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
    def test_somebody_has_nothing_to_read(self, strategy: str) -> None:
        found = cost(strategy=strategy, members={"c": {"count": 6, "topics": "t"}})
        assert (found.unowned_s, found.moved, found.rebalances, found.lag_peak) == (0, 0, 0, 0)

    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    def test_trouble_without_an_event_counts(self, strategy: str) -> None:
        """A poisoned record walks through the group."""
        poison = [{"topic": "t", "partition": 0, "offset": 250, "stall": "2m"}]
        client = {"max.poll.interval.ms": "60s"}
        found = cost(strategy=strategy, poison=poison, client=client, members={"c": {"count": 3, "topics": "t"}})
        assert found.rebalances >= 3
        assert found.moved >= 3

    def test_a_group_that_never_gets_going_has_costs(self) -> None:
        found = cost(strategy="classic/tests.harness.measure.test_costs:Nothing", duration="3m")
        assert found.unowned_s > 4 * 170
        assert found.behind_s > 170

    def test_nor_is_any_of_it_free_because_something_happens_at_last(self) -> None:
        """Five minutes are no start-up any more."""
        pauses = {"at": "9m", "pause": {"members": "c-1", "for": "1s"}}
        found = cost(pauses, strategy="classic/tests.harness.measure.test_costs:Nothing")
        assert found.unowned_s == pytest.approx(4 * 600, abs=4 * 10)
        assert found.behind_s > 590
        assert found.unsettled == 1

    def test_a_topic_created_after_that_is_missed_from_then_on(self) -> None:
        creates = {"at": "8m", "create topic": {"name": "u", **FOUR}}
        given = {"members": {"c": {"pattern": "[tu]"}}, "strategy": "classic/tests.harness.measure.test_costs:Nothing"}
        found = cost(creates, **given)
        assert found.unowned_s == pytest.approx(4 * 600 + 4 * 120, abs=4 * 10)

    @pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
    def test_a_record_that_holds_it_up_counts(self, strategy: str) -> None:
        """In a KIP-848 group the first to come reads everything, and keeps the others waiting until it is through."""
        poison = [{"topic": "t", "partition": 0, "offset": 0, "stall": "2m"}]
        found = cost(strategy=strategy, poison=poison, members={"c": {"count": 4, "topics": "t"}})
        assert found.stalled_s >= 120
        assert found.behind_s > 60

    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    @pytest.mark.parametrize(
        "first",
        [
            {"at": "0s", "slow": {"members": "c-1", "factor": 1.1, "for": "5m"}},
            {"at": "0s", "autoscale": {"members": "c", "least": 3, "most": 4, "lag per member": 9_999}},
            {"at": "2s", "autoscale": {"members": "c", "least": 3, "most": 4, "lag per member": 9_999}},
            {"at": "10s", "start": ["c-1", "c-2", "c-3"]},
        ],
        ids=["slow", "autoscaled", "autoscaled soon", "nobody before"],
    )
    def test_what_it_begins_with_is_a_part_of_it(self, first: dict[str, Any], strategy: str) -> None:
        found = cost(first, strategy=strategy, members={"c": {"count": 3, "topics": "t"}})
        assert (found.unowned_s, found.moved, found.rebalances, found.behind_s) == (0, 0, 0, 0)
        assert (found.settle_worst_s, found.unsettled) == (0, 0)

    def test_a_crash_in_it_counts(self) -> None:
        found = cost({"at": "2s", "crash": "c-1"}, members={"c": {"count": 3, "topics": "t"}})
        assert found.unowned_s > 4 * 40

    def test_what_it_left_to_be_worked_off_counts_from_the_first_event_on(self) -> None:
        """Some 60 records, one every two seconds faster than they come; without the event none of them counts."""
        slow = {"members": {"c": {"count": 1, "topics": "t", "record": "95ms"}}}
        pauses = {"at": "30s", "pause": {"members": "c-1", "for": "100ms"}}
        found, nothing = cost(pauses, **slow), cost(**slow)
        assert nothing.behind_s == 0
        assert found.behind_s == pytest.approx(behind_from(facts_of(pauses, **slow), 30_000), abs=4)

    @pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
    def test_nothing_of_that_is_left_once_it_is_worked_off(self, strategy: str) -> None:
        """Not even less than a second's records. Nobody notices the fail-over."""
        given = {"topics": {"t": {"partitions": 6, "rate": "600/s"}}, "strategy": strategy}
        members = {"c": {"count": 3, "topics": "t", "record": "2ms"}}
        found = cost({"at": "100s", "fail over": {"down": "2s"}}, members=members, duration="25m", **given)
        assert (found.lag_peak, found.lag_p99, found.behind_s) == (0, 0, 0)

    @pytest.mark.parametrize("duration", ["1m", "2m", "20m"])
    def test_nor_while_it_is_worked_off_where_nothing_happens(self, duration: str) -> None:
        """Some 50 records, of which one in two seconds is worked off; loads count nevertheless."""
        topics = {"t": {**FOUR, "skew": [0.4, 0.2, 0.2, 0.2]}}
        members = {"a": {"topics": "t", "record": "160ms"}, "b": {"topics": "t", "record": "240ms"}}
        found = cost(topics=topics, members=members, duration=duration)
        assert (found.lag_peak, found.behind_s) == (0, 0)
        assert found.load_skew == 1.2

    def test_what_stays_as_it_is_counts(self) -> None:
        """As many are processed as come."""
        found = cost(members={"c": {"count": 1, "topics": "t", "record": "100ms"}})
        assert found.behind_s > 590


def behind_from(facts: list[Fact], from_ms: int) -> float:
    """Until it has caught up, in a run that is behind only once."""
    behind_ms = [fact["t"] for fact in facts if fact["fact"] == "lag" and fact["records"] > fact["rate"]]
    return (max(behind_ms) - from_ms) / 1_000


def test_nothing_is_missed_before_anybody_has_subscribed() -> None:
    create = {"at": "1m", "create topic": {"name": "new", "partitions": 3}}
    found = cost(create, {"at": "5m", "start": "c-1"}, members={"c": {"count": 1, "topics": "t"}})
    assert found.unowned_s < 4 * 10


class TestReadTwice:
    """Whoever reads at the same time may stop in any order."""

    def twice(self, *spans: tuple[str, str, int]) -> int:
        facts: list[Fact] = []
        for now_ms, (name, what, offset) in enumerate(spans):
            where = "from" if what == "reads" else "at"
            facts.append({"t": now_ms, "fact": what, "member": name, "partitions": {"t": [0]}, where: {"t": [offset]}})
        return costs(facts).read_twice

    def test_one_after_the_other(self) -> None:
        spans = ("a", "reads", 0), ("a", "stops", 100), ("b", "reads", 80), ("b", "stops", 150)
        assert self.twice(*spans) == 20

    def test_who_came_later_stops_first(self) -> None:
        spans = ("a", "reads", 0), ("b", "reads", 50), ("b", "stops", 60), ("a", "stops", 100)
        assert self.twice(*spans) == 10

    def test_three_times_is_twice_again(self) -> None:
        spans = [(name, what, at) for name in "abc" for what, at in (("reads", 10), ("stops", 30))]
        assert self.twice(*spans) == 40


def test_what_is_kept_stands_still_while_a_callback_goes_on() -> None:
    """A second member is given one of three partitions: the first processes none of them while it writes down the state
    of the one that it gives up, nor, as ever, afterwards that one."""
    changes = {"topics": {"t": {"partitions": 3, "rate": "10/s"}}, "callbacks": {"revoked": "4s"}}
    members = {"a": {"topics": "t"}, "b": {"topics": "t"}}
    found = cost({"at": "2m", "start": "b"}, strategy="classic/cooperative-sticky", members=members, **changes)
    assert found.stalled_s == 3 * 4
    assert found.moved == 1


@pytest.mark.parametrize("strategy", ["classic/range", "classic/cooperative-sticky", "consumer/uniform"])
def test_what_stands_still_is_drawn(strategy: str) -> None:
    """A chart's amber, times what is read under it, is what the costs say; nothing else happens at the time."""
    changes = {"callbacks": {"revoked": "4s", "assigned": "3s"}, "members": {"c": {"count": 3, "topics": "t"}}}
    poison = [{"topic": "t", "partition": 0, "offset": 1_000, "stall": "20s"}]
    restarts = {"at": "2m", "restart": {"members": "c-1", "downtime": "5s"}}
    paused = {"at": "4m", "pause": {"members": "c-2", "for": "20s"}}
    facts = facts_of(restarts, paused, strategy=strategy, poison=poison, **changes)
    drawn = timelines(facts)
    stalled_ms = sum(
        max(0, min(state.end_ms, span.end_ms) - max(state.start_ms, span.start_ms, 120_000)) * len(span.partitions)
        for state in drawn.states
        if state.what != "running"
        for span in drawn.reads
        if span.member == state.member
    )
    assert stalled_ms == costs(facts).stalled_s * 1_000
    assert {state.what for state in drawn.states} == {"running", "paused", "held up by a record", "in a callback"}


def test_assignors_that_ask_know_the_loads_of_partitions() -> None:
    """Half of all records come to the first of six partitions."""
    topics = {"t": {"partitions": 6, "rate": "100/s", "skew": [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]}}
    grows = {"at": "5m", "add partitions": {"topic": "t", "to": 9}}
    given: dict[str, Any] = {"topics": topics, "members": {"c": {"count": 2, "topics": "t"}}}
    assert cost(strategy="classic/load-aware", **given).load_skew == 1
    assert cost(strategy="classic/cooperative-sticky", **given).load_skew == 1.4
    aware, sticky = (cost(grows, strategy=f"classic/{one}", **given) for one in ("load-aware", "cooperative-sticky"))
    assert aware.load_skew < sticky.load_skew
    assert cost(strategy="classic/load-aware", topics={"t": {"partitions": 4}}).unowned_s == 0


@pytest.mark.parametrize("strategy", ["classic/range", "consumer/uniform"])
@pytest.mark.parametrize(
    "what", [{"stop": {}}, {"crash": {}}, {"restart": {"downtime": "5s"}}, {"pause": {"for": "20s"}}]
)
def test_what_happens_at_one_moment_is_one_event_however_it_is_written(what: dict[str, Any], strategy: str) -> None:
    """There was no time to settle between the two, nor did the first of them take none."""
    [(kind, how)] = what.items()
    members = {"c": {"count": 4, "topics": "t"}}
    at_once = cost({"at": "2m", kind: {"members": ["c-1", "c-3"], **how}}, strategy=strategy, members=members)
    each = [{"at": "2m", kind: {"members": member, **how}} for member in ("c-1", "c-3")]
    assert cost(*each, strategy=strategy, members=members) == at_once

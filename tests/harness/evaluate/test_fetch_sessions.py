"""Fetch sessions: the cache's rules one by one, how many a broker needs, and what happens when slots do not suffice."""

from __future__ import annotations

from random import Random

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.harness.evaluate.fetch_sessions.load import Client, deploy
from rebalance_lab.harness.evaluate.fetch_sessions.prediction import (
    Placement,
    fetcher_of,
    follower_clients,
    predict,
    thrash_per_hour,
    warning,
)
from rebalance_lab.harness.evaluate.fetch_sessions.session_cache import EVICTION_MS, FetchSessionCache
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.to_group import group_of

OLD = EVICTION_MS + 1
FOLLOWER, CONSUMER = True, False


def full_cache(*sessions: tuple[bool, int]) -> tuple[FetchSessionCache, list[int]]:
    """One shard that is full with these at time 0."""
    cache = FetchSessionCache(len(sessions), shards=1)
    made = [cache.maybe_create(0, privileged, size) for privileged, size in sessions]
    assert None not in made
    return cache, [one for one in made if one is not None]


@pytest.mark.parametrize(
    ("there", "age_ms", "newcomer", "gets_in"),
    [
        ((CONSUMER, 5), 0, (CONSUMER, 50), False),  # too young to be put out by its like
        ((CONSUMER, 5), OLD, (CONSUMER, 6), True),
        ((CONSUMER, 5), OLD, (CONSUMER, 5), False),  # an equal is not worth more
        ((CONSUMER, 5), OLD, (CONSUMER, 4), False),
        ((CONSUMER, 50), 0, (FOLLOWER, 1), True),  # a follower puts out any consumer at once
        ((FOLLOWER, 1), OLD, (CONSUMER, 50), False),  # and no consumer ever a follower in use
        ((FOLLOWER, 5), 0, (FOLLOWER, 50), False),
        ((FOLLOWER, 5), OLD, (FOLLOWER, 6), True),
    ],
)
def test_who_may_put_out_whom(there: tuple[bool, int], age_ms: int, newcomer: tuple[bool, int], gets_in: bool) -> None:
    cache, (session,) = full_cache(there)
    assert cache.touch(session, age_ms, there[1])
    assert (cache.maybe_create(age_ms, *newcomer) is not None) == gets_in
    assert cache.touch(session, age_ms, there[1]) == (not gets_in)


def test_what_nobody_has_used_for_two_minutes_goes_first_whatever_it_is() -> None:
    cache, (follower, consumer) = full_cache((FOLLOWER, 100), (CONSUMER, 1))
    cache.touch(consumer, OLD, 1)
    assert cache.maybe_create(OLD, CONSUMER, 1) is not None
    assert follower not in cache
    assert consumer in cache


def test_two_minutes_are_not_yet_more_than_two_minutes() -> None:
    cache, (session,) = full_cache((CONSUMER, 1))
    assert cache.maybe_create(EVICTION_MS, CONSUMER, 9) is None
    assert session in cache


def test_age_counts_only_once_the_session_has_been_used() -> None:
    cache, (session,) = full_cache((CONSUMER, 1))
    cache.touch(session, EVICTION_MS, 1)  # old enough a moment later, but nobody looks until it is used again
    assert cache.maybe_create(OLD, CONSUMER, 9) is None
    cache.touch(session, OLD, 1)
    assert cache.maybe_create(OLD, CONSUMER, 9) is not None


def test_slots_are_split_over_eight_shards_and_the_rest_is_lost() -> None:
    assert [FetchSessionCache(slots).slots for slots in (1_000, 1_007, 8, 7)] == [1_000, 1_000, 8, 0]
    assert FetchSessionCache(7).maybe_create(0, FOLLOWER, 5) is None


def test_a_full_shard_refuses_while_another_has_room_and_the_next_attempt_finds_it() -> None:
    cache = FetchSessionCache(2, shards=2)
    first = cache.maybe_create(0, CONSUMER, 1)
    second = cache.maybe_create(0, CONSUMER, 1)
    assert first is not None
    assert second is not None
    cache.close(second)
    assert cache.maybe_create(0, CONSUMER, 1) is None  # its turn was the first shard's
    assert cache.maybe_create(0, CONSUMER, 1) is not None


def test_a_session_that_has_become_empty_is_closed() -> None:
    cache, (session,) = full_cache((CONSUMER, 1))
    assert cache.touch(session, 1, 0)
    assert len(cache) == 0


# How many a broker needs.


def group(members: int, partitions: int, topic: str = "t") -> Group:
    return Group({topic: Topic(partitions)}, {f"c{i}": Member((topic,)) for i in range(members)})


def test_a_consumer_has_a_session_with_each_broker_that_leads_one_of_its_partitions() -> None:
    # range gives c0 the partitions 0 and 1, c1 2 and 3; brokers 0, 1, 2, 0 lead them.
    prediction = predict([group(2, 4)], brokers=3, replication=1)
    assert [(one.consumers, one.followers) for one in prediction.brokers] == [(2, 0), (1, 0), (1, 0)]


def test_leaders_and_ownership_are_taken_as_they_are_said() -> None:
    owned = Group({"t": Topic(3)}, {"a": Member(("t",), owned={"t": [0, 1, 2]}), "b": Member(("t",))})
    prediction = predict([owned], brokers=2, replication=1, leaders={"t": [1, 1, 1]})
    assert [one.need for one in prediction.brokers] == [0, 1]


def test_a_follower_has_one_for_each_fetcher_with_each_broker_it_follows() -> None:
    placement = Placement({"t": 12}, brokers=3, replication=3)
    one = follower_clients(placement, 0, fetchers=1)
    assert [(client.size, client.privileged) for client in one] == [(4, True), (4, True)]
    two = follower_clients(placement, 0, fetchers=2)
    assert len(two) == 4
    assert sum(client.size for client in two) == 8


def test_fetchers_are_chosen_as_java_does() -> None:
    # "t".hashCode() is 116: abs(31 * 116 + 5) % 4; and a name whose sum overflows 32 bits.
    assert fetcher_of("t", 5, 4) == (31 * 116 + 5) % 4
    assert 0 <= fetcher_of("a-topic-with-a-long-name", 0, 7) < 7


def test_groups_add_up_and_must_agree_on_topics() -> None:
    both = predict([group(3, 6, "a"), group(3, 6, "b")], brokers=3)
    alone = predict([group(3, 6, "a")], brokers=3)
    assert sum(one.consumers for one in both.brokers) == 2 * sum(one.consumers for one in alone.brokers)
    with pytest.raises(ContractError, match=r"groups\[1\]\.topics\.a: has 6 partitions in an earlier group"):
        predict([group(1, 6, "a"), group(1, 7, "a")], brokers=3)


def test_a_scenarios_group_can_be_asked_about() -> None:
    scenario = parse_scenario(
        {
            "duration": "1m",
            "topics": {"orders": {"partitions": 6, "rate": "60/s"}, "other": {"partitions": 2}},
            "members": {"c": {"count": 2, "pattern": "or.*"}, "late": {"topics": "other"}},
            "timeline": [{"at": "30s", "start": "late"}],
        }
    )
    group = group_of(scenario)
    assert {name: member.topics for name, member in group.members.items()} == {"c-1": ("orders",), "c-2": ("orders",)}
    assert group.topics["orders"].load == (10.0,) * 6
    assert [one.consumers for one in predict([group], brokers=3).brokers] == [2, 2, 2]


@pytest.mark.parametrize(("brokers", "replication"), [(0, 1), (2, 3), (3, 0)])
def test_clusters_that_cannot_be_are_refused(brokers: int, replication: int) -> None:
    with pytest.raises(ContractError):
        Placement({"t": 1}, brokers=brokers, replication=replication)


# What happens when slots do not suffice.


def test_at_rest_the_smallest_are_without_and_nobody_loses_anything() -> None:
    clients = [Client(f"c{i}", size, privileged=False) for i, size in enumerate([3] * 8 + [5] * 8)]
    outcome = deploy(clients, slots=8)
    assert outcome.without_session == 8


def test_a_deploy_of_small_and_large_consumers_puts_small_ones_out() -> None:
    """By hand, one shard's worth: a large one leaves, a small one takes its slot, the large one comes back and puts out
    a small one that is old enough, or waits for that; each of eight large ones costs somebody a session."""
    sizes = [9] * 8 + [1] * 9
    outcome = deploy([Client(f"c{i}", size, privileged=False) for i, size in enumerate(sizes)], slots=16)
    assert outcome.without_session == 1
    assert 8 <= outcome.not_found <= 17


def test_with_enough_slots_nothing_is_lost() -> None:
    prediction = predict([group(30, 120)], brokers=3)
    assert prediction.not_found_per_hour == prediction.not_found_per_hour_at_most == 0
    assert warning(prediction) is None


def test_the_warning_says_which_broker_what_it_costs_and_what_to_set() -> None:
    prediction = predict([group(1_200, 3_600)], brokers=3)
    assert warning(prediction) == (
        "3 of 3 brokers have too few fetch session slots: broker 0 needs 1,202 (1,200 consumers, 2 followers) and has "
        "1,000; 202 clients would fetch without a session, and there would be 0.0 to 90,000 "
        "FETCH_SESSION_ID_NOT_FOUND an hour; set max.incremental.fetch.session.cache.slots=1504"
    )
    raised = predict([group(1_200, 3_600)], brokers=3, slots=1_504)
    assert warning(raised) is None
    assert raised.worst.without_session == 0


@pytest.mark.parametrize(("clients", "slots"), [(50, 48), (64, 48), (120, 48)])
def test_sessions_that_change_their_size_thrash_no_faster_than_predicted(clients: int, slots: int) -> None:
    """Every client fetches every half second with one to six partitions in its session, for twenty minutes."""
    rng = Random(7)
    cache = FetchSessionCache(slots)
    held: list[int | None] = [None] * clients
    lost = 0
    minutes = 20
    for now_ms in range(0, minutes * 60_000, 500):
        for i in rng.sample(range(clients), clients):
            size = rng.randint(1, 6)
            session = held[i]
            if session is None:
                held[i] = cache.maybe_create(now_ms, CONSUMER, size)
            elif not cache.touch(session, now_ms, size):
                held[i] = None
                lost += 1
    bound = thrash_per_hour(clients - slots, slots, 500)
    assert 0.6 * bound < lost * 60 / (minutes - 2) <= bound  # for the first two minutes nobody is old enough

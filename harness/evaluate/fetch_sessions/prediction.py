"""Predict incremental fetch sessions (KIP-227) as brokers see them: how many they need, how many slots they have.

Given      groups, and where partitions are led: spread round the brokers unless it is said
Returns    per broker the sessions of consumers and followers, the slots, and what happens where slots do not suffice
Counted    a consumer has a session with every broker that leads one of its partitions. A follower has one for each of
           its fetcher threads (num.replica.fetchers) with every broker it follows
Without    a session, a consumer names all its partitions in every request and gets an answer for each. It asks for a
           session each time. Losing one costs a round trip (FETCH_SESSION_ID_NOT_FOUND) and a full request
Left out   consumers that read from a replica in their own rack; internal topics (their followers share the sessions
           counted here wherever user topics are spread as widely)
Start at   predict, warning
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.assignors.java.hash_order import string_hash
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.strategies import load_assignor, parse_strategy, run_assignor
from rebalance_lab.harness.evaluate.fetch_sessions.load import FETCH_MS, Client, Outcome, deploy
from rebalance_lab.harness.evaluate.fetch_sessions.session_cache import EVICTION_MS, SHARDS, SLOTS

SETTING = "max.incremental.fetch.session.cache.slots"
DEPLOYS_PER_DAY = 1.0
SPARE = 1.25
"""What warning() asks for beyond the need: crashed clients keep their slot for two minutes, shards fill unevenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSessions:
    broker: int
    consumers: int
    followers: int
    slots: int
    """Those that can be used: an eighth in each shard, rounded down."""
    without_session: int
    """Clients that are left without one when all is at rest."""
    not_found_per_hour: float
    """FETCH_SESSION_ID_NOT_FOUND: sessions put out while their client lived, with sessions that keep their size."""
    not_found_per_hour_at_most: float
    """With sessions that change their size all the time, as those of Java consumers before KAFKA-17182 do."""
    full_fetches_per_hour: float
    """Requests that carry all partitions because their client has no session."""

    @property
    def need(self) -> int:
        return self.consumers + self.followers


@dataclass(frozen=True, slots=True)
class Prediction:
    brokers: tuple[BrokerSessions, ...]
    slots: int

    @property
    def worst(self) -> BrokerSessions:
        return max(self.brokers, key=lambda one: (one.need, -one.broker))

    @property
    def not_found_per_hour(self) -> float:
        return math.fsum(one.not_found_per_hour for one in self.brokers)

    @property
    def not_found_per_hour_at_most(self) -> float:
        return math.fsum(one.not_found_per_hour_at_most for one in self.brokers)


class Placement:
    """Place partitions: which broker leads each, and which brokers follow it. Brokers are numbered from 0.

    Without a given placement, topics in order of name begin on one broker after the other. Their partitions go round,
    and so do each partition's followers. Kafka does the same, except for its random start.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        brokers: int,
        replication: int = 3,
        leaders: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        if brokers < 1:
            raise ContractError("brokers", f"must be at least 1, got {brokers}")
        if not 1 <= replication <= brokers:
            raise ContractError("replication", f"must be between 1 and the {brokers} brokers, got {replication}")
        self.topics = topics
        self.brokers = brokers
        self.replication = replication
        self.leaders: dict[str, Sequence[int]] = {}
        for i, (topic, partitions) in enumerate(sorted(topics.items())):
            said = (leaders or {}).get(topic)
            if said is not None and (len(said) != partitions or not all(0 <= one < brokers for one in said)):
                raise ContractError(f"leaders.{topic}", f"needs {partitions} brokers between 0 and {brokers - 1}")
            self.leaders[topic] = said or [(i + p) % brokers for p in range(partitions)]

    def followers(self, topic: str, partition: int) -> list[int]:
        leader = self.leaders[topic][partition]
        return [(leader + i) % self.brokers for i in range(1, self.replication)]


def predict(
    groups: Sequence[Group],
    *,
    brokers: int,
    slots: int = SLOTS,
    replication: int = 3,
    fetchers: int = 1,
    leaders: Mapping[str, Sequence[int]] | None = None,
    strategy: str = "classic/range",
    deploys_per_day: float = DEPLOYS_PER_DAY,
    fetch_ms: int = FETCH_MS,
) -> Prediction:
    """Compute the sessions needed and lost on each broker, for all groups together.

    A member reads what it owns; in a group without owners, what `strategy` would give it. At rest no session is ever
    lost: only a larger one (or a follower's) puts one out, so that in the end the small consumers are those without.
    Sessions are lost when something changes. Therefore a broker's clients run through one rolling deploy, consumer
    after consumer, against a cache with Kafka's rules (load.py). What is lost in it counts `deploys_per_day` times a
    day. Sizes stay as they are meanwhile, which is what a Java consumer of 4.3 does. An older one leaves out partitions
    whose records it has yet to hand over, so that its session is small at times and can then be put out:
    `not_found_per_hour_at_most` is what that can come to.
    """
    topics = merged_topics(groups)
    placement = Placement(topics, brokers=brokers, replication=replication, leaders=leaders)
    clients: list[list[Client]] = [follower_clients(placement, broker, fetchers) for broker in range(brokers)]
    for number, group in enumerate(groups):
        for member, share in shares(group, strategy).items():
            for broker, size in spread(share, placement).items():
                clients[broker].append(Client(f"{number}/{member}", size, privileged=False))
    played: dict[tuple[tuple[int, bool], ...], Outcome] = {}
    found = []
    for broker, here in enumerate(clients):
        # Evenly spread partitions make brokers that are alike, and one of them is enough to play.
        alike = tuple((client.size, client.privileged) for client in here)
        if alike not in played:
            played[alike] = deploy(here, slots=slots, fetch_ms=fetch_ms)
        outcome = played[alike]
        found.append(
            BrokerSessions(
                broker=broker,
                consumers=sum(not client.privileged for client in here),
                followers=sum(client.privileged for client in here),
                slots=slots // SHARDS * SHARDS,
                without_session=outcome.without_session,
                not_found_per_hour=outcome.not_found * deploys_per_day / 24,
                not_found_per_hour_at_most=thrash_per_hour(outcome.without_session, slots // SHARDS * SHARDS, fetch_ms),
                full_fetches_per_hour=outcome.without_session * 3_600_000 / fetch_ms,
            )
        )
    return Prediction(tuple(found), slots)


def thrash_per_hour(waiting: int, slots: int, fetch_ms: int) -> float:
    """Count sessions lost in turn: a waiting client's fetch puts out another client, which then waits, but none before
    two minutes are over.
    """
    return min(waiting * 3_600_000 / fetch_ms, slots * 3_600_000 / EVICTION_MS)


def merged_topics(groups: Sequence[Group]) -> dict[str, int]:
    topics: dict[str, int] = {}
    for i, group in enumerate(groups):
        for name, topic in group.topics.items():
            if topics.setdefault(name, topic.partitions) != topic.partitions:
                raise ContractError(f"groups[{i}].topics.{name}", f"has {topics[name]} partitions in an earlier group")
    return topics


def shares(group: Group, strategy: str) -> Mapping[str, Mapping[str, Sequence[int]]]:
    if any(member.owned for member in group.members.values()):
        return {name: member.owned for name, member in group.members.items()}
    return run_assignor(load_assignor(parse_strategy(strategy)), group) if group.members else {}


def spread(share: Mapping[str, Sequence[int]], placement: Placement) -> dict[int, int]:
    """Count how many of these partitions each broker leads; a claim on a nonexistent partition is fetched from no
    broker.
    """
    sizes: dict[int, int] = {}
    for topic, partitions in share.items():
        leaders = placement.leaders.get(topic, ())
        for partition in partitions:
            if partition < len(leaders):
                sizes[leaders[partition]] = sizes.get(leaders[partition], 0) + 1
    return sizes


def follower_clients(placement: Placement, leader: int, fetchers: int) -> list[Client]:
    sizes: dict[tuple[int, int], int] = {}
    for topic, leaders in placement.leaders.items():
        for partition, leading in enumerate(leaders):
            if leading == leader:
                for follower in placement.followers(topic, partition):
                    thread = (follower, fetcher_of(topic, partition, fetchers))
                    sizes[thread] = sizes.get(thread, 0) + 1
    return [
        Client(f"broker {follower}, fetcher {thread}", size, privileged=True)
        for (follower, thread), size in sorted(sizes.items())
    ]


def fetcher_of(topic: str, partition: int, fetchers: int) -> int:
    """Compute AbstractFetcherManager.getFetcherId, in Java's int arithmetic."""
    number = (31 * string_hash(topic) + partition + 2**31) % 2**32 - 2**31
    return (0 if number == -(2**31) else abs(number)) % fetchers


def warning(prediction: Prediction) -> str | None:
    """Return for `recommend` what to raise and why, or None where slots suffice."""
    worst = prediction.worst
    if worst.need <= worst.slots:
        return None
    short = sum(one.need > one.slots for one in prediction.brokers)
    wanted = math.ceil(worst.need * SPARE / SHARDS) * SHARDS
    return (
        f"{short} of {len(prediction.brokers)} brokers have too few fetch session slots: broker {worst.broker} needs "
        f"{worst.need:,} ({worst.consumers:,} consumers, {worst.followers:,} followers) and has {worst.slots:,}; "
        f"{worst.without_session:,} clients would fetch without a session, and there would be "
        f"{prediction.not_found_per_hour:,.1f} to {prediction.not_found_per_hour_at_most:,.0f} "
        f"FETCH_SESSION_ID_NOT_FOUND an hour; set {SETTING}={wanted}"
    )

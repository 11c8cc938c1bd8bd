"""Name the broken invariants that are Kafka's own doing: its clients, assignors and brokers break them too.

Given      the scenario, the strategy and what broke
Returns    the reason in a line, or None; a reason says that it can be so, not that it is
Start at   known_violation
"""

from __future__ import annotations

from rebalance_lab.assignors.interface import RebalanceProtocol, supported_protocols_of
from rebalance_lab.assignors.strategies import load_assignor
from rebalance_lab.harness.measure.invariants import Broken
from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    CreateTopic,
    DeleteTopic,
    Isolate,
    Pause,
    Restart,
    Resubscribe,
    RollingRestart,
    Scenario,
    Slow,
    Start,
)
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies

CLOSE_MS = 30_000
"""What close() may take."""


def known_violation(scenario: Scenario, strategy: str, found: Broken) -> str | None:
    """Return the reason why Kafka breaks it too, also under a strategy that the timeline migrates to."""
    for reason, text in REASONS.items():
        if any(reason(scenario, one, found) for one in deployed(scenario, strategy)):
            return text
    return None


def deployed(scenario: Scenario, strategy: str) -> list[str]:
    """Return that strategy, and those that the timeline migrates to."""
    later = [one.strategy for one in scenario.timeline if isinstance(one, RollingRestart) and one.strategy is not None]
    return [strategy, *later]


def takes_commits_back(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a commit went back. It was seen with Java's consumer, in three runs of ten: from 5000 back to 10,
    and on from there. Its application's thread, which auto-commits in its next poll() before it gives up what it had,
    and its background thread race for it. Likewise in a close() that waits longer than max.poll.interval.ms for the
    answer to a lost commit: it leaves, and commits again.
    """
    slow = any(isinstance(one, Slow | Pause) for one in scenario.timeline) or scenario.poison
    settings = [{**scenario.client, **one.client} for one in scenario.members]
    hurried = any(one.get("max.poll.interval.ms", 300_000) < CLOSE_MS for one in settings)
    waits = slow or (scenario.network.loss and hurried)
    goes_back = found.invariant == "honest commits" and " after " in str(found)
    return goes_back and strategy.startswith("consumer") and bool(waits)


def gives_twice(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a sticky assignor gives a partition twice: Java's two classes do so with such groups
    (tests/conformance/test_against_java.py).
    """
    change = any(isinstance(one, Resubscribe) for one in scenario.timeline)
    differ = change or len({(one.topics, one.pattern) for one in scenario.members}) > 1
    grows = any(isinstance(one, AddPartitions | CreateTopic) for one in scenario.timeline)
    return found.invariant == "one owner" and "sticky" in strategy and differ and grows


def claims_what_is_gone(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether an assignor gives out partitions that are gone. AbstractStickyAssignor drops claims of deleted
    topics, but not of partitions. It goes on to give out what does not exist, gives other partitions twice, or throws
    (tests/conformance/test_against_java.py).
    """
    sizes = {topic.name: topic.partitions for topic in scenario.topics}
    for grown in (one for one in scenario.timeline if isinstance(one, AddPartitions)):
        sizes[grown.topic] = max(grown.to, sizes.get(grown.topic, 0))
    again = [one.topic for one in scenario.timeline if isinstance(one, CreateTopic)]
    fewer = any(topic.partitions < sizes.get(topic.name, 0) for topic in again)
    return found.invariant in ("one owner", "convergence") and "sticky" in strategy and fewer


def rebalances_for_ever(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a member rejoins for ever. AbstractStickyAssignor's general path gives it what ConsumerCoordinator's
    check of the assignment refuses; it rejoins at once, and is given it again.
    """
    changes = any(isinstance(one, Resubscribe) for one in scenario.timeline)
    return found.invariant == "convergence" and strategy.startswith("classic/sticky") and changes


def never_gave_it_up(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a static member came back between the two rounds of a cooperative rebalance. Only a member that
    revokes asks for the second round. One that comes back to a stable group is given what is stored for it, without a
    rebalance. Seen with Java's consumers on a real broker (tests/harness/kafka/live/test_slow_applications.py).
    """
    comes_back = any(isinstance(one, Restart | RollingRestart | Start) for one in scenario.timeline)
    keeps_places = is_cooperative(strategy) and is_static(scenario, strategy)
    return found.invariant == "convergence" and keeps_places and comes_back


def passes_over(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a rebalance passed over a static member. This follows from how the broker keeps static members
    (answers compared with a real one) and how the assignor takes their claims (compared with Java's). The whole was not
    seen with Java's consumers.
    """
    slow = any(isinstance(one, Slow | Pause | Isolate | DeleteTopic) for one in scenario.timeline)
    misses_it = slow or bool(scenario.poison) or scenario.network.loss > 0
    keeps_places = is_cooperative(strategy) and is_static(scenario, strategy)
    return found.invariant == "one owner" and keeps_places and misses_it


def gives_what_is_to_be_revoked(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a conversion gave away what is still to be revoked. An upgrade takes over what the last SyncGroup
    gave a classic member, and a downgrade what it was to have: neither knows what the member is still to give up. Both
    were recorded from a real broker (tests/harness/kafka/wire/recordings). An eager group has only the second, one
    right after the other.
    """
    cooperative = any(map(is_cooperative, deployed(scenario, strategy)))
    converted = "the group was " if cooperative else "the group was downgraded and upgraded "
    return found.invariant == "one owner" and converted in str(found)


def is_cooperative(strategy: str) -> bool:
    classic = [one for one in parse_strategies(strategy) if one.protocol == "classic"]
    return any(RebalanceProtocol.COOPERATIVE in supported_protocols_of(load_assignor(one)) for one in classic)


def is_static(scenario: Scenario, strategy: str) -> bool:
    return strategy.endswith("+static") or any(one.instance_id is not None for one in scenario.members)


def stays_unseen(scenario: Scenario, strategy: str, found: Broken) -> bool:
    """Tell whether a change stays unseen: ConsumerCoordinator.onLeaderElected looks only for changes from then on."""
    changes = AddPartitions | CreateTopic | DeleteTopic | Resubscribe
    returns = strategy.startswith("classic") and is_static(scenario, strategy)
    return found.invariant == "convergence" and returns and any(isinstance(one, changes) for one in scenario.timeline)


REASONS = {
    stays_unseen: "a classic leader that comes back as a static member is told to skip the assignment (KIP-814): what "
    "was added, or subscribed to, while it was away stays without an owner until the next rebalance",
    never_gave_it_up: "a static member that is restarted between the two rounds of a cooperative rebalance comes back "
    "without a rebalance, and what it was to give up stays without an owner until the next one",
    passes_over: "a rebalance that ends without a static member keeps it, with the claims of its last JoinGroup: what "
    "it has got since may be given to another, and both read it until the first has heard of the next generation",
    gives_what_is_to_be_revoked: "a group that is upgraded, or downgraded, between the two rounds of a cooperative "
    "rebalance, or downgraded and upgraded at once, gives away what a classic member is still to revoke",
    rebalances_for_ever: "the eager sticky assignor remembers what a member had, and gives one that has changed its "
    "subscription what it no longer wants, again and again",
    gives_twice: "where subscriptions differ, the sticky assignors give partitions twice if the leader's metadata is "
    "older than what others claim",
    claims_what_is_gone: "the sticky assignors keep claims of partitions that a topic no longer has, since it was "
    "created again with fewer",
    takes_commits_back: "a KIP-848 consumer that left for want of a poll may commit once more as nobody's member, and "
    "a coordinator takes that from anybody while the group is empty",
}

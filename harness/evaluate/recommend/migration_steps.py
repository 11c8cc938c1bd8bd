"""List the steps from the current strategy to another one while the group lives.

Assignors  members agree on an assignor that all of them offer, so members first offer the new one beside the old one:
           two rolling restarts. Offering both makes a member eager until the old one is gone.
Protocols  brokers of 4.0 and newer turn a classic group into a consumer group with the first member that joins by the
           new protocol, and back with the last that leaves: one rolling restart (KIP-848)
librdkafka refuses a list that mixes eager and cooperative assignors, so for its clients there is no double bounce
Start at   migration
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.strategies import Strategy
from rebalance_lab.harness.evaluate.recommend.librdkafka_limits import IN_LIBRDKAFKA
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import CLASS_OF, POLICY
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.strategy_lists import parse_strategies

USUAL_POLICY = "bidirectional"
COOPERATIVE = ("cooperative-sticky", "load-aware")


@dataclass(frozen=True, slots=True)
class Step:
    do: str
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"do": self.do, "why": self.why}


def migration(now: str | None, then: str, scenario: Scenario) -> Iterator[Step]:
    if now is None:
        yield Step("Set the properties and start the group.", "What runs now was not said; --from names it.")
        return
    if now == then:
        return
    before, after = parse_strategies(now), parse_strategies(then)
    other_protocol = before[0].protocol != after[0].protocol
    other_assignor = [one.assignor for one in before] != [one.assignor for one in after]
    if other_protocol:
        yield from change_protocol(before, after, scenario)
    elif other_assignor:
        yield from change_assignor(before, after)
    if after[0].static and not before[0].static:
        yield from add_static(after[0], restarts=other_protocol or other_assignor)
    elif before[0].static and not after[0].static:
        yield Step(
            "Roll all members once without group.instance.id.",
            "A static member does not leave when it stops: its partitions wait for the session's end, once for each.",
        )
    if other_protocol and after[0].protocol == "consumer":
        yield Step(
            "To go back: roll once more with group.protocol=classic.",
            "With the last consumer member gone the broker turns the group back.",
        )


def change_assignor(before: Sequence[Strategy], after: Sequence[Strategy]) -> Iterator[Step]:
    old, new = [one.assignor for one in before], [one.assignor for one in after]
    if before[0].protocol == "consumer":
        yield Step(
            f"Roll all members once with group.remote.assignor={new[0]}.",
            "The broker takes what most members ask for, so the change comes when half of them have it.",
        )
        return
    both = [*new, *(one for one in old if one not in new)]
    if not set(new) <= set(old):
        yield Step(
            f"First rolling restart: partition.assignment.strategy={classes(both)}.",
            f"Both are offered; {old[0]} stays chosen as long as one member offers nothing else, and "
            f"{manner(old, both)}.",
        )
    yield Step(
        f"{'Second' if not set(new) <= set(old) else 'One'} rolling restart: "
        f"partition.assignment.strategy={classes(new)}.",
        "The old one goes; members that still have both and those that have one agree on the new one.",
    )
    mixed_now = {one in COOPERATIVE for one in old} == {True, False}  # which no librdkafka client is a part of
    if {one in COOPERATIVE for one in both} == {True, False} and set(both) <= set(IN_LIBRDKAFKA) and not mixed_now:
        yield Step(
            "For librdkafka clients: stop all members, then start them with the new assignor.",
            "librdkafka refuses a list that mixes eager and cooperative assignors, so it has no double rolling "
            "restart; group.protocol=consumer is its way without a stop.",
        )


def manner(old: Sequence[str], both: Sequence[str]) -> str:
    if all(one in COOPERATIVE for one in both):
        return "the group stays cooperative"
    if all(one in COOPERATIVE for one in old):
        return "whoever offers both is eager from then on"
    return "the group stays eager"


def change_protocol(before: Sequence[Strategy], after: Sequence[Strategy], scenario: Scenario) -> Iterator[Step]:
    policy = scenario.broker.get(POLICY, USUAL_POLICY)
    up = after[0].protocol == "consumer"
    needed = (USUAL_POLICY, "upgrade" if up else "downgrade")
    yield Step(
        f"Brokers: Kafka 4.0 or newer (feature group.version=1), {POLICY}={policy if policy in needed else needed[0]}.",
        "" if policy in needed else f"It is {policy} now, which would refuse the first member that changes.",
    )
    if up:
        if any(one.assignor not in CLASS_OF for one in before):
            yield Step(
                f"First move from {before[0].assignor} to an assignor of Kafka's own.",
                "An assignor of one's own may put user data into assignments, and then the broker refuses to convert.",
            )
        yield Step(
            f"One rolling restart: group.protocol=consumer, group.remote.assignor={after[0].assignor}, without "
            "partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms.",
            "The first such member turns the group into a consumer group; the broker serves the classic rest.",
        )
        return
    yield Step(
        "One rolling restart: group.protocol=classic, "
        f"partition.assignment.strategy={classes([one.assignor for one in after])}.",
        "With the last consumer member gone the broker turns the group into a classic one.",
    )


def add_static(after: Strategy, *, restarts: bool) -> Iterator[Step]:
    """Add instance ids. `restarts`: there is a rolling restart before, which can bring the ids as well."""
    yield Step(
        f"{'In the same restart' if restarts else 'One rolling restart:'} give every member its own group.instance.id.",
        "It must survive the member's restart (a StatefulSet's pod name does, a Deployment's does not), and two "
        "members with the same one put each other out.",
    )
    name = "group.consumer.session.timeout.ms on the brokers" if after.protocol == "consumer" else "session.timeout.ms"
    yield Step(f"Set {name} above the time a restart takes.", "Within it a restart causes no rebalance.")


def classes(assignors: Sequence[str]) -> str:
    return ",".join(CLASS_OF.get(one, one) for one in assignors)

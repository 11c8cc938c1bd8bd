"""Random scenarios with faults, run under every strategy with all invariants watched: 300 in `make test`.

A scenario that breaks one is made smaller (fewer events, members, topics) while it still does, and printed as a file
that `rebalance-lab simulate` takes.

    python -m tests.harness.random_scenarios --runs 10000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from traceback import extract_tb
from typing import Any, Protocol, TextIO

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.measure.invariants import Broken, Checker
from rebalance_lab.harness.measure.known_violations import known_violation
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.model import (
    AddPartitions,
    Autoscale,
    Callbacks,
    Crash,
    CreateTopic,
    DeleteTopic,
    Event,
    FailOver,
    Isolate,
    MemberSpec,
    Network,
    Pause,
    Poison,
    Rate,
    Restart,
    Resubscribe,
    RollingRestart,
    Scale,
    Scenario,
    Slow,
    Start,
    Stop,
    TopicSpec,
)
from rebalance_lab.harness.scenario.presence import late_starters
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.scenario.writer import scenario_json
from tests.harness.rules import ProtocolChecker
from tests.shrinking import shortened

STRATEGIES = (
    "classic/range",
    "classic/roundrobin",
    "classic/sticky",
    "classic/cooperative-sticky",
    "classic/cooperative-sticky+static",
    "classic/load-aware",
    "classic/range+static",
    "consumer/uniform",
    "consumer/uniform+static",
    "consumer/range",
)
LIFE_MS = 120_000
CRASH = "no crash"
QUIET_MS = 460_000
"""After the last event: longer than a poll interval, so that every run must converge."""


def random_scenario(random: Random) -> Scenario:
    topics = tuple(random_topic(random, f"t{n}") for n in range(random.randint(1, 3)))
    names = tuple(f"m-{n}" for n in range(1, random.randint(2, 7)))
    members = tuple(random_member(random, name, topics) for name in names)
    timeline = [random_event(random, names, topics) for _ in range(random.randint(0, 8))]
    scenario = Scenario(
        name="random",
        duration_ms=LIFE_MS + QUIET_MS + 400_000,
        topics=topics,
        members=members,
        client=random_client(random),
        broker={"group.initial.rebalance.delay.ms": random.choice((0, 500, 3_000))},
        network=random_network(random),
        callbacks=random.choice((Callbacks(), Callbacks(revoked_ms=50, assigned_ms=20, assigned_ms_per_partition=100))),
        poison=random_poison(random, topics),
        metadata_max_age_ms=random.choice((5_000, 60_000)),
    )
    timeline += random_extras(random, names, topics)
    varied = Random(f"{random.getstate()[1][:3]} varies")
    scenario = replace(scenario, members=random_differences(varied, members))
    timeline += random_migrations(varied, names, topics)
    return replace(scenario, timeline=possible(sorted(timeline, key=lambda event: event.at_ms), topics))


def random_differences(random: Random, members: tuple[MemberSpec, ...]) -> tuple[MemberSpec, ...]:
    """In one scenario of six somebody has timeouts of its own."""
    if random.random() >= 1 / 6:
        return members
    own: dict[str, Any] = {"max.poll.interval.ms": random.choice((20_000, 300_000))}
    if random.random() < 0.3:
        own = {"session.timeout.ms": 20_000}
    somebody = random.choice(members)
    return tuple(replace(one, client=own) if one is somebody else one for one in members)


def random_migrations(random: Random, names: tuple[str, ...], topics: tuple[TopicSpec, ...]) -> list[Event]:
    """In one scenario of five members come back with KIP-848, all or some, and perhaps others later: classic groups are
    upgraded, speak both protocols for a while or for good, and are downgraded when the last of them goes. To another
    classic assignor they do not: who missed that could never join again."""
    if random.random() >= 0.2:
        return []
    at_ms = random.randint(15, 45) * 1_000
    moved = names if random.random() < 0.3 else tuple(sorted(random.sample(names, random.randint(1, len(names)))))
    events = [random_migration(random, at_ms, () if moved == names else moved)]
    for _ in range(random.randint(0, 3)):
        events.append(random_trouble(random, at_ms + random.randint(1_000, 60_000), names, moved, topics))
    if random.random() < 0.5:
        some = random.choice(((), tuple(sorted(random.sample(names, random.randint(1, len(names)))))))
        events.append(random_migration(random, random.randint(60, 110) * 1_000, some))
    return events


def random_migration(random: Random, at_ms: int, members: tuple[str, ...]) -> Event:
    return RollingRestart(
        at_ms=at_ms,
        members=members,
        downtime_ms=random.choice((500, 5_000)),
        gap_ms=random.choice((0, 2_000, 12_000)),
        kill=random.random() < 0.2,
        strategy=random.choice(("consumer/uniform", "consumer/range")),
    )


def random_trouble(
    random: Random, at_ms: int, names: tuple[str, ...], moved: tuple[str, ...], topics: tuple[TopicSpec, ...]
) -> Event:
    """What meets a migration half way. Who has moved goes, and comes back: where it was alone in that, the group is
    downgraded, and upgraded again."""
    somebody, topic = random.choice(names), random.choice(topics)
    kill, for_ms = random.random() < 0.5, random.choice((500, 3_000, 12_000))
    makers: list[Callable[[], Event]] = [
        lambda: Restart(at_ms=at_ms, members=moved, downtime_ms=for_ms, kill=kill),
        lambda: Restart(at_ms=at_ms, members=(somebody,), downtime_ms=for_ms, kill=kill),
        lambda: Crash(at_ms=at_ms, members=(somebody,)),
        lambda: AddPartitions(at_ms=at_ms, topic=topic.name, to=topic.partitions + random.randint(1, 4)),
        lambda: Pause(at_ms=at_ms, members=(somebody,), for_ms=for_ms),
    ]
    return random.choice(makers)()


def random_extras(random: Random, names: tuple[str, ...], topics: tuple[TopicSpec, ...]) -> list[Event]:
    """One scenario in three begins with an event, follows its lag, has somebody who stays slow, or a topic that is
    created again. Drawn from a copy: the other two stay as they were before there were extras, and with them what
    single runs are known for."""
    copied = Random()
    copied.setstate(random.getstate())
    random = copied
    at_ms = random.choice((0, 200, 900, 30_000))
    match random.randint(0, 11):
        case 0:
            return [replace(random_event(random, names, topics), at_ms=at_ms)]
        case 1:
            most = random.randint(2, 8)
            follows = {"lag_per_member": 100.0, "every_ms": 5_000, "cooldown_ms": 30_000}
            return [Autoscale(at_ms=at_ms, template=names[0], least=1, most=most, **follows)]
        case 2:
            return [Slow(at_ms=at_ms, members=(random.choice(names),), factor=random.choice((10.0, 3_000.0)))]
        case 3:
            old, gone_ms = random.choice(topics), random.choice((0, 1, 1_000, 30_000))
            new = replace(old, partitions=random.choice((old.partitions, random.randint(1, 9))))
            at_ms += random.randint(5_000, 60_000)
            return [DeleteTopic(at_ms=at_ms, topic=old.name), CreateTopic(at_ms=at_ms + gone_ms, topic=new)]
        case _:
            return []


def random_topic(random: Random, name: str) -> TopicSpec:
    rate = random.choice((0.0, 5.0, 100.0, 700.0))
    steps = ((0, rate), (40_000, rate * 3)) if random.random() < 0.2 else ((0, rate),)
    return TopicSpec(name=name, partitions=random.randint(1, 9), rate=Rate(steps))


def random_member(random: Random, name: str, topics: tuple[TopicSpec, ...]) -> MemberSpec:
    everything = tuple(topic.name for topic in topics)
    chosen = (
        everything if random.random() < 0.7 else tuple(random.sample(everything, random.randint(1, len(everything))))
    )
    pattern = "t.*" if random.random() < 0.1 else None
    return MemberSpec(
        name=name, topics=() if pattern else chosen, pattern=pattern, record_ms=random.choice((0.5, 2.0, 6.0))
    )


def random_client(random: Random) -> dict[str, Any]:
    return {
        "session.timeout.ms": random.choice((6_000, 10_000, 45_000)),
        "heartbeat.interval.ms": random.choice((1_000, 3_000)),
        "max.poll.interval.ms": random.choice((20_000, 300_000)),
        "max.poll.records": random.choice((10, 500)),
        "enable.auto.commit": random.random() < 0.8,
    }


def random_network(random: Random) -> Network:
    return Network(
        latency_ms=random.choice((1, 5, 40)),
        jitter_ms=random.choice((0, 3, 30)),
        loss=random.choice((0.0, 0.0, 0.0, 0.01)),
        duplication=random.choice((0.0, 0.0, 0.02)),
    )


def random_poison(random: Random, topics: tuple[TopicSpec, ...]) -> tuple[Poison, ...]:
    if random.random() < 0.85:
        return ()
    return (
        Poison(
            topic=topics[0].name, partition=0, offset=random.randint(0, 500), stall_ms=random.choice((2_000, 15_000))
        ),
    )


def random_event(random: Random, names: tuple[str, ...], topics: tuple[TopicSpec, ...]) -> Event:
    at_ms = random.randint(1, LIFE_MS // 1_000) * 1_000 + random.choice((0, 0, 1, 250, 999))
    some = tuple(sorted(random.sample(names, random.randint(1, min(2, len(names))))))
    topic = random.choice(topics)
    for_ms = random.choice((500, 3_000, 12_000, 50_000))
    makers: list[Callable[[], Event]] = [
        lambda: Stop(at_ms=at_ms, members=some),
        lambda: Start(at_ms=at_ms, members=some),
        lambda: Crash(at_ms=at_ms, members=some),
        lambda: Restart(at_ms=at_ms, members=some, downtime_ms=for_ms, kill=random.random() < 0.5),
        lambda: RollingRestart(
            at_ms=at_ms, downtime_ms=random.choice((500, 5_000)), gap_ms=random.choice((0, 2_000)),
            parallelism=random.randint(1, 2), kill=random.random() < 0.3, surge=random.random() < 0.2,
        ),
        lambda: Scale(at_ms=at_ms, to=random.randint(1, 9), template=names[0], every_ms=random.choice((0, 700))),
        lambda: Slow(at_ms=at_ms, members=some, factor=random.choice((10.0, 3_000.0)), for_ms=for_ms),
        lambda: Pause(at_ms=at_ms, members=some, for_ms=for_ms),
        lambda: Isolate(at_ms=at_ms, members=some, for_ms=for_ms),
        lambda: FailOver(at_ms=at_ms, down_ms=random.choice((100, 2_000, 20_000))),
        lambda: AddPartitions(at_ms=at_ms, topic=topic.name, to=topic.partitions + random.randint(1, 4)),
        lambda: CreateTopic(at_ms=at_ms, topic=TopicSpec(name=f"t{random.randint(5, 6)}", partitions=2)),
        lambda: DeleteTopic(at_ms=at_ms, topic=topic.name),
        lambda: Resubscribe(at_ms=at_ms, members=some, topics=(topic.name,)),
    ]  # fmt: skip
    return random.choice(makers)()


def possible(timeline: list[Event], topics: tuple[TopicSpec, ...]) -> tuple[Event, ...]:
    """Without what makes no sense after what came before."""
    there = {topic.name: topic.partitions for topic in topics}
    waiting = set(late_starters(timeline))
    kept: list[Event] = []
    for event in timeline:
        if isinstance(event, Start):
            waiting.difference_update(event.members)
        elif not waiting.isdisjoint(getattr(event, "members", ())):
            continue
        match event:
            case AddPartitions():
                if there.get(event.topic, event.to) >= event.to:
                    continue
                there[event.topic] = event.to
            case CreateTopic():
                if event.topic.name in there:
                    continue
                there[event.topic.name] = event.topic.partitions
            case DeleteTopic():
                if event.topic not in there or len(there) == 1:
                    continue
                del there[event.topic]
            case Resubscribe() if event.topics[0] not in there:
                continue
            case _:
                pass
        kept.append(event)
    return tuple(kept)


class Watcher(Protocol):
    def feed(self, fact: Fact) -> None: ...


def broken(scenario: Scenario, strategy: str, seed: int, checkers: Sequence[Watcher] | None = None) -> Broken | None:
    """By what every run is held to, and by the rules of its protocol. A machine that crashes is told of like anything
    else: its run can be made smaller, and run again."""
    now_ms = 0
    auto_commit = scenario.client.get("enable.auto.commit", True)
    if checkers is None:
        checkers = Checker(), ProtocolChecker(lossy=scenario.network.loss > 0, auto_commit=auto_commit)

    def watch(fact: Fact) -> None:
        nonlocal now_ms
        now_ms = fact["t"]
        for checker in checkers:
            checker.feed(fact)

    try:
        simulate(scenario, strategy, seed, watch=watch, messages=True)
    except Broken as found:
        return None if known_violation(scenario, strategy, found) else found
    except Exception as crash:  # noqa: BLE001 - whatever it is
        where = extract_tb(crash.__traceback__)[-1]
        return Broken(CRASH, f"{type(crash).__name__}: {crash}, in {where.name} of {where.filename}", now_ms)
    return None


def smallest(scenario: Scenario, strategy: str, seed: int, invariant: str) -> Scenario:
    """The same breach with fewer events, and then fewer members."""

    def fails(smaller: Scenario) -> bool:
        try:
            found = broken(parse_scenario(scenario_json(smaller)), strategy, seed)  # as who is shown it will run it
        except Exception:  # noqa: BLE001 - a scenario that makes no sense any more is no smaller one
            return False
        return found is not None and found.invariant == invariant

    events = shortened(list(scenario.timeline), lambda some: fails(replace(scenario, timeline=tuple(some))))
    scenario = replace(scenario, timeline=tuple(events))
    members = shortened(
        list(scenario.members), lambda some: bool(some) and fails(replace(scenario, members=tuple(some)))
    )
    return replace(scenario, members=tuple(members))


def run(number: int, seed: int) -> str | None:
    """What is wrong with this run, in words that let somebody else see it."""
    random = Random(f"{seed}/{number}")
    scenario, strategy = random_scenario(random), random.choice(STRATEGIES)
    found = broken(scenario, strategy, number)
    if found is None:
        return None
    small = smallest(scenario, strategy, number, found.invariant)
    text = json.dumps(scenario_json(small), indent=1)
    again = f"python -m tests.harness.random_scenarios --runs 1 --first {number} --seed {seed}"
    # `simulate` watches the invariants of a run. The protocols' rules are the tests' own, and so is their command.
    is_invariant = broken(small, strategy, number, (Checker(),)) is not None
    shows = f"rebalance-lab simulate - --strategy {strategy} --seed {number}"
    shows_rule = f"python -m tests.harness.random_scenarios --replay - --strategy {strategy} --seed {number}"
    command = shows if is_invariant else shows_rule
    return f"run {number}: {found}\nagain: {again}\n{command} <<'END'\n{text}\nEND"


def replay(file: TextIO, strategy: str, seed: int) -> str | None:
    """Run one scenario again under all rules, as the printed command asks."""
    found = broken(parse_scenario(json.load(file)), strategy, seed)
    return None if found is None else str(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, help="from the clock without it")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--replay", type=argparse.FileType(), metavar="FILE", help="one scenario; - for standard input")
    parser.add_argument("--strategy", help="of the scenario that is replayed")
    options = parser.parse_args()
    if options.replay is not None:
        wrong = replay(options.replay, options.strategy, options.seed or 0)
        print(wrong or "no invariant and no rule broken")
        sys.exit(1 if wrong else 0)
    if options.seed is None:
        options.seed = int(time.time())
    print(f"seed {options.seed}", flush=True)
    for number in range(options.first, options.first + options.runs):
        wrong = run(number, options.seed)
        if wrong:
            print(wrong)
            sys.exit(1)
        if (number + 1) % 500 == 0:
            print(f"{number + 1} runs, no invariant broken", flush=True)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.simulator`: what a simulated run costs, in CPU time of one core, beside the goals.

Kernel     members send heartbeats to a coordinator that puts off their session timers, in virtual time, with our kernel
           and with SimPy. A logical event is a heartbeat sent, one that arrives, or an answer heard: both make the same
           number of them. SimPy's sessions are told apart: interrupted with every heartbeat, as its manual has it, or
           asleep until the session could be over and then looked at, which is our kernel's own trick
Rolling    100 members, 1,000 partitions, one virtual hour with a rolling restart in it: 25 at a time, which is what a
           Kubernetes Deployment does by default, ten, or one, as in a StatefulSet. Each step is two rebalances of
           everybody, so one at a time is 200 of them
Idle       a day in which nothing happens beside an hour in which nothing happens
Scale-out  from 500 to 1,000 members, 10,000 partitions
--profile  where the time of a rolling restart goes
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable, Generator
from time import process_time
from typing import Any

import simpy

from rebalance_lab.harness.evaluate.simulation import simulate
from rebalance_lab.harness.scenario.model import (
    Event,
    MemberSpec,
    Network,
    Rate,
    RollingRestart,
    Scale,
    Scenario,
    TopicSpec,
)
from rebalance_lab.harness.simulator.kernel import Kernel, Timers
from rebalance_lab.protocol_v1.common.effects import TimerKey

STRATEGIES = (
    "classic/range",
    "classic/roundrobin",
    "classic/sticky",
    "classic/cooperative-sticky",
    "classic/cooperative-sticky+static",
    "classic/load-aware",
    "consumer/uniform",
    "consumer/uniform+static",
    "consumer/range",
)
HEARTBEAT_MS, SESSION_MS, LATENCY_MS = 3_000, 45_000, 2
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


# The kernel beside SimPy's


def with_our_kernel(members: int, until_ms: int) -> int:
    """The logical events."""
    kernel, done = Kernel(), 0

    def expire(key: TimerKey) -> None:
        raise AssertionError(f"{key} ran out")

    sessions = Timers(kernel, expire)

    def beat(key: TimerKey) -> None:
        nonlocal done
        done += 1
        kernel.after(LATENCY_MS, arrive, key)

    def arrive(key: TimerKey) -> None:
        nonlocal done
        done += 1
        sessions.set(key, SESSION_MS)
        kernel.after(LATENCY_MS, hear, key)

    def hear(key: TimerKey) -> None:
        nonlocal done
        done += 1
        beats.set(key, HEARTBEAT_MS - 2 * LATENCY_MS)

    beats = Timers(kernel, beat)
    for number in range(members):
        key = ("session", "g", f"m-{number}")
        sessions.set(key, SESSION_MS)
        beats.set(key, number * HEARTBEAT_MS // members)
    kernel.run(until_ms)
    return done


def with_simpy(members: int, until_ms: int, *, interrupts: bool) -> int:
    env, done = simpy.Environment(), 0
    due = [SESSION_MS] * members

    def asleep(number: int) -> Generator[simpy.Event, Any, None]:
        while due[number] > env.now:
            yield env.timeout(due[number] - env.now)
        raise AssertionError(f"{number} ran out")

    def interrupted(number: int) -> Generator[simpy.Event, Any, None]:
        while True:
            try:
                yield env.timeout(SESSION_MS)
                raise AssertionError(f"{number} ran out")
            except simpy.Interrupt:
                continue

    def member(number: int, session: simpy.Process) -> Generator[simpy.Event, Any, None]:
        nonlocal done
        yield env.timeout(number * HEARTBEAT_MS // members)
        while True:
            done += 1
            yield env.timeout(LATENCY_MS)
            done += 1
            if interrupts:
                session.interrupt()
            else:
                due[number] = int(env.now) + SESSION_MS
            yield env.timeout(LATENCY_MS)
            done += 1
            yield env.timeout(HEARTBEAT_MS - 2 * LATENCY_MS)

    for number in range(members):
        session = env.process(interrupted(number) if interrupts else asleep(number))
        env.process(member(number, session))
    env.run(until=until_ms + 1)
    return done


def per_second(make: Callable[[], int], times: int = 3) -> tuple[int, float]:
    """Events, and how many of them a second: the best of some."""
    best, events = 0.0, 0
    for _ in range(times):
        begun = process_time()
        events = make()
        best = max(best, events / (process_time() - begun))
    return events, best


def kernels(members: int, until_ms: int) -> None:
    print(f"Kernel: heartbeats of {members:,} members with session timers, {until_ms // MINUTE_MS} virtual minutes")
    events, ours = per_second(lambda: with_our_kernel(members, until_ms))
    print(f"  {'our kernel':40}{ours:12,.0f} events/s of {events:,}")
    for what, interrupts in (("SimPy, sessions interrupted", True), ("SimPy, sessions looked at", False)):
        same, theirs = per_second(lambda interrupts=interrupts: with_simpy(members, until_ms, interrupts=interrupts))  # type: ignore[misc]
        assert same == events, (same, events)
        print(f"  {what:40}{theirs:12,.0f} events/s    ratio {ours / theirs:.2f} (goal 3 or more)")


# Whole runs


def group(members: int, partitions: int, duration_ms: int, *timeline: Event) -> Scenario:
    """Everybody has five times the capacity that its part of the records needs."""
    return Scenario(
        name="benchmark",
        duration_ms=duration_ms,
        topics=(TopicSpec(name="orders", partitions=partitions, rate=Rate(((0, members * 100.0),))),),
        members=tuple(MemberSpec(name=f"m-{n}", topics=("orders",), record_ms=2.0) for n in range(1, members + 1)),
        network=Network(latency_ms=2, jitter_ms=1),
        timeline=timeline,
    )


def rolling(parallelism: int) -> Scenario:
    roll = RollingRestart(at_ms=5 * MINUTE_MS, downtime_ms=5_000, gap_ms=15_000, parallelism=parallelism)
    return group(100, 1_000, HOUR_MS, roll)


def scale_out() -> Scenario:
    return group(500, 10_000, 10 * MINUTE_MS, Scale(at_ms=2 * MINUTE_MS, to=1_000, template="m-1"))


def cost(scenario: Scenario, strategy: str) -> tuple[float, int]:
    run = simulate(scenario, strategy, seed=1)
    return run.cpu_s, run.events


def rolling_restarts() -> None:
    print("\nRolling restart: 100 members x 1,000 partitions, one virtual hour; CPU seconds (events), goal about 1 s")
    print(f"  {'':36}{'25 at a time':>22}{'ten at a time':>22}{'one at a time':>22}")
    for strategy in STRATEGIES:
        cells = [cost(rolling(parallelism), strategy) for parallelism in (25, 10, 1)]
        print(f"  {strategy:36}" + "".join(f"{cpu_s:10.2f} ({events:8,})" for cpu_s, events in cells), flush=True)


def idle() -> None:
    print("\nIdle: 100 members x 1,000 partitions, nothing happens; CPU seconds, goal: a day under twice an hour")
    for strategy in ("classic/range", "consumer/uniform"):
        hour, day = (
            min(cost(group(100, 1_000, length_ms), strategy)[0] for _ in range(3))
            for length_ms in (HOUR_MS, 24 * HOUR_MS)
        )
        print(f"  {strategy:36}hour {hour:6.3f}   day {day:6.3f}   ratio {day / hour:.2f}")


def scale_outs() -> None:
    print(
        "\nScale-out: 500 to 1,000 members x 10,000 partitions; CPU seconds (kernel events), goal a minute or two each"
    )
    for strategy in STRATEGIES:
        cpu_s, events = cost(scale_out(), strategy)
        print(f"  {strategy:36}{cpu_s:10.2f} ({events:8,})", flush=True)


def profile() -> None:
    for strategy in ("classic/range", "consumer/uniform"):
        profiler = cProfile.Profile()
        profiler.runcall(simulate, rolling(1), strategy, 1)
        print(f"\n{strategy}, one at a time")
        pstats.Stats(profiler).sort_stats("tottime").print_stats(22)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without the scale-out")
    parser.add_argument("--profile", action="store_true", help="only where the time of a rolling restart goes")
    arguments = parser.parse_args()
    if arguments.profile:
        profile()
        return
    kernels(1_000, 10 * MINUTE_MS)
    idle()
    rolling_restarts()
    if not arguments.quick:
        scale_outs()


if __name__ == "__main__":
    main()

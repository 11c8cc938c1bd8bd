"""Hold the world of a live run: a real cluster, processes and the wall clock; harness/timeline/schedule.py acts on it.

Names      topics and the group get a prefix of their own, which the facts leave out
Start at   LiveWorld.run
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from random import Random
from typing import Any

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.live.actors import STOP_INTERRUPTED_WITHIN_S, Actor, Child
from rebalance_lab.harness.kafka.live.librdkafka_settings import client_settings, is_incremental
from rebalance_lab.harness.kafka.live.live_lag import Progress
from rebalance_lab.harness.measure.trace import Fact, Trace, by_topic
from rebalance_lab.harness.scenario.application import Application
from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import MemberSpec, Scenario, TopicSpec
from rebalance_lab.harness.timeline.lifecycle import Lasting, start_now
from rebalance_lab.harness.timeline.replica_names import ReplicaNames
from rebalance_lab.harness.timeline.schedule import schedule
from rebalance_lab.harness.timeline.subscription_wishes import SubscriptionWishes

ADMIN_S = 30.0
PATIENCE_S = 60.0
"""How long a consumer waits for a coordinator that fails over."""


class WallClock:
    """Keep real time as the simulator's kernel keeps virtual time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.epoch_s = time.time()

    @property
    def now_ms(self) -> int:
        return int((time.time() - self.epoch_s) * 1_000)

    def at(self, at_ms: int, action: Callable[..., None], *given: Any) -> None:
        self.after(at_ms - self.now_ms, action, *given)

    def after(self, delay_ms: int, action: Callable[..., None], *given: Any) -> None:
        self.loop.call_later(max(0, delay_ms) / 1_000, action, *given)


class LiveWorld:
    def __init__(self, scenario: Scenario, strategy: str, cluster: Cluster, prefix: str, seed: int) -> None:
        self.scenario, self.strategy, self.cluster, self.prefix = scenario, strategy, cluster, prefix
        self.group = f"{prefix}group"
        self.random = Random(seed)
        self.trace = Trace()
        self.kernel = WallClock()
        self.processes: dict[str, Actor] = {}
        self.members = {spec.name: spec for spec in scenario.members}
        self.strategies: dict[str, str] = {}
        self.deployed: dict[str, str] = {}
        self.scalings: Counter[str] = Counter()
        self.topics: dict[str, Topic] = {}
        self.specs: dict[str, TopicSpec] = {}
        self.timeline_over_ms = 0
        self.starting: dict[str, int] = {}
        self.lasting: Lasting = {}
        self.replica_names = ReplicaNames(spec.name for spec in scenario.members)
        self.wishes = SubscriptionWishes(self.replica_names)
        self.wanted: list[str] = []
        self.written: list[tuple[int, Mapping[str, list[int]]]] = []
        """What the producer has told, and when."""
        self.troubles: list[str] = []
        self.progress = Progress()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.over = False
        self.one_broker_down = asyncio.Lock()
        self.producer = Child("rebalance_lab.harness.kafka.live.producer", self.on_written, lambda: None)

    # The run

    async def run(self) -> None:
        """Run the scenario; the clock starts when the topics are there."""
        try:
            for spec in self.scenario.topics:
                await self.make_topic(spec)
            self.kernel = WallClock()
            for spec in self.scenario.topics:
                self.note_topic(spec.name, spec.partitions)
            await self.producer.start(
                {
                    "bootstrap": self.cluster.bootstrap,
                    "prefix": self.prefix,
                    "epoch_s": self.kernel.epoch_s,
                    "rates": self.rates(),
                }
            )
            self.trace.tell(self.kernel.now_ms, "wanted", topics=self.wanted)  # until a member subscribes
            schedule(self)
            await asyncio.sleep(self.scenario.duration_ms / 1_000)
            self.finish()
        except asyncio.CancelledError:
            self.over = True
            await self.end(STOP_INTERRUPTED_WITHIN_S)
            raise
        finally:
            self.over = True
            await self.end()

    def finish(self) -> None:
        read = {place for actor in self.processes.values() for place in actor.positions}
        subscribed = self.wishes.of(self.processes, self.topics)
        everything = {(name, n) for name, topic in self.topics.items() for n in range(topic.partitions)}
        unread = [place for place in everything - read if place[0] in subscribed]
        self.trace.tell(self.kernel.now_ms, "end", quiet=False, unread=by_topic(unread))

    async def end(self, within_s: float | None = None) -> None:
        """End the producer, then the members, who get no more to read. With a limit, all of them at once."""
        if within_s is not None:
            for task in self.tasks:
                task.cancel()
            children = (self.producer, *(actor.child for actor in self.processes.values()))
            await asyncio.gather(*(child.end(within_s) for child in children), return_exceptions=True)
            return
        await self.producer.end()
        await asyncio.gather(*(actor.child.end() for actor in list(self.processes.values())))
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def go(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.kernel.loop.create_task(self.noticed(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def noticed(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - told at the end of the run, which goes on
            self.troubles.append(f"{type(error).__name__}: {error}")

    # Processes

    def start(self, name: str, spec: MemberSpec | None = None) -> None:
        if self.over:
            return
        spec = spec or self.members[name]
        self.members[name] = spec
        actor = self.processes[name] = Actor(name, lambda: self.kernel.now_ms, self.tell, self.ended, self.wants)
        self.wants(name, spec.topics, spec.pattern)
        self.go(actor.start(self.setup_of(name, spec)))

    def setup_of(self, name: str, spec: MemberSpec) -> dict[str, Any]:
        strategy = self.strategies.get(name, self.strategy)
        settings = client_settings(self.scenario, spec, name, strategy)
        return {
            "name": name,
            "prefix": self.prefix,
            "epoch_s": self.kernel.epoch_s,
            "client": {**settings, "bootstrap.servers": self.cluster.bootstrap, "group.id": self.group},
            "incremental": is_incremental(strategy),
            "topics": list(spec.topics),
            "pattern": spec.pattern,
            "record_ms": spec.record_ms,
            "max_poll_records": Application.from_settings({**self.scenario.client, **spec.client}).max_poll_records,
            "callbacks": asdict(self.scenario.callbacks),
            "poison": [asdict(poison) for poison in self.scenario.poison],
            "patience_s": PATIENCE_S,
        }

    def tell(self, fact: Fact) -> None:
        """Collect facts, which come a little out of order, from many processes; they are put in order at the end."""
        self.progress.feed(fact)
        if fact["fact"] == "process" and fact["is"] == "failed":
            self.failed(fact["member"])
        self.trace.facts.append(fact)

    def failed(self, name: str) -> None:
        """Note a failed process, as in a simulated run: it is about to start, unless it was stopping anyway, or is
        stopped meanwhile.
        """
        if not self.processes[name].stopping:
            self.starting[name] = at_ms = self.kernel.now_ms + Constants().restart_failed_ms
            self.kernel.at(at_ms, start_now, self, name, at_ms, None)

    def ended(self, actor: Actor) -> None:
        if self.processes.get(actor.name) is actor:
            del self.processes[actor.name]

    def wants(self, name: str, topics: Sequence[str], pattern: str | None) -> None:
        self.wishes.note(name, topics, pattern)
        self.tell_wanted()

    def tell_wanted(self) -> None:
        wanted = self.wishes.of_all(self.topics)
        if wanted != self.wanted:
            self.wanted = wanted
            self.tell({"t": self.kernel.now_ms, "fact": "wanted", "topics": wanted})

    def start_delay_ms(self) -> int:
        """Return no delay: a real process takes its own time."""
        return 0

    def disturbed(self) -> None:
        """Do nothing: a live run makes no idle leaps."""

    def cut_off(self, name: str) -> None:
        raise NotImplementedError("refused by check_live")

    def reconnect(self, name: str) -> None:
        raise NotImplementedError("refused by check_live")

    # Topics and records

    def rates(self) -> dict[str, list[float]]:
        now_ms = self.kernel.now_ms
        return {name: self.rates_of(self.specs[name], self.specs[name].rate.at(now_ms)) for name in self.topics}

    def rates_of(self, spec: TopicSpec, total: float) -> list[float]:
        count = self.topics[spec.name].partitions
        return [spec.rate_of(n, count, total) for n in range(count)]

    def say_rates(self) -> None:
        self.producer.say({"rates": self.rates()})

    def note_topic(self, name: str, partitions: int) -> None:
        self.trace.tell(self.kernel.now_ms, "topic", topic=name, partitions=partitions)
        self.tell_wanted()
        for at_ms, _ in self.specs[name].rate.steps:
            if at_ms > self.kernel.now_ms:
                self.kernel.at(at_ms, self.say_rates)

    def on_written(self, told: dict[str, Any]) -> None:
        if "failed" in told:
            self.troubles.append(f"a record was not written: {told['failed']}")
        else:
            self.written.append((told["t"], told["written"]))

    def lag_records(self) -> float:
        written = self.written[-1][1] if self.written else {}
        return float(self.progress.waiting(written))

    async def make_topic(self, spec: TopicSpec) -> None:
        from confluent_kafka.cimpl import NewTopic

        new = NewTopic(self.prefix + spec.name, spec.partitions, min(3, len(self.cluster.node_ids)))
        await self.admin("create_topics", [new])
        self.specs[spec.name] = spec
        self.topics[spec.name] = Topic(spec.partitions)

    async def admin(self, method: str, question: Any) -> None:
        from confluent_kafka.admin import AdminClient

        def ask() -> None:
            client: Any = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
            for future in getattr(client, method)(question, operation_timeout=ADMIN_S).values():
                future.result(timeout=ADMIN_S)

        await asyncio.to_thread(ask)

    def create_topic(self, spec: TopicSpec) -> None:
        self.go(self.created(spec))

    async def created(self, spec: TopicSpec) -> None:
        await self.make_topic(spec)
        self.note_topic(spec.name, spec.partitions)
        self.say_rates()

    def grow_topic(self, name: str, partitions: int) -> None:
        self.go(self.grown(name, partitions))

    async def grown(self, name: str, partitions: int) -> None:
        from confluent_kafka.cimpl import NewPartitions

        await self.admin("create_partitions", [NewPartitions(self.prefix + name, partitions)])
        self.topics[name] = Topic(partitions)
        self.trace.tell(self.kernel.now_ms, "topic", topic=name, partitions=partitions)
        self.say_rates()

    def delete_topic(self, name: str) -> None:
        del self.topics[name]
        self.say_rates()
        self.tell({"t": self.kernel.now_ms, "fact": "topic", "topic": name, "partitions": 0})
        self.tell_wanted()
        self.go(self.admin("delete_topics", [self.prefix + name]))

    # The coordinator's broker

    def fail_over(self, down_ms: int) -> None:
        self.go(self.failed_over(down_ms))

    async def failed_over(self, down_ms: int) -> None:
        """Fail over one broker at a time: of three brokers two must live, and on a busy computer one is long in coming
        back.
        """
        async with self.one_broker_down:
            node = await asyncio.to_thread(self.cluster.coordinator_of, self.group)
            self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "down"})
            await asyncio.to_thread(self.cluster.kill, node)
            await asyncio.sleep(down_ms / 1_000)
            await asyncio.to_thread(self.cluster.restart, node)
            self.trace.tell(self.kernel.now_ms, "coordinator", **{"is": "up"})

"""Watch the offsets of groups that were asked for lately, so that an answer has a window of looks without waiting.

Bounded    so many groups at a time, the one that was asked for longest ago goes first; each for so long after the last
           question; each window so long
Threads    of their own: a broker that hangs holds up looks and no question
Start at   GroupWatches.asked
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rebalance_lab.api.service.service_settings import Cluster
from rebalance_lab.harness.kafka.groups.live_group import GroupError
from rebalance_lab.harness.kafka.groups.offset_window import OffsetWindow, Sample, TopicPartition

LookAt = Callable[[Cluster, str, Sequence[TopicPartition]], Sample]
Key = tuple[str, str]
"""A cluster's name, and a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    groups: int = 32
    lasts_s: float = 300.0
    """After the last question for the group."""
    every_s: float = 5.0
    longest_s: float = 120.0
    """How far a window reaches back."""
    threads: int = 4


@dataclass(slots=True, eq=False)
class Watch:
    asked_s: float
    places: Sequence[TopicPartition]
    window: OffsetWindow = field(default_factory=OffsetWindow)
    task: asyncio.Task[None] | None = field(default=None)


class GroupWatches:
    def __init__(self, look_at: LookAt, limits: WatchLimits | None = None) -> None:
        self.look_at, self.limits = look_at, limits or WatchLimits()
        self.watches: dict[Key, Watch] = {}
        """In the order of the last questions."""
        self._threads = ThreadPoolExecutor(self.limits.threads, thread_name_prefix="group-watch")

    def window(self, cluster: Cluster, group: str) -> OffsetWindow:
        """Return the looks that there are; none for a group that is not watched."""
        watch = self.watches.get((cluster.name, group))
        return watch.window if watch is not None else OffsetWindow()

    def asked(self, cluster: Cluster, group: str, window: OffsetWindow) -> None:
        """Note that a question for the group was answered with this window, and watch the group from now on."""
        if not window.samples:
            return
        loop = asyncio.get_running_loop()
        key = cluster.name, group
        watch = self.watches.pop(key, None) or Watch(loop.time(), ())
        self.watches[key] = watch
        watch.asked_s, watch.places = loop.time(), list(window.samples[-1].offsets)
        latest_s = watch.window.samples[-1].at_s if watch.window.samples else float("-inf")
        for sample in window.samples:
            if sample.at_s > latest_s:
                watch.window = watch.window.with_sample(sample, longest_s=self.limits.longest_s)
        if watch.task is None:
            watch.task = loop.create_task(self.keep_looking(key, cluster, watch))
        while len(self.watches) > self.limits.groups:
            self.end(next(iter(self.watches)))

    async def keep_looking(self, key: Key, cluster: Cluster, watch: Watch) -> None:
        loop, limits = asyncio.get_running_loop(), self.limits
        while True:
            await asyncio.sleep(limits.every_s)
            if loop.time() - watch.asked_s > limits.lasts_s:
                break
            try:
                sample = await loop.run_in_executor(self._threads, self.look_at, cluster, key[1], watch.places)
            except GroupError:
                break
            if sample.at_s > watch.window.samples[-1].at_s:
                watch.window = watch.window.with_sample(sample, longest_s=limits.longest_s)
        if self.watches.get(key) is watch:
            del self.watches[key]

    def end(self, key: Key) -> None:
        watch = self.watches.pop(key)
        if watch.task is not None:
            watch.task.cancel()

    def close(self) -> None:
        for key in list(self.watches):
            self.end(key)
        self._threads.shutdown(wait=False, cancel_futures=True)


def look_at_offsets_of(cluster: Cluster, group: str, places: Sequence[TopicPartition]) -> Sample:
    from rebalance_lab.harness.kafka.groups import look_at_offsets

    return look_at_offsets(cluster.bootstrap, group, places, timeout_s=cluster.timeout_s, settings=cluster.settings)

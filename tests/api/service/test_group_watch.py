"""The service's looks at groups that were asked for lately: how many, how often, and for how long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rebalance_lab.api.service.group_watch import GroupWatches, WatchLimits
from rebalance_lab.api.service.service_settings import Cluster
from rebalance_lab.harness.kafka.groups.lag_status import Offsets
from rebalance_lab.harness.kafka.groups.live_group import GroupError
from rebalance_lab.harness.kafka.groups.offset_window import OffsetWindow, Sample, TopicPartition

CLUSTER = Cluster(name="c", bootstrap="127.0.0.1:1")
PLACE = ("orders", 0)


class Broker:
    """Answers looks, or has no such group any more."""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.is_gone = False

    def look(self, cluster: Cluster, group: str, places: Sequence[TopicPartition]) -> Sample:
        if self.is_gone:
            raise GroupError("unreachable", "gone")
        self.looks.append(group)
        return sample(len(self.looks))


def sample(committed: int) -> Sample:
    return Sample(time.monotonic(), {PLACE: Offsets(0, 1_000, committed)})


def watching(broker: Broker, **limits: float) -> GroupWatches:
    made = {"every_s": 0.02, "lasts_s": 10.0, "longest_s": 10.0, **limits}
    return GroupWatches(broker.look, WatchLimits(**made))  # type: ignore[arg-type]


def test_a_group_that_was_asked_for_is_looked_at_until_a_while_after_the_last_question() -> None:
    async def body() -> None:
        broker = Broker()
        watches = watching(broker, lasts_s=0.3)
        assert watches.window(CLUSTER, "g").samples == ()
        watches.asked(CLUSTER, "g", OffsetWindow((sample(0),)))
        await asyncio.sleep(0.2)
        seen = len(watches.window(CLUSTER, "g").samples)
        assert seen >= 3
        watches.asked(CLUSTER, "g", OffsetWindow((sample(0),)))  # once more: the window goes on
        assert len(watches.window(CLUSTER, "g").samples) == seen + 1
        await asyncio.sleep(0.6)
        assert not watches.watches
        looks = len(broker.looks)
        await asyncio.sleep(0.1)
        assert len(broker.looks) == looks
        watches.close()

    asyncio.run(body())


def test_a_window_reaches_back_so_far_and_no_further() -> None:
    async def body() -> None:
        watches = watching(Broker(), longest_s=0.2)
        watches.asked(CLUSTER, "g", OffsetWindow((sample(0),)))
        await asyncio.sleep(0.6)
        assert 0.05 < watches.window(CLUSTER, "g").span_s <= 0.2
        watches.close()

    asyncio.run(body())


def test_the_group_that_was_asked_for_longest_ago_makes_room() -> None:
    async def body() -> None:
        watches = watching(Broker(), groups=2)
        for group in ("a", "b", "a", "c"):
            watches.asked(CLUSTER, group, OffsetWindow((sample(0),)))
        assert [group for _, group in watches.watches] == ["a", "c"]
        watches.close()
        assert not watches.watches

    asyncio.run(body())


def test_a_group_that_cannot_be_read_any_more_is_not_watched_on() -> None:
    async def body() -> None:
        broker = Broker()
        watches = watching(broker)
        watches.asked(CLUSTER, "g", OffsetWindow((sample(0),)))
        broker.is_gone = True
        await asyncio.sleep(0.2)
        assert not watches.watches
        watches.close()

    asyncio.run(body())

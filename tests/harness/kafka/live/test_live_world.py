"""What a live world knows by itself, without a cluster: who wants what, and who comes back."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.kafka.brokers import Cluster
from rebalance_lab.harness.kafka.live.actors import Actor
from rebalance_lab.harness.kafka.live.live_world import LiveWorld
from rebalance_lab.harness.scenario.model import TopicSpec
from rebalance_lab.harness.scenario.reader import parse_scenario
from rebalance_lab.harness.timeline.lifecycle import end_it

SCENARIO: dict[str, Any] = {
    "name": "wishes",
    "duration": "10s",
    "topics": {"orders": {"partitions": 2}, "payments": {"partitions": 2}, "other": {"partitions": 2}},
    "members": {"consumer": {"count": 2, "pattern": "orders.*"}, "biller": {"topics": "payments"}},
}


async def world_of(*topics: str) -> LiveWorld:
    world = LiveWorld(parse_scenario(SCENARIO), "classic/range", cast(Cluster, None), "lab-", 0)
    for name in topics:
        world.topics[name], world.specs[name] = Topic(2), TopicSpec(name=name, partitions=2)
    return world


def test_wanted_is_what_patterns_match_and_what_is_subscribed_to_later() -> None:
    async def told() -> list[list[str]]:
        world = await world_of("orders", "payments", "other")
        world.wants("consumer-1", (), "orders.*")
        world.topics["orders-eu"] = Topic(2)
        world.specs["orders-eu"] = TopicSpec(name="orders-eu", partitions=2)
        world.note_topic("orders-eu", 2)
        world.wants("biller", ("payments",), None)
        actor = Actor("consumer-1", lambda: 0, world.tell, world.ended, world.wants)
        actor.subscribe(["other"], None)
        world.delete_topic("other")
        return [fact["topics"] for fact in world.trace.facts if fact["fact"] == "wanted"]

    eu = ["orders", "orders-eu"]
    assert asyncio.run(told()) == [["orders"], eu, [*eu, "payments"], ["other", "payments"], ["payments"]]


def test_who_has_failed_is_about_to_start_unless_it_is_stopped_meanwhile() -> None:
    async def about_to_start() -> list[bool]:
        world = await world_of("orders")
        actor = world.processes["biller"] = Actor("biller", lambda: 0, world.tell, world.ended, world.wants)
        actor.on_fact({"t": 0, "fact": "process", "member": "biller", "is": "failed", "why": "fenced"})
        waits = ["biller" in world.starting]
        end_it(world, "biller", kill=False)
        return [*waits, "biller" in world.starting]

    assert asyncio.run(about_to_start()) == [True, False]

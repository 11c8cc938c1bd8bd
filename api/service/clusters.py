"""Describe groups of the clusters that the operator named. A broker that hangs holds only a thread of its own here.

Statuses come from a window of looks, which group_watch.py goes on with after the answer.

Start at   Clusters.describe
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.group_watch import GroupWatches, look_at_offsets_of
from rebalance_lab.api.service.service_settings import Cluster

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.groups import GroupDescription

AT_ONCE = 8
GRACE_S = 1.0
"""The client has its own timeout; this is for a client that does not keep it."""


class Clusters:
    def __init__(self, clusters: Mapping[str, Cluster]) -> None:
        self.clusters = clusters
        self.asking = 0
        self.watches = GroupWatches(look_at_offsets_of)
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cluster")

    def close(self) -> None:
        self.watches.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def find(self, name: str | None) -> Cluster:
        if name is None and len(self.clusters) == 1:
            return next(iter(self.clusters.values()))
        if name is None:
            known = f"one of {', '.join(self.clusters)}" if self.clusters else "and none is configured here"
            raise Problem("not-found", f"say which cluster: {known}", path="cluster")
        if name not in self.clusters:
            raise Problem("not-found", f"no cluster is called {name} here", path="cluster")
        return self.clusters[name]

    async def describe(self, name: str | None, group: str) -> dict[str, Any]:
        """Return what is known of a group; its `snapshot` is the group as the JSON contract has it."""
        from rebalance_lab.harness.kafka.groups import snapshot

        cluster = self.find(name)
        found = await self.within(cluster, lambda: look_at(cluster, group, self.watches))
        self.watches.asked(cluster, group, found.window)
        return {**found.to_json(), "snapshot": snapshot(found)}

    async def within(self, cluster: Cluster, work: Callable[[], GroupDescription]) -> GroupDescription:
        if self.asking >= AT_ONCE:
            raise Problem("busy", "enough questions to clusters are open", retry_after_s=2)
        self.asking += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        future.add_done_callback(self._answered)
        try:
            return await asyncio.wait_for(asyncio.shield(future), cluster.timeout_s + GRACE_S)
        except TimeoutError:
            raise unanswered(cluster, f"did not answer in {cluster.timeout_s:g} s") from None

    def _answered(self, future: asyncio.Future[GroupDescription]) -> None:
        self.asking -= 1
        if not future.cancelled():
            future.exception()  # seen: whoever asked may have given up


def unanswered(cluster: Cluster, why: str) -> Problem:
    return Problem("cluster", f"{cluster.name}: {why}", path="cluster", retry_after_s=5)


def look_at(cluster: Cluster, group: str, watches: GroupWatches) -> GroupDescription:
    """Describe the group by two looks of now, for rates, and by the looks of its watch."""
    from rebalance_lab.harness.kafka.groups import GroupError, describe

    try:
        return describe(
            cluster.bootstrap,
            group,
            timeout_s=cluster.timeout_s,
            settings=cluster.settings,
            earlier=lambda: watches.window(cluster, group),
        )
    except GroupError as error:
        if error.kind == "no such group":
            raise Problem("not-found", str(error), path="group") from None
        raise unanswered(cluster, str(error)) from None

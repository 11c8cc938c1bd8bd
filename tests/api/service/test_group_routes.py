"""Live groups over HTTP: a real broker, both protocols, and from there to a recommendation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer

from tests.api.service.conftest import Running, start
from tests.harness.kafka.brokers.clients import Member, fresh, new_topic, poll_until, produce
from tests.real_brokers import cluster_of

pytestmark = pytest.mark.xdist_group("jvm")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    yield from cluster_of(1)


@pytest.fixture(scope="module")
def running(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    config = f"[clusters.real]\nbootstrap = '{cluster.bootstrap}'\ntimeout_s = 15\n"
    service = start(tmp_path_factory.mktemp("groups"), config)
    yield service
    service.stop()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_group_is_described_assigned_and_advised(client: httpx.Client, cluster: Any, protocol: str) -> None:
    topic, group = new_topic(cluster), fresh(f"a group with {protocol} members")
    produce(cluster, topic, (str(number) for number in range(40)))
    members = [Member(cluster, group, topic, protocol) for _ in range(2)]
    try:
        poll_until(members, lambda: all(len(one.partitions) == 2 for one in members), "two partitions each")
        found = client.get(f"/v1/groups/{group}").json()
        assert (found["protocol"], found["state"]) == (protocol, "Stable")
        owned = sorted(tuple(one["owned"].get(topic, ())) for one in found["members"])
        assert owned == [(0, 1), (2, 3)]
        snapshot = found["snapshot"]
        again = client.post("/v1/assign?strategy=uniform", json=snapshot)
        assert (again.status_code, again.json()["quality"]["moved"]) == (200, 0)
        advice = client.get(f"/v1/groups/{group}/recommend?seeds=1&strategies=range,uniform&cluster=real")
        assert advice.status_code == 200, advice.text
        assert advice.json()["now"].startswith(f"{protocol}/")
        assert advice.json()["properties"]["java"]
    finally:
        for member in members:
            member.close()


def test_a_healthy_consumer_is_never_stalled_and_works_once_its_commits_were_seen(
    client: httpx.Client, cluster: Any
) -> None:
    """Commits come every five seconds, which is the default, and an answer takes about one."""
    topic, group, over, assigned = new_topic(cluster), fresh("healthy"), Event(), Event()
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "log_level": 0})
    consumer.subscribe([topic], on_assign=lambda consumer, partitions: assigned.set())

    def read() -> None:
        while not over.is_set():
            consumer.poll(0.05)

    def write() -> None:
        while not over.wait(0.2):
            produce(cluster, topic, (str(number) for number in range(40)))

    threads = [Thread(target=work, daemon=True) for work in (read, write)]
    for thread in threads:
        thread.start()
    try:
        assert assigned.wait(30)
        statuses, began = [], time.monotonic()
        while time.monotonic() - began < 22:
            asked = time.monotonic()
            found = client.get(f"/v1/groups/{group}").json()
            assert time.monotonic() - asked < 4
            statuses.append({one["status"] for one in found["partitions"]})
        assert set().union(*statuses) <= {"working", "unknown"}
        assert statuses[-1] == {"working"}
        assert found["window"]["looks"] > 4
        assert found["window"]["seconds"] > 10
    finally:
        over.set()
        for thread in threads:
            thread.join(10)
        consumer.close()


def test_a_group_that_is_not_there_is_404(client: httpx.Client) -> None:
    answer = client.get("/v1/groups/nobody-ever")
    assert (answer.status_code, answer.json()["path"]) == (404, "group")

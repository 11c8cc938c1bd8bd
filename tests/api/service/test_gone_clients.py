"""A question whose client is gone ends, and no client takes all the places of other clients."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from rebalance_lab.api.service.answer_cache import Answer
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.jobs import Jobs
from rebalance_lab.api.service.places import Places
from rebalance_lab.api.service.service_settings import Limits
from rebalance_lab.api.service.workers.pool import Busy, Pool, Progress, Question
from tests.api.service.conftest import GROUP, HEAVY, SCENARIO, Running, hashed, start
from tests.api.service.raw_http import connect, request
from tests.api.service.test_operation import wait_for

MONTH: dict[str, Any] = {
    "name": "a month that takes minutes to simulate",
    "duration": "31d",
    "strategy": "classic/range",
    "topics": {"orders": {"partitions": 200, "rate": "400/s"}},
    "members": {"consumer": {"count": 50, "topics": "orders"}},
    "timeline": [{"at": "1h", "restart": {"members": "consumer-1", "downtime": "5s", "times": 700, "every": "1h"}}],
}
SIZE = {"target": "5k/s", "per_consumer": "600/s"}


def gauge(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"rebalance_lab_{name}"))


def slow_work(client: httpx.Client) -> float:
    return gauge(client, 'busy_processes{pool="slow"}') + gauge(client, 'waiting{pool="slow"}')


def ask_and_stay(
    service: Running, scenario: Any, path: str = "/v1/recommend?seeds=50", **headers: str
) -> socket.socket:
    end = connect(service)
    end.sendall(request(path, scenario, headers))
    return end


def test_questions_of_gone_clients_end(running: Running, client: httpx.Client) -> None:
    ends = [ask_and_stay(running, {**MONTH, "name": f"month {i}"}) for i in range(15)]
    wait_for(lambda: slow_work(client) > 1, 30)
    time.sleep(1)
    for end in ends:
        end.close()
    gone = time.monotonic()
    wait_for(lambda: slow_work(client) == 0, 30)
    assert time.monotonic() - gone < 20  # the aim is one second; five minutes is what a gone client once cost
    assert client.post("/v1/size", json=SIZE, timeout=100).status_code == 200
    assert gauge(client, 'http_requests_total{method="POST",route="/v1/recommend",status="499"}') > 0


def test_a_client_that_ends_its_side_and_then_goes_is_noticed(running: Running, client: httpx.Client) -> None:
    """Its last word was that it sends no more: only an attempt to write tells whether it still listens."""
    end = ask_and_stay(running, MONTH)
    wait_for(lambda: slow_work(client) == 1, 30)
    end.shutdown(socket.SHUT_WR)
    time.sleep(1.5)
    assert slow_work(client) == 1
    end.close()
    wait_for(lambda: slow_work(client) == 0, 30)


def test_a_client_that_goes_with_more_requests_in_line_is_noticed(running: Running, client: httpx.Client) -> None:
    end = ask_and_stay(running, MONTH)
    end.sendall(request("/v1/assign?strategy=range", GROUP) * 3)
    wait_for(lambda: slow_work(client) == 1, 30)
    end.close()
    wait_for(lambda: slow_work(client) == 0, 30)


@pytest.fixture(scope="module")
def two_tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    tokens = [f"[[tokens]]\nname = '{name}'\nsha256 = '{hashed(name)}'\nrequests_per_minute = 60000\n" for name in "ab"]
    limits = "workers = 1\n[limits]\njobs = 6\njobs_per_client = 4\n"
    service = start(tmp_path_factory.mktemp("tokens"), limits + "".join(tokens))
    yield service
    service.stop()


def test_one_token_cannot_take_all_places(two_tokens: Running) -> None:
    a, b = ({"authorization": f"Bearer {name}"} for name in "ab")
    with two_tokens.client() as client:
        made = [client.post(f"/v1/simulations?seed={i}", json=HEAVY, headers=a) for i in range(5)]
        assert [one.status_code for one in made] == [201, 201, 201, 201, 429]
        assert made[-1].json()["limit"] == "jobs_per_client"
        assert int(made[-1].headers["retry-after"]) >= 1
        refused = client.post("/v1/recommend?seeds=1", json=SCENARIO, headers=a)
        assert refused.status_code == 429
        started = time.monotonic()
        assert client.post("/v1/size", json=SIZE, headers=b, timeout=100).status_code == 200
        assert time.monotonic() - started < 80  # a's four take two minutes each
        for one in made[:4]:
            assert client.delete(one.json()["links"]["self"], headers=a).status_code == 204


def test_waiting_for_a_place_has_a_limit(tmp_path: Path) -> None:
    service = start(tmp_path, "workers = 1\n[limits]\nslow_waiting_s = 1.0\n")
    try:
        with service.client() as client:
            job = client.post("/v1/simulations", json=HEAVY).json()
            wait_for(lambda: client.get(job["links"]["self"]).json()["state"] == "running")
            started = time.monotonic()
            refused = client.post("/v1/recommend?seeds=1", json=SCENARIO)
            assert (refused.status_code, refused.json()["limit"]) == (503, "slow_waiting_s")
            assert int(refused.headers["retry-after"]) >= 1
            assert time.monotonic() - started < 30
            assert client.delete(job["links"]["self"]).status_code == 204
    finally:
        service.stop()


def test_places_are_limited_for_a_client_and_in_all() -> None:
    places = Places(in_all=4, per_client=3)
    for client in ("a", "a", "a"):
        places.take(client)
    with pytest.raises(Problem) as own:
        places.take("a")
    assert (own.value.status, own.value.limit) == (429, "jobs_per_client")
    places.take("b")
    with pytest.raises(Problem) as full:
        places.take("c")
    assert (full.value.status, full.value.limit) == (503, "jobs")
    places.give_back("a")
    places.take("c")


def test_even_a_client_that_may_have_all_leaves_a_place() -> None:
    places = Places(in_all=2, per_client=8)
    places.take("a")
    with pytest.raises(Problem):
        places.take("a")


def test_finished_jobs_of_another_client_stay() -> None:
    async def run(question: Question, progress: Progress, client: str) -> Answer:
        return Answer.of(question.body)

    async def live_through_it() -> tuple[int, int, int]:
        places = Places(in_all=100, per_client=50)
        jobs = Jobs(places=places, most_kept=6, most_kept_per_client=4, most_bytes=10_000, run=run)
        first = jobs.submit(Question("simulate", b"first"), "b", "b")
        assert first.task is not None
        await first.task
        for _ in range(20):
            job = jobs.submit(Question("simulate", b"more"), "a", "a")
            assert job.task is not None
            await job.task
        assert jobs.find(first.id, "b") is first
        of_a = len(jobs)
        # In bytes too: 20 of 900 are more than half of 10,000.
        for _ in range(20):
            job = jobs.submit(Question("simulate", b"x" * 900), "a", "a")
            assert job.task is not None
            await job.task
        assert jobs.find(first.id, "b") is first
        assert places.taken == 0
        return of_a, len(jobs), places.taken

    of_a, in_all, taken = asyncio.run(live_through_it())
    assert (of_a, taken) == (5, 0)
    assert in_all <= 5


def test_a_place_goes_to_the_client_that_has_the_fewest() -> None:
    """One question of `b` does not wait for all of `a` that came before it."""

    async def live_through_it() -> list[str]:
        pool = Pool("one", 1, Limits(), waiting=10, niceness=0)
        await pool.start()
        order: list[str] = []

        async def ask(client: str) -> None:
            body = json.dumps({"strategy": "range", "group": GROUP}).encode()
            await pool.run(Question("assign", body), time_s=10, client=client)
            order.append(client)

        try:
            await asyncio.gather(*(ask(client) for client in "aaaab"))
        finally:
            await pool.stop()
        return order

    assert asyncio.run(live_through_it()).index("b") <= 2  # and not the last


def test_a_long_line_of_one_client_is_not_the_wait_of_another() -> None:
    async def live_through_it() -> tuple[float, float]:
        pool = Pool("one", 1, Limits(), waiting=10, waiting_s=30, niceness=0)
        await pool.start()
        pool.usual_s = 20.0
        heavy = Question("recommend", json.dumps(MONTH).encode(), {"media": "json", "now": None, "seeds": 50})
        asked = [asyncio.create_task(pool.run(heavy, time_s=60, client="a", waiting_s=math.inf)) for _ in range(6)]
        try:
            await asyncio.sleep(0.1)
            with pytest.raises(Busy):
                pool.check_room("a", 30)
            pool.check_room("b", 30)
            return pool.expect_wait_s("a"), pool.expect_wait_s("b")
        finally:
            for task in asked:
                task.cancel()
            await asyncio.wait(asked)
            await pool.stop()

    assert asyncio.run(live_through_it()) == (100.0, 20.0)


def test_a_gone_question_leaves_the_line_and_frees_its_process() -> None:
    async def live_through_it() -> tuple[int, int, bytes]:
        pool = Pool("one", 1, Limits(), waiting=10, waiting_s=5, niceness=0)
        await pool.start()
        try:
            heavy = Question("recommend", json.dumps(MONTH).encode(), {"media": "json", "now": None, "seeds": 50})
            asked = [asyncio.create_task(pool.run(heavy, time_s=60, client="a")) for _ in range(3)]
            await asyncio.sleep(0.5)
            for task in asked:
                task.cancel()
            await asyncio.wait(asked)
            left = pool.waiting, pool.busy
            body = json.dumps({"strategy": "range", "group": GROUP}).encode()
            return *left, await pool.run(Question("assign", body), time_s=10, client="a")
        finally:
            await pool.stop()

    waiting, busy, answer = asyncio.run(live_through_it())
    assert (waiting, busy) == (0, 0)
    assert json.loads(answer)["strategy"] == "classic/range"


def test_a_question_waits_no_longer_than_it_may() -> None:
    async def live_through_it() -> None:
        pool = Pool("one", 1, Limits(), waiting=10, waiting_s=0.3, niceness=0)
        await pool.start()
        try:
            heavy = Question("recommend", json.dumps(MONTH).encode(), {"media": "json", "now": None, "seeds": 50})
            first = asyncio.create_task(pool.run(heavy, time_s=60, client="a"))
            await asyncio.sleep(0.1)
            with pytest.raises(Busy):
                await asyncio.wait_for(pool.run(heavy, time_s=60, client="b"), 5)
            assert pool.waiting == 0
            first.cancel()
            await asyncio.wait([first])
        finally:
            await pool.stop()

    asyncio.run(live_through_it())

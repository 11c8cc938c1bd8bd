"""What an operator relies on: tokens and rates, limits that shed, processes that may die, an end in order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest

from rebalance_lab.api.service.connection.auth import Bucket, Guard, new_token
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.service_settings import Limits, Token, read_settings
from rebalance_lab.api.service.workers.pool import Pool, Question
from rebalance_lab.assignors.json_contract import ContractError
from tests.api.conftest import Run, run  # noqa: F401 - a fixture
from tests.api.service.conftest import GROUP, HEAVY, SCENARIO, TOKEN, Running, start

REQUEST = {"strategy": "range", "group": GROUP}


def test_a_token_is_needed_where_there_are_tokens(tmp_path: Path) -> None:
    service = start(tmp_path, token=TOKEN)
    try:
        with httpx.Client(base_url=service.url) as stranger:
            for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
                refused = stranger.post("/v1/assign", json=REQUEST, headers=header)
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"].startswith("Bearer")
            assert stranger.get("/metrics").status_code == 401
            assert stranger.get("/healthz").status_code == 200
            assert stranger.get("/").status_code == 200
        with service.client() as friend:
            assert friend.post("/v1/assign", json=REQUEST).status_code == 200
            paths = friend.get("/openapi.json").json()["paths"]
            assert paths["/v1/assign"]["post"]["security"] == [{"token": []}]
    finally:
        service.stop()
    log = service.log.read_text()
    assert '"token": "test"' in log  # its name
    assert TOKEN not in log


def test_a_job_is_its_tokens_own(tmp_path: Path) -> None:
    import hashlib

    other = hashlib.sha256(b"other").hexdigest()
    service = start(tmp_path, f'[[tokens]]\nname = "other"\nsha256 = "{other}"\n', token=TOKEN)
    try:
        with service.client() as client:
            job = client.post("/v1/simulations", json=SCENARIO).json()
            path = f"/v1/simulations/{job['id']}"
            assert client.get(path).status_code == 200
            assert client.get(path, headers={"authorization": "Bearer other"}).status_code == 404
            assert client.delete(path, headers={"authorization": "Bearer other"}).status_code == 404
    finally:
        service.stop()


def test_each_token_has_a_rate_of_its_own() -> None:
    now = [0.0]
    made = {name: new_token() for name in ("a", "b")}
    guard = Guard([Token(name=n, sha256=kept, requests_per_minute=60) for n, (_, kept) in made.items()], lambda: now[0])
    for _ in range(10):
        assert guard.admit(f"Bearer {made['a'][0]}") == "a"
    with pytest.raises(Problem) as refused:
        guard.admit(f"Bearer {made['a'][0]}")
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
    assert guard.admit(f"Bearer {made['b'][0]}") == "b"
    now[0] = 1.0
    assert guard.admit(f"Bearer {made['a'][0]}") == "a"


def test_a_bucket_never_holds_more_than_it_holds() -> None:
    bucket = Bucket(per_s=100.0, left=0.0, at_s=0.0)
    assert sum(bucket.take(3_600.0) == 0 for _ in range(2_000)) == 1_000


def test_a_reachable_address_needs_tokens_or_a_word(run: Run) -> None:  # noqa: F811
    ended = run("serve", "--host", "0.0.0.0", "--port", "0")
    assert ended.code == 2
    assert "--allow-anonymous" in ended.err
    assert ended.err.count("\n") == 1


def test_a_new_token_fits_into_the_file(run: Run) -> None:  # noqa: F811
    printed = run("serve", "--new-token", "ci").out
    token = printed.splitlines()[1].removeprefix("# ")
    (kept,) = read_settings(printed).tokens
    assert kept.name == "ci"
    assert Guard([kept]).admit(f"Bearer {token}") == "ci"


BAD_SETTINGS = [
    ("limits = 5", "limits"),
    ("[limits]\nmembers = -1", "limits.members"),
    ("[limits]\nmember = 5", "limits.member"),
    ('[[tokens]]\nname = "a"\nsha256 = "abc"', "tokens[0].sha256"),
    ("[clusters.prod]\ntimeout_s = 3", "clusters.prod.bootstrap"),
    ("prot = 80", "prot"),
    ("port = ", ""),
]


@pytest.mark.parametrize(("text", "path"), BAD_SETTINGS)
def test_bad_settings_are_one_line_with_the_path(text: str, path: str) -> None:
    with pytest.raises(ContractError) as refused:
        read_settings(text)
    assert refused.value.path == path


def workers_of(process: int) -> dict[int, float]:
    """The processes below a process that compute, with the CPU seconds they have used."""
    found: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents = {int(folder.name): int(fields[1])}
                found[int(folder.name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            except (OSError, IndexError):
                continue
            PARENTS.update(parents)
    return {pid: cpu for pid, cpu in found.items() if is_below(pid, process)}


PARENTS: dict[int, int] = {}


def is_below(pid: int, above: int) -> bool:
    while pid in PARENTS and pid > 1:
        pid = PARENTS[pid]
        if pid == above:
            return True
    return False


def busiest(service: Running) -> int:
    before = workers_of(service.process.pid)
    time.sleep(0.4)
    after = workers_of(service.process.pid)
    return max(after, key=lambda pid: after[pid] - before.get(pid, after[pid]))


def test_a_killed_process_costs_at_most_its_job(running: Running, client: httpx.Client) -> None:
    before = restarts(client)
    job = client.post("/v1/simulations", json=HEAVY).json()
    wait_for(lambda: client.get(job["links"]["self"]).json()["state"] == "running")
    os.kill(busiest(running), signal.SIGKILL)  # asked once more
    wait_for(lambda: restarts(client) == before + 1)
    assert client.get(job["links"]["self"]).json()["state"] in ("queued", "running")
    time.sleep(0.5)
    os.kill(busiest(running), signal.SIGKILL)  # and then reported
    wait_for(lambda: client.get(job["links"]["self"]).json()["state"] == "failed")
    assert "died" in client.get(job["links"]["self"]).json()["problem"]["detail"]
    assert client.post("/v1/assign", json=REQUEST).status_code == 200
    fresh = client.post("/v1/simulations", json=SCENARIO).json()
    wait_for(lambda: client.get(fresh["links"]["self"]).json()["state"] == "done")
    assert client.get("/readyz").status_code == 200


def test_all_processes_killed_at_once_come_back(running: Running, client: httpx.Client) -> None:
    computing = [pid for pid in workers_of(running.process.pid) if PARENTS[pid] != running.process.pid]
    assert len(computing) >= 2
    for pid in computing:
        os.kill(pid, signal.SIGKILL)
    answers = [client.post("/v1/assign", json={**REQUEST, "strategy": name}) for name in ("range", "sticky")]
    assert [one.status_code for one in answers] == [200, 200]


def test_it_is_ready_while_its_only_process_for_long_work_is_replaced(running: Running, client: httpx.Client) -> None:
    """Cancelling kills that process: whoever balances load by /readyz must not take the service out for it."""
    for seed in range(20, 25):
        job = client.post(f"/v1/simulations?seed={seed}", json=HEAVY).json()
        wait_for(lambda job=job: client.get(job["links"]["self"]).json()["state"] == "running")
        client.delete(job["links"]["self"])
        assert [client.get("/readyz").status_code for _ in range(10)] == [200] * 10


def test_a_pool_that_gets_no_new_process_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def live_through_it() -> list[bool]:
        pool = Pool("one", 1, Limits(), waiting=1, niceness=0)
        seen = [pool.ready]
        await pool.start()
        try:
            seen.append(pool.ready)
            with monkeypatch.context() as broken:
                broken.setattr(pool, "_add", no_memory)
                for worker in list(pool.workers):
                    worker.process.kill()
                asked = asyncio.create_task(pool.run(Question("assign", json.dumps(REQUEST).encode()), time_s=10))
                await asyncio.sleep(0.1)
                seen.append(pool.ready)
            await asked
            return [*seen, pool.ready]
        finally:
            await pool.stop()

    async def no_memory() -> None:
        raise OSError("Cannot allocate memory")

    assert asyncio.run(live_through_it()) == [False, True, False, True]


def restarts(client: httpx.Client) -> float:
    return sum(
        float(line.split()[-1])
        for line in client.get("/metrics").text.splitlines()
        if line.startswith("rebalance_lab_process_restarts{")
    )


def wait_for(holds: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def test_cancelling_ends_the_work(running: Running, client: httpx.Client) -> None:
    jobs = [client.post(f"/v1/simulations?seed={seed}", json=HEAVY).json() for seed in range(3)]
    wait_for(lambda: client.get(jobs[0]["links"]["self"]).json()["state"] == "running")
    events: list[str] = []
    follower = threading.Thread(target=lambda: follow(running, jobs[0], events))
    follower.start()
    wait_for(lambda: events)
    for job in jobs:
        assert client.delete(job["links"]["self"]).status_code == 204
    follower.join(15)
    assert events[-1] == "event: cancelled"
    done = client.post("/v1/simulations?seed=9", json=SCENARIO).json()  # the process is free
    wait_for(lambda: client.get(done["links"]["self"]).json()["state"] == "done")


def follow(service: Running, job: Any, events: list[str]) -> None:
    with service.client() as client, client.stream("GET", job["links"]["events"]) as stream:
        events.extend(line for line in stream.iter_lines() if line.startswith("event:"))


def test_when_enough_wait_the_rest_is_told_to_come_again(tmp_path: Path) -> None:
    service = start(tmp_path, "workers = 1\n[limits]\nwaiting = 2\njobs = 3\n")
    try:
        statuses, headers = asyncio.run(crowd(service))
        assert statuses.count(200) >= 3
        assert set(statuses) == {200, 503}
        assert all(int(one["retry-after"]) >= 1 for one in headers)
        with service.client() as client:
            made = [client.post(f"/v1/simulations?seed={i}", json=HEAVY) for i in range(3)]
            assert [one.status_code for one in made] == [201, 201, 429]
            assert made[2].json()["limit"] == "jobs_per_client"  # the third place is another client's
            assert client.post("/v1/assign", json=REQUEST).status_code == 200  # quick work has processes of its own
            for one in made[:2]:
                client.delete(one.json()["links"]["self"])
    finally:
        service.stop()


async def crowd(service: Running) -> tuple[list[int], list[httpx.Headers]]:
    members = {f"m{i}": {"topics": ["orders"]} for i in range(200)}
    groups = [{"topics": {"orders": {"partitions": 2_000 + i}}, "members": members} for i in range(20)]
    async with httpx.AsyncClient(base_url=service.url, timeout=30) as client:
        answers = await asyncio.gather(*(client.post("/v1/assign?strategy=sticky", json=one) for one in groups))
    return [one.status_code for one in answers], [one.headers for one in answers if one.status_code == 503]


def test_a_signal_ends_it_in_order(tmp_path: Path) -> None:
    service = start(tmp_path, "graceful_s = 4.0")
    with service.client() as client:
        job = client.post("/v1/simulations", json=HEAVY).json()
        wait_for(lambda: client.get(job["links"]["self"]).json()["state"] == "running")
        below = workers_of(service.process.pid)
        events: list[str] = []
        follower = threading.Thread(target=lambda: follow(service, job, events))
        follower.start()
        wait_for(lambda: events)
        started = time.monotonic()
        assert service.stop() in (0, -signal.SIGTERM)
        assert time.monotonic() - started < 8
        follower.join(5)
    assert events[-1] == "event: cancelled"  # it was told, not cut off
    wait_for(lambda: not alive(below))
    messages = [json.loads(line)["message"] for line in service.log.read_text().splitlines()]
    assert messages[-1] == "stopped"


def test_its_processes_do_not_outlive_it(tmp_path: Path) -> None:
    service = start(tmp_path)
    below = workers_of(service.process.pid)
    assert below
    service.stop(signal.SIGKILL)
    wait_for(lambda: not alive(below))


def alive(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists() and "zombie" not in status(pid)]


def status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "zombie"


def test_a_cluster_that_does_not_answer_is_503_in_time_and_others_are_answered(tmp_path: Path) -> None:
    silent = socket.create_server(("127.0.0.1", 0))  # accepts and never says a word
    port = silent.getsockname()[1]
    service = start(tmp_path, f'[clusters.dead]\nbootstrap = "127.0.0.1:{port}"\ntimeout_s = 1.5\n')
    try:
        with service.client() as client:
            answers: list[httpx.Response] = []
            asking = threading.Thread(target=lambda: answers.append(client.get("/v1/groups/orders?cluster=dead")))
            started = time.monotonic()
            asking.start()
            with service.client() as other:
                for i in range(10):
                    body = {**GROUP, "topics": {"orders": {"partitions": 10 + i}}}
                    assert other.post("/v1/assign?strategy=range", json=body).elapsed.total_seconds() < 0.5
                assert other.get("/v1/groups/orders?cluster=127.0.0.1:9092").status_code == 422
                assert other.get("/v1/groups/orders?cluster=unknown").status_code == 404
            asking.join(10)
            assert time.monotonic() - started < 5
            assert answers[0].status_code == 503
            assert int(answers[0].headers["retry-after"]) > 0
            assert answers[0].json()["path"] == "cluster"
    finally:
        service.stop()
        silent.close()

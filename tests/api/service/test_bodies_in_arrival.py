"""Bodies are bounded in their sum: for one client, and in all."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rebalance_lab.api.service.connection.body_room import BodyRoom
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.service_settings import read_settings
from rebalance_lab.assignors.json_contract import ContractError
from tests.api.service.conftest import GROUP, Running, hashed, start
from tests.api.service.raw_http import connect, head, read_all, read_answer, statuses
from tests.api.service.test_operation import wait_for

MB = 1_000_000


def memory_mb(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1_000
    raise AssertionError("the process is gone")


def begin(service: Running, megabytes: float, **headers: str) -> socket.socket:
    """Send all of a body but its end. A service that refuses it may close before all of it is sent."""
    end = connect(service)
    length = int(megabytes * MB)
    with suppress(BrokenPipeError, ConnectionResetError):
        end.sendall(head("/v1/assign", length + 1, **headers) + b" " * length)
    return end


def test_many_arriving_bodies_do_not_fill_the_memory(tmp_path: Path) -> None:
    service = start(tmp_path)
    try:
        before = memory_mb(service.process.pid)
        ends = [begin(service, 7.9) for _ in range(120)]
        grown = memory_mb(service.process.pid) - before
        assert grown < 300  # 948 MB arrive
        with service.client() as client:
            assert client.get("/healthz").status_code == 200
        refused = [answer for answer in map(answer_so_far, ends) if answer]
        assert len(refused) > 100
        assert set().union(*(statuses(answer) for answer in refused)) == {429}
        assert all(b"retry-after: " in answer and b'"limit": "bodies_bytes_per_client"' in answer for answer in refused)
        for end in ends:
            end.close()
        with service.client() as client:
            wait_for(lambda: client.post("/v1/assign?strategy=range", json=GROUP).status_code == 200, 10)
    finally:
        service.stop()


def answer_so_far(end: socket.socket) -> bytes:
    end.settimeout(0.2)
    try:
        return read_answer(end)
    except (TimeoutError, ConnectionResetError):
        return b""


def test_one_tokens_bodies_leave_room_for_anothers(tmp_path: Path) -> None:
    limits = "[limits]\nbody_bytes = 1000000\nbodies_bytes = 3000000\nbodies_bytes_per_client = 2000000\n"
    tokens = [
        f"[[tokens]]\nname = '{name}'\nsha256 = '{hashed(name)}'\nrequests_per_minute = 60000\n" for name in "abc"
    ]
    service = start(tmp_path, limits + "".join(tokens))
    a, b, c = ({"authorization": f"Bearer {name}"} for name in "abc")
    try:
        ends = [begin(service, 0.9, **a), begin(service, 0.9, **a)]
        time.sleep(0.5)
        with begin(service, 0.9, **a) as third:
            answer = read_answer(third)
            assert statuses(answer) == [429]
            assert b"retry-after: " in answer
        ends.append(begin(service, 0.9, **b))
        time.sleep(0.5)
        with begin(service, 0.9, **c) as full:
            answer = read_answer(full)
            assert statuses(answer) == [503]
            assert b'"limit": "bodies_bytes"' in answer
            assert b"retry-after: " in answer
        for end in ends:
            end.close()
        with service.client() as client:
            for headers in (a, b, c):
                wait_for(
                    lambda h=headers: client.post("/v1/assign?strategy=range", json=GROUP, headers=h).is_success, 10
                )
    finally:
        service.stop()


def test_a_body_that_arrives_slowly_takes_only_what_has_arrived(running: Running) -> None:
    ends = []
    for _ in range(20):
        ends.append(connect(running))
        ends[-1].sendall(head("/v1/assign", 7_900_000) + b" ")
    with running.client() as client:
        body = b" " * 7_000_000 + b'{"strategy": "range", "group": {"topics": {}, "members": {}}}'
        answer = client.post("/v1/assign", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 200
    for end in ends:
        end.close()


def test_room_is_counted_for_a_client_and_in_all() -> None:
    room = BodyRoom(in_all=10, per_client=6)
    room.take("a", 6)
    with pytest.raises(Problem) as own:
        room.take("a", 1)
    assert (own.value.status, own.value.limit) == (429, "bodies_bytes_per_client")
    room.take("b", 4)
    with pytest.raises(Problem) as full:
        room.take("c", 1)
    assert (full.value.status, full.value.limit) == (503, "bodies_bytes")
    assert int(full.value.headers["retry-after"]) >= 1
    room.give_back("a", 6)
    room.take("c", 6)
    room.give_back("b", 4)
    room.give_back("c", 6)
    assert (room.taken, room.clients) == (0, {})


@pytest.mark.parametrize("name", ["bodies_bytes", "bodies_bytes_per_client"])
def test_room_for_less_than_one_body_is_a_bad_setting(name: str) -> None:
    with pytest.raises(ContractError) as refused:
        read_settings(f"[limits]\n{name} = 7_000_000")
    assert refused.value.path == f"limits.{name}"


def test_a_refused_body_is_no_traceback(tmp_path: Path) -> None:
    service = start(tmp_path, "[limits]\nbody_bytes = 1000\nbodies_bytes = 1000\nbodies_bytes_per_client = 1000\n")
    try:
        with begin(service, 0.0009), begin(service, 0.0009) as second:
            assert statuses(read_answer(second)) == [429]
        with connect(service) as end:
            end.sendall(head("/v1/assign", 5_000))
            end.shutdown(socket.SHUT_WR)
            assert statuses(read_all(end)) in ([413], [])
    finally:
        service.stop()
    assert "Traceback" not in service.log.read_text()

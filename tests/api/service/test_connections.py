"""Connections by RFC 9110 and 9112: framing, half-closed connections, preconditions, an end without traces."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from tests.api.service.conftest import GROUP, HEAVY, Running, start
from tests.api.service.raw_http import connect, read_all, request, statuses
from tests.api.service.test_gone_clients import MONTH, slow_work
from tests.api.service.test_operation import wait_for

SMUGGLED = b"GET /v1/strategies HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
BOTH = (
    b"POST /v1/assign HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("before", [b"", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"], ids=["first", "second"])
def test_a_length_beside_chunks_closes_the_connection(running: Running, before: bytes) -> None:
    """RFC 9112 6.3: what follows may be a request that a proxy did not see."""
    with connect(running) as end:
        started = time.monotonic()
        end.sendall(before + BOTH + SMUGGLED)
        answers = read_all(end)
        assert time.monotonic() - started < 30  # closed by that, and not for being idle
    assert statuses(answers) == [*([200] if before else []), 400]
    assert b"classic/range" not in answers


def test_chunks_of_http_1_0_close_the_connection(running: Running) -> None:
    with connect(running) as end:
        end.sendall(BOTH.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"content-length: 5\r\n", b"") + SMUGGLED)
        assert statuses(read_all(end)) == [400]


def test_chunks_alone_are_taken(running: Running) -> None:
    body = json.dumps({"strategy": "range", "group": GROUP}).encode()
    head = BOTH.partition(b"content-length")[0] + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    with connect(running) as end:
        end.sendall(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert statuses(read_all(end)) == [200]


@pytest.mark.parametrize("partitions", [6, 3_000], ids=["quick", "slow"])
def test_a_client_that_ends_its_side_gets_its_answer(running: Running, partitions: int) -> None:
    group = {**GROUP, "topics": {"orders": {"partitions": partitions}}}
    with connect(running) as end:
        end.sendall(request("/v1/assign?optimum=true", {"strategy": "sticky", "group": group}))
        end.shutdown(socket.SHUT_WR)
        assert statuses(read_all(end)) == [200]


def test_a_long_answer_reaches_a_client_that_ended_its_side(running: Running) -> None:
    with connect(running) as end:
        end.sendall(request("/v1/size", {"target": "61k/s", "per_consumer": "500/s"}))
        end.shutdown(socket.SHUT_WR)
        answer = read_all(end)
    assert statuses(answer) == [200]
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["partitions"] > 0


def test_requests_in_line_are_answered_after_the_end_of_a_side(running: Running) -> None:
    with connect(running) as end:
        end.sendall(SMUGGLED * 3)
        end.shutdown(socket.SHUT_WR)
        assert statuses(read_all(end)) == [200, 200, 200]


def test_half_a_request_and_the_end_of_a_side_close_the_connection(running: Running) -> None:
    for text in (b"GET /healthz HT", BOTH[:-5], request("/v1/assign", GROUP)[:-5]):
        with connect(running) as end:
            started = time.monotonic()
            end.sendall(text)
            end.shutdown(socket.SHUT_WR)
            assert 200 not in statuses(read_all(end))
            assert time.monotonic() - started < 20


def test_a_post_is_never_answered_304(client: httpx.Client) -> None:
    """RFC 9110 13.1.2: 304 is for GET and HEAD. What a POST computes is no representation of its path."""
    paths = {
        "assign?strategy=range": GROUP,
        "compare-assignments": GROUP,
        "size": {"target": "5k/s", "per_consumer": "600/s"},
    }
    for path, body in paths.items():
        first = client.post(f"/v1/{path}", json=body)
        for tag in (first.headers["etag"], f"W/{first.headers['etag']}", "*"):
            again = client.post(f"/v1/{path}", json=body, headers={"if-none-match": tag})
            assert (again.status_code, again.content) == (200, first.content)


def test_a_get_is_answered_304(client: httpx.Client) -> None:
    tag = client.get("/v1/strategies").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        answer = client.get("/v1/strategies", headers={"if-none-match": known})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert client.get("/v1/strategies", headers={"if-none-match": '"other"'}).status_code == 200


def test_the_document_offers_if_none_match_for_get_alone(client: httpx.Client) -> None:
    for path, item in client.get("/openapi.json").json()["paths"].items():
        for method, operation in item.items():
            names = [one["name"] for one in operation.get("parameters", ())]
            assert method == "get" or ("if-none-match" not in names and "304" not in operation["responses"]), path


def stop_in_time(service: Running) -> float:
    started = time.monotonic()
    assert service.stop() in (0, -signal.SIGTERM)
    return time.monotonic() - started


def test_abandoned_requests_do_not_hold_up_the_end(tmp_path: Path) -> None:
    service = start(tmp_path)
    with service.client() as client:
        ends = []
        for i in range(4):
            ends.append(connect(service))
            ends[-1].sendall(request("/v1/recommend?seeds=50", {**MONTH, "name": str(i)}))
        wait_for(lambda: slow_work(client) > 1, 30)
        client.post("/v1/simulations", json=HEAVY)  # no client follows it
        for end in ends:
            end.close()
        with connect(service) as end:
            end.sendall(request("/v1/assign", GROUP)[:-5])  # the rest never comes
            time.sleep(0.2)
            assert stop_in_time(service) < 12  # the aim is five seconds
    log = service.log.read_text()
    assert "Traceback" not in log
    assert json.loads(log.splitlines()[-1])["message"] == "stopped"


def test_a_request_that_outlasts_the_end_is_told_so(tmp_path: Path) -> None:
    service = start(tmp_path, "graceful_s = 1.0")
    with service.client() as client, connect(service) as end:
        end.sendall(request("/v1/recommend?seeds=50", MONTH))
        wait_for(lambda: slow_work(client) > 0, 30)
        assert stop_in_time(service) < 15
        assert statuses(read_all(end)) in ([503], [])
    log = service.log.read_text()
    assert "Traceback" not in log
    assert '"status": 503' in log

"""Hostile input: each kind gets a fast, clear refusal, and everybody else is still answered."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.service.conftest import GROUP, HEAVY, SCENARIO, Running, start

LIMITS = """
[limits]
header_s = 1.0
body_s = 1.5
connections = 40
assign_s = 3.0
simulated_events = 2000
members = 500
partitions = 5000
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = start(tmp_path_factory.mktemp("hostile"), LIMITS)
    yield service
    service.stop()


DEPLOY = {"downtime": "5s", "gap": "5s"}


def group(**more: Any) -> dict[str, Any]:
    return {"strategy": "range", "group": {**GROUP, **more}}


def many(members: int) -> dict[str, Any]:
    return {f"m{i}": {"topics": ["orders"]} for i in range(members)}


REFUSED = {
    "50 MB": (b'{"strategy": "' + b"x" * 50_000_000 + b'"}', 413, "bytes are read"),
    "nested a million deep": (b"[" * 1_000_000, 422, "nested too deeply"),
    "objects nested deep": (b'{"group":' * 200_000 + b"1" + b"}" * 200_000, 422, "nested too deeply"),
    "a billion partitions": (json.dumps(group(topics={"t": {"partitions": 10**9}})).encode(), 422, "10,000,000"),
    "a million partitions": (json.dumps(group(topics={"t": {"partitions": 10**6}})).encode(), 422, "more than 5,000"),
    "many members": (json.dumps(group(members=many(501))).encode(), 422, "more than 500"),
    "NaN": (b'{"strategy": "range", "group": {"topics": {"t": {"partitions": 1, "load": [NaN]}}}}', 422, "NaN"),
    "a number without end": (b'{"strategy": "range", "group": ' + b"9" * 100_000 + b"}", 422, "digits"),
    "duplicate keys": (b'{"strategy": "range", "strategy": "sticky", "group": {}}', 422, "stands twice"),
    "half a surrogate pair": (json.dumps(group(members={"\ud800": {"topics": ["orders"]}})).encode(), 422, "surrogate"),
    "not UTF-8": (b'{"strategy": "\xff\xfe"}', 422, "not UTF-8|not JSON"),
    "not JSON": (b"strategy=range", 422, "not JSON"),
    "nothing": (b"", 422, "not JSON"),
    "somebody's code": (b'{"strategy": "classic/os:system", "group": {"topics": {}, "members": {}}}', 422, "unknown"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_body_is_refused_fast_and_clearly(client: httpx.Client, name: str) -> None:
    body, status, words = REFUSED[name]
    started = time.monotonic()
    answer = client.post("/v1/assign", content=body, headers={"content-type": "application/json"})
    took_s = time.monotonic() - started
    assert answer.status_code == status, answer.text
    assert any(word in answer.json()["detail"] for word in words.split("|")), answer.text
    assert len(answer.content) < 1_000
    assert took_s < 5
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["assign", "recommend", "simulations", "size", "compare-assignments"])
def test_spoilt_json_is_refused_with_its_place(client: httpx.Client, path: str) -> None:
    for body, place in ((b'{"a": {"b": 1, "b": 2}}', "a.b"), (b'{"a": {"b": [1, NaN]}}', "a.b[1]")):
        answer = client.post(f"/v1/{path}", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["path"]) == (422, place)


def test_a_body_that_is_nested_nearly_too_deep_is_refused_too(client: httpx.Client) -> None:
    for depth in range(940, 1_000, 4):
        for path, body in (("assign", '{"strategy": "range", "group": %s}'), ("recommend", '{"duration": %s}')):
            nested = body % ("[" * depth + "1" + "]" * depth)
            answer = client.post(f"/v1/{path}", content=nested, headers={"content-type": "application/json"})
            assert answer.status_code == 422, (depth, answer.text)


def test_a_body_without_a_length_is_refused_when_it_gets_too_long(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 200_000

    answer = client.post("/v1/assign", content=endless(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_unicode_ids_are_taken_and_given_back(client: httpx.Client) -> None:
    names = ["été", "消费者-1", "🦉", "a\u202eb", "\u0000", "x" * 5_000]
    answer = client.post("/v1/assign", json=group(members={name: {"topics": ["orders"]} for name in names}))
    assert answer.status_code == 200
    assert list(answer.json()["assignment"]) == names


@pytest.mark.parametrize(
    "document",
    [
        {**SCENARIO, "strategy": "classic/os:system"},
        {**SCENARIO, "client": {"partition.assignment.strategy": "os:system"}},
        {**SCENARIO, "timeline": [{"at": "1m", "rolling restart": {**DEPLOY, "strategy": "classic/os:system"}}]},
        {"strategy": "classic/os:system", "group": GROUP},
    ],
    ids=["strategy", "setting", "timeline", "group"],
)  # fmt: skip
def test_no_document_can_name_code_to_load(client: httpx.Client, document: dict[str, Any]) -> None:
    refused = client.post("/v1/recommend?seeds=1", json=document)
    assert refused.status_code == 422
    assert "unknown strategy" in refused.json()["detail"]
    assert client.post("/v1/recommend?strategies=os:system", json=SCENARIO).status_code == 422


def test_what_yaml_unfolds_to_is_bounded(client: httpx.Client) -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [{','.join(f'*{a}' for _ in range(9))}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    started = time.monotonic()
    answer = client.post("/v1/recommend", content=laughs, headers={"content-type": "application/yaml"})
    assert answer.status_code == 422
    assert time.monotonic() - started < 2


def test_a_simulation_is_held_to_its_events(client: httpx.Client) -> None:
    problem = problem_of(client, HEAVY)
    assert problem["limit"] == "simulated_events"


def test_a_simulation_is_held_to_its_time(tmp_path: Any) -> None:
    service = start(tmp_path, "[limits]\nsimulation_s = 0.5\n")
    try:
        with service.client() as client:
            assert problem_of(client, HEAVY)["limit"] == "simulation_s"
            assert client.post("/v1/assign", json=group()).status_code == 200
    finally:
        service.stop()


def problem_of(client: httpx.Client, scenario: Any) -> dict[str, Any]:
    job = client.post("/v1/simulations", json=scenario).json()
    for _ in range(1_200):
        told: dict[str, Any] = client.get(job["links"]["self"]).json()
        if told["state"] not in ("queued", "running"):
            assert told["state"] == "failed"
            found: dict[str, Any] = told["problem"]
            return found
        time.sleep(0.05)
    raise AssertionError("the simulation goes on")


# Slow-loris

POST = b"POST /v1/assign HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.port), timeout=10)


def everything(end: socket.socket) -> bytes:
    parts = b""
    while part := end.recv(65_536):
        parts += part
    return parts


def test_who_never_ends_the_head_is_sent_away(running: Running, client: httpx.Client) -> None:
    with connected(running) as end:
        started = time.monotonic()
        end.sendall(b"POST /v1/assign HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for _ in range(3):  # a byte now and then does not buy time
            time.sleep(0.2)
            end.sendall(b"a")
        assert b" 408 " in everything(end)
        assert time.monotonic() - started < 2.5
    assert client.get("/healthz").elapsed.total_seconds() < 0.5


def test_who_never_ends_the_body_is_sent_away(running: Running) -> None:
    with connected(running) as end:
        started = time.monotonic()
        end.sendall(POST + b'Content-Length: 100\r\n\r\n{"strat')
        assert b" 408 " in everything(end)
        assert time.monotonic() - started < 3


def test_who_says_nothing_is_sent_away(running: Running) -> None:
    with connected(running) as end:
        started = time.monotonic()
        everything(end)
        assert time.monotonic() - started < 2.5


def test_there_is_room_for_so_many_connections_and_then_again(running: Running) -> None:
    ends = [connected(running) for _ in range(60)]
    try:
        with httpx.Client(base_url=running.url) as late:
            assert late.get("/healthz").status_code == 503
        deadline = time.monotonic() + 20
        answer = 503
        while answer != 200 and time.monotonic() < deadline:
            time.sleep(0.5)  # the silent ones are sent away
            with httpx.Client(base_url=running.url) as later:
                answer = later.get("/healthz").status_code
        assert answer == 200
    finally:
        for end in ends:
            end.close()


@pytest.mark.parametrize(
    "text",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n"],
    ids=["a head of 200 kB", "TLS to a plain port"],
)
def test_what_is_not_http_is_refused(running: Running, text: bytes) -> None:
    with connected(running) as end:
        end.sendall(text)
        answer = everything(end)
        assert b" 400 " in answer
        assert b"application/problem+json" in answer


def test_another_sites_page_cannot_reach_it_by_a_name_of_its_own(client: httpx.Client) -> None:
    assert client.get("/v1/strategies", headers={"host": "evil.example"}).status_code == 421
    answer = client.options("/v1/assign", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers

"""The Host header names this machine, or a host that the operator lists. The check keeps DNS rebinding out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.service.conftest import ROOT, TOKEN, Running, start

ANYWHERE = ("--host", "0.0.0.0")


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """As the Dockerfile's command starts it in a container."""
    folder = tmp_path_factory.mktemp("open")
    service = start(folder, "", *ANYWHERE, "--allow-anonymous")
    service.url = f"http://127.0.0.1:{service.port}"
    yield service
    service.stop()


def status(service: Running, host: str) -> int:
    with service.client() as client:
        return client.get("/v1/strategies", headers={"host": host}).status_code


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9999", "[::1]:8000", "localhost."])
def test_names_of_this_machine_are_taken(open_service: Running, host: str) -> None:
    assert status(open_service, host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.1.2.3:8000", "[::2]", "localhost:x", "a@localhost", ""]
)
def test_anonymous_clients_cannot_come_by_another_name(open_service: Running, host: str) -> None:
    assert status(open_service, host) == 421


def test_tokens_do_not_switch_the_check_off(tmp_path: Path) -> None:
    service = start(tmp_path, "", token=TOKEN)
    try:
        assert status(service, "evil.example") == 421
        assert status(service, "localhost") == 200
    finally:
        service.stop()


def test_the_operator_lists_other_names(tmp_path: Path) -> None:
    config = 'allowed_hosts = ["lab.example"]\n'
    service = start(tmp_path, config, "--allowed-host", "Other.Example", "--allowed-host", "192.0.2.7")
    try:
        for host in ("lab.example", "LAB.example:443", "other.example", "192.0.2.7:80", "127.0.0.1"):
            assert status(service, host) == 200, host
        assert status(service, "third.example") == 421
    finally:
        service.stop()


def test_a_star_takes_every_name(tmp_path: Path) -> None:
    service = start(tmp_path, "", "--allowed-host", "*")
    try:
        assert status(service, "whatever.example") == 200
    finally:
        service.stop()


def test_the_bound_address_is_a_name_of_the_service(tmp_path: Path) -> None:
    service = start(tmp_path, "", "--host", "127.0.0.2", "--allow-anonymous")
    try:
        assert status(service, f"127.0.0.2:{service.port}") == 200
        assert status(service, "127.0.0.3") == 421
    finally:
        service.stop()


def test_the_address_that_a_client_reached_is_a_name_of_the_service(open_service: Running) -> None:
    """A service on 0.0.0.0 listens on every address of its machine; a container's own is one of them."""
    with httpx.Client(base_url=f"http://127.0.0.3:{open_service.port}") as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"host": "127.0.0.4"}).status_code == 421


@pytest.mark.parametrize("name", ["http://lab.example", "lab.example:80", "a b", ""])
def test_a_name_that_no_request_can_carry_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AssertionError, match="--allowed-host: expected"):
        start(tmp_path, "", "--allowed-host", name).stop()
    with pytest.raises(AssertionError, match="allowed_hosts: expected"):
        start(tmp_path, f"allowed_hosts = [{json.dumps(name)}]").stop()


def test_the_images_commands_say_who_may_come_by_which_name() -> None:
    """On 127.0.0.1 the name is this machine's own. For other machines the operator says the name."""
    for file in (ROOT / "Dockerfile", ROOT / "docs" / "http.md"):
        commands = [line for line in file.read_text().splitlines() if "docker run" in line]
        assert commands
        for line in commands:
            assert "-p 127.0.0.1:8000:8000" in line or "--allowed-host" in line, line

"""The OpenAPI document: whole, true to the code, and held to by the service under schemathesis's fire."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from rebalance_lab.api.service.openapi.examples import KEPT, text
from tests.api.service.conftest import ROOT, TOKEN, start

CONFIG = """
[limits]
seeds = 1
simulated_events = 3000
simulated_days = 1
recommend_s = 2.0
simulation_s = 3.0
members = 200
partitions = 2000
jobs = 500
jobs_per_client = 499
waiting = 500
waiting_s = 60.0
"""
QUERY = {"/v1/simulations": "?strategy=range", "/v1/recommend": "?seeds=1"}


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def test_every_endpoint_has_examples(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    operations = [one for item in document["paths"].values() for one in item.values()]
    assert len(operations) == 15
    for operation in operations:
        for media in operation.get("requestBody", {}).get("content", {}).values():
            assert media["examples"], operation["operationId"]
        good = [one for code, one in operation["responses"].items() if code.startswith("2")]
        for media in (media for one in good for media in one.get("content", {}).values()):
            assert "example" in media or operation["operationId"] == "metrics"


def test_examples_are_what_the_code_says_today() -> None:
    assert KEPT.read_text() == text(), "python -m rebalance_lab.api.service.openapi.examples writes them anew"


def test_a_request_example_gets_a_good_answer(client: httpx.Client, document: dict[str, Any]) -> None:
    for path, item in document["paths"].items():
        body = item.get("post", {}).get("requestBody", {"content": {"application/json": {"examples": {}}}})
        for example in body["content"]["application/json"]["examples"].values():
            assert client.post(path + QUERY.get(path, ""), json=example["value"]).status_code in (200, 201), path


def test_schemathesis_finds_nothing(tmp_path: Path, record_property: Any) -> None:
    """All checks, valid and invalid data, examples, boundary values, fuzzing and chains of links."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    service = start(tmp_path, CONFIG, token=TOKEN)
    config = Path(__file__).with_name("schemathesis.toml")
    try:
        ended = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run",
                f"{service.url}/openapi.json", "-H", f"Authorization: Bearer {TOKEN}", "--checks", "all",
                "--mode", "all", "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "4",
                "--generation-deterministic", "--no-color",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=1_200, check=False,
        )  # fmt: skip
        with service.client() as client:
            measured = client.get("/metrics").text
    finally:
        service.stop()
    assert ended.returncode == 0, ended.stdout[-6_000:]
    found = re.search(r"(\d+) generated, (\d+) passed", ended.stdout)
    assert found is not None
    assert int(found[1]) == int(found[2]) > 300
    assert re.search(r"API Links:\s+[1-9]", ended.stdout)
    assert not re.search(r'http_requests_total{[^}]*status="5', measured)
    record_property("table: schemathesis over the HTTP service", ended.stdout.partition("= SUMMARY =")[2].strip("= \n"))


def test_the_wheel_holds_the_page_and_the_examples(tmp_path: Path) -> None:
    hatchling = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    (built,) = hatchling.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(zipfile.ZipFile(built).namelist())
    page = {f"rebalance_lab/api/service/page/{file.name}" for file in (ROOT / "api" / "service" / "page").iterdir()}
    assert page | {"rebalance_lab/api/service/openapi/examples.json"} <= names

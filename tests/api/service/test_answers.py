"""The service as a program meets it: the command line's answers, problems with paths, ETags, jobs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from rebalance_lab.harness.scenario.units import duration_ms
from tests.api.conftest import Run, run  # noqa: F401 - a fixture
from tests.api.service.conftest import GROUP, HEAVY, ROOT, SCENARIO, Running

ROLLING = ROOT / "examples" / "scenarios" / "rolling_deploy.yaml"


def test_assign_is_the_command_lines(client: httpx.Client, run: Run, tmp_path: Path) -> None:  # noqa: F811
    request = {"strategy": "sticky", "group": GROUP}
    answer = client.post("/v1/assign?explain=true&optimum=true", json=request)
    ended = run("assign", "--json", "--explain", "--optimum", stdin=json.dumps(request))
    assert answer.status_code == 200
    assert answer.json() == json.loads(ended.out)
    assert answer.json()["quality"]["moved"] == 2


def test_a_bare_group_needs_its_strategy_in_the_query(client: httpx.Client) -> None:
    assert client.post("/v1/assign?strategy=uniform", json=GROUP).json()["strategy"] == "consumer/uniform"
    refused = client.post("/v1/assign", json=GROUP)
    assert refused.status_code == 422
    assert refused.json()["path"] == "strategy"


def test_a_batch_answers_in_order_and_a_wrong_request_in_its_place(client: httpx.Client) -> None:
    wrong = {"strategy": "range", "group": {"topics": {}, "members": {"c1": {"topics": [5]}}}}
    answer = client.post("/v1/assign", json={"requests": [wrong, {"strategy": "range", "group": GROUP}]}).json()
    assert answer["results"][0]["error"]["path"] == "group.members.c1.topics[0]"
    assert answer["results"][1]["strategy"] == "classic/range"


def test_strategies_side_by_side(client: httpx.Client) -> None:
    both = client.post("/v1/compare-assignments", json={"strategies": ["range", "sticky"], "group": GROUP}).json()
    assert [one["strategy"] for one in both["results"]] == ["classic/range", "classic/sticky"]
    place = both["differences"][0]
    owners = [
        next((m for m, share in one["assignment"].items() if place["partition"] in share.get(place["topic"], [])), None)
        for one in both["results"]
    ]
    assert owners == place["owners"]
    known = [one["name"] for one in client.get("/v1/strategies").json()["strategies"]]
    everything = client.post("/v1/compare-assignments", json=GROUP).json()
    assert [one["strategy"] for one in everything["results"]] == known


def test_size_is_the_command_lines(client: httpx.Client, run: Run) -> None:  # noqa: F811
    asked = {"target": "5k/s", "per_consumer": "600/s", "growth": "30%", "horizon": "2y"}
    answer = client.post("/v1/size", json=asked)
    options = ("--target", "5k/s", "--per-consumer", "600/s", "--growth", "30%", "--horizon", "2y")
    assert answer.json() == json.loads(run("size", *options, "--json").out)
    refused = client.post("/v1/size", json={**asked, "growth": 0.3, "deploys": 0})
    assert (refused.status_code, "has no percent sign: say 30% or 0.3%" in refused.text) == (422, True)


def test_a_recommendation_is_the_command_lines(client: httpx.Client, run: Run) -> None:  # noqa: F811
    strategies = "classic/range,consumer/uniform"
    answer = client.post(f"/v1/recommend?seeds=2&strategies={strategies}&from=classic/sticky", json=SCENARIO)
    options = ("--seeds", "2", "--strategies", strategies, "--from", "classic/sticky", "--jobs", "1", "--json", "-")
    assert answer.json() == json.loads(run("recommend", *options, stdin=json.dumps(SCENARIO)).out)
    assert answer.json()["properties"]["java"]["group.protocol"] in ("classic", "consumer")
    assert answer.json()["migration"]
    again = client.post("/v1/recommend?weights=moved=100", json=answer.json()["comparison"])
    assert again.json()["comparison"]["weights"]["moved"] == 100


def test_a_simulation_is_submitted_followed_and_fetched(client: httpx.Client, run: Run) -> None:  # noqa: F811
    made = client.post(
        "/v1/simulations?strategy=classic/sticky&seed=4",
        content=ROLLING.read_bytes(),
        headers={"content-type": "application/yaml"},
    )
    assert made.status_code == 201
    job = made.json()
    events = followed(client, job["links"]["events"])
    assert [name for name, _ in events][-1] == "done"
    shares = [told["progress"]["done"] for _, told in events]
    assert shares == sorted(shares)
    assert len({share for share in shares if 0 < share < 1}) > 3  # it is followed, not only ended
    result = client.get(job["links"]["result"])
    ended = run("simulate", str(ROLLING), "--strategy", "classic/sticky", "--seed", "4", "--json")
    same = {name: value for name, value in result.json().items() if name not in ("drawing", "notes")}
    assert same == json.loads(ended.out)
    assert result.json()["drawing"]["reads"]
    known = client.get(job["links"]["result"], headers={"if-none-match": result.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert client.delete(job["links"]["self"]).status_code == 204
    assert client.get(job["links"]["self"]).status_code == 404


def followed(client: httpx.Client, path: str) -> list[tuple[str, dict[str, Any]]]:
    found, name = [], ""
    with client.stream("GET", path) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                found.append((name, json.loads(line.removeprefix("data: "))))
    return found


def test_a_simulation_that_is_wrong_is_no_job(client: httpx.Client) -> None:
    bad = {**SCENARIO, "timeline": [{"at": "1m", "stop": {"members": "nobody"}}]}
    refused = client.post("/v1/simulations", json=bad)
    assert refused.status_code == 422
    assert refused.json()["path"].startswith("timeline[0].stop")
    late = client.post("/v1/simulations?until=3m", json=SCENARIO)
    assert (late.status_code, late.json()["path"]) == (422, "until")


@pytest.mark.parametrize("until", ["1m", "1m30s", "12.5s", "90s500ms"])
def test_a_simulation_stops_where_the_command_line_can(client: httpx.Client, until: str) -> None:
    job = client.post("/v1/simulations", params={"until": until}, json=SCENARIO).json()
    assert followed(client, job["links"]["events"])[-1][0] == "done"
    assert client.get(job["links"]["result"]).json()["until_ms"] == duration_ms(until)


def test_all_strategies_may_be_named_and_weighed_as_on_the_command_line(client: httpx.Client) -> None:
    every = [one["name"] for one in client.get("/v1/strategies").json()["strategies"]]
    every += [f"{one}+static" for one in every]
    asked = {"strategies": ",".join(every), "seeds": 1, "weights": "moved=0.0005,behind_s=1000000"}
    given = client.post("/v1/recommend", params=asked, json=SCENARIO)
    assert given.status_code == 200, given.text


def test_a_result_that_is_not_there_yet_is_a_conflict(client: httpx.Client) -> None:
    job = client.post("/v1/simulations", json=HEAVY).json()
    early = client.get(job["links"]["result"])
    assert (early.status_code, early.headers["retry-after"]) == (409, "1")
    client.delete(job["links"]["self"])


def test_the_same_question_is_answered_from_memory(client: httpx.Client) -> None:
    group = {**GROUP, "topics": {"orders": {"partitions": 7}}}
    first = client.post("/v1/assign?strategy=range", json=group)
    before = hits(client)
    second = client.post("/v1/assign?strategy=range", json=group)
    assert hits(client) == before + 1
    assert second.content == first.content
    other = client.post("/v1/assign?strategy=roundrobin", json=group)
    assert other.headers["etag"] != first.headers["etag"] == second.headers["etag"]


def hits(client: httpx.Client) -> float:
    line = next(
        one
        for one in client.get("/metrics").text.splitlines()
        if one.startswith('rebalance_lab_cache_total{found="yes"')
    )
    return float(line.split()[-1])


PROBLEMS = [
    ("/v1/assign?strategy=best", GROUP, 422, "strategy"),
    ("/v1/assign?optimun=true", GROUP, 422, "optimun"),
    ("/v1/assign?explain=1", GROUP, 422, "explain"),
    ("/v1/recommend?seeds=1000", SCENARIO, 422, "seeds"),
    ("/v1/recommend", {**SCENARIO, "duration": "2"}, 422, "duration"),
    ("/v1/size", {"target": "5k/s", "per_consumer": "1MB/s"}, 422, "per_consumer"),
    ("/v1/size", {"target": "5k/s"}, 422, "per_consumer"),
    ("/v1/compare-assignments", {"group": GROUP, "strategies": ["range", "best"]}, 422, "strategies[1]"),
]


@pytest.mark.parametrize(("path", "body", "status", "field"), PROBLEMS)
def test_a_problem_names_the_field(client: httpx.Client, path: str, body: Any, status: int, field: str) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["path"] == field
    assert told["status"] == status
    assert told["request_id"] == answer.headers["x-request-id"]
    assert "--" not in told["detail"]  # options are the command line's


def test_what_is_not_there_and_not_allowed_are_problems_too(client: httpx.Client) -> None:
    assert client.get("/v2/assign").json()["type"] == "urn:rebalance-lab:problem:not-found"
    wrong = client.get("/v1/assign")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert client.put("/v1/simulations/x").headers["allow"] == "DELETE, GET"
    plain = client.post("/v1/assign", content=b"{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415


def test_a_request_keeps_its_id_and_the_log_has_it(client: httpx.Client, running: Running) -> None:
    client.get("/v1/strategies", headers={"x-request-id": "from-outside-1"})
    time.sleep(0.2)
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    (found,) = [line for line in lines if line.get("request_id") == "from-outside-1"]
    assert (found["path"], found["status"]) == ("/v1/strategies", 200)
    odd = client.get("/healthz", headers={"x-request-id": 'a b\t"c'})
    assert odd.headers["x-request-id"] != 'a b\t"c'

"""The typed client, blocking and async; the examples; and the image's recipe."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from rebalance_lab.api.client import Ask, AsyncClient, Client, Job, ServiceError
from tests.api.service.conftest import GROUP, HEAVY, ROOT, SCENARIO, Running


@pytest.fixture
def lab(running: Running) -> Iterator[Client]:
    with Client(running.url) as made:
        yield made


def test_it_asks_for_assignments(lab: Client) -> None:
    answer = lab.assign(GROUP, strategy="sticky", optimum=True)
    assert (answer.strategy, answer.quality["moved"], answer.quality["gap_moves"]) == ("classic/sticky", 2, 0)
    assert [one.strategy for one in lab.compare(GROUP, ["range", "uniform"])] == ["classic/range", "consumer/uniform"]
    assert lab.size(target="5k/s", per_consumer="600/s")["partitions"] == 10


def test_it_runs_and_follows_a_simulation(lab: Client) -> None:
    job = lab.simulate(SCENARIO, strategy="classic/sticky", seed=2)
    told = list(lab.follow(job))
    assert (told[-1].state, told[-1].done) == ("done", 1.0)
    assert lab.result(job)["strategy"] == "classic/sticky"
    lab.cancel(job)
    with pytest.raises(ServiceError) as refused:
        lab.result(job)
    assert refused.value.status == 404


def test_an_error_has_the_path(lab: Client) -> None:
    with pytest.raises(ServiceError, match="per_consumer") as refused:
        lab.size(target="5k/s", per_consumer="600")
    assert (refused.value.status, refused.value.path) == (422, "per_consumer")
    with pytest.raises(ServiceError) as unknown:
        lab.group("orders")
    assert (unknown.value.status, unknown.value.path) == (404, "cluster")


def test_the_async_one_says_the_same(running: Running, lab: Client) -> None:
    async def ask() -> tuple[object, list[Job], object]:
        async with AsyncClient(running.url) as other:
            answers = await asyncio.gather(*(other.assign(GROUP, strategy=name) for name in ("range", "sticky")))
            job = await other.simulate(SCENARIO)
            told = [one async for one in other.follow(job)]
            heavy = await other.simulate(HEAVY)
            await other.cancel(heavy)
            advice = await other.recommend(SCENARIO, strategies=["range", "uniform"], seeds=1, now="classic/range")
            return answers, told, advice["comparison"]["ranking"][0]["strategy"]

    answers, told, best = asyncio.run(ask())
    assert answers == [lab.assign(GROUP, strategy=name) for name in ("range", "sticky")]
    assert told[-1].state == "done"
    assert best in ("classic/range", "consumer/uniform")


def test_a_busy_service_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    answers = [
        httpx.Response(503, json={"detail": "busy"}, headers={"retry-after": "2"}),
        httpx.Response(200, json={"a": 1}),
    ]
    monkeypatch.setattr("rebalance_lab.api.client.sleep", waited.append)  # its own name: other threads sleep as well
    with Client("http://nowhere") as lab:
        monkeypatch.setattr(lab._http, "request", lambda **_: answers.pop(0))
        assert lab.ask(Ask("GET", "/")) == {"a": 1}
    assert waited == [2.0]


def test_the_curl_walk_through(running: Running) -> None:
    walked = subprocess.run(
        ["sh", str(ROOT / "examples" / "http" / "walk.sh"), running.url],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (walked.returncode, walked.stderr) == (0, ""), walked.stdout
    parts = dict(re.findall(r"== (.*)\n((?:(?!==).*\n)*)", walked.stdout))
    assert len(parts) == 7
    assert '"classic/sticky", "assignment"' in parts["an assignment, exactly as Kafka's sticky assignor makes it"]
    assert '"path": "group.members.c1.topics[0]"' in parts["a problem says where"]
    assert "event: done" in parts["a simulation: submit, follow, fetch, forget"]
    answer = parts["which strategy to take"]
    assert re.match(r'\{"strategy": "(classic|consumer)/[a-z+-]+", "now": "classic/range"', answer)


def test_the_service_that_asks_for_assignments(running: Running) -> None:
    program = [sys.executable, str(ROOT / "examples" / "http" / "assigner.py"), running.url]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr == ""
    assert [int(moved) for moved in re.findall(r"(\d+) moved", ended.stdout)] == [0, 6, 4, 0]


def test_the_readme_of_the_examples_shows_the_defaults() -> None:
    from rebalance_lab.api.service.service_settings import Limits, Settings, read_settings

    readme = (ROOT / "examples" / "http" / "README.md").read_text()
    shown = read_settings(readme.split("```toml")[1].split("```")[0])
    assert shown.limits == Limits()
    assert shown.clusters["production"].timeout_s == 5.0
    assert shown != Settings()


def test_the_image_is_not_root_and_says_whether_it_lives() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    words = [line.split(maxsplit=1)[0] for line in lines if line and not line.startswith(("#", " "))]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "HEALTHCHECK" in words
    assert next(line for line in lines if line.startswith("USER")) == "USER 10001:10001"
    assert "--allow-anonymous" not in "\n".join(line for line in lines if line.startswith(("ENTRYPOINT", "CMD")))
    assert not [line for line in lines if "https://" in line]

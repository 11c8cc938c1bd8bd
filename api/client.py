"""Call the HTTP service from a program, through a small typed client: one class for each way to wait.

    with Client("http://127.0.0.1:8000") as lab:
        answer = lab.assign(group, strategy="classic/sticky")
        print(answer.assignment, answer.quality["moved"])

    async with AsyncClient("http://127.0.0.1:8000", token="rl_...") as lab:
        advice = await lab.recommend(scenario, seeds=6)

Errors     ServiceError with the service's own words: status, detail, path of the bad field, seconds to wait
Patience   a service that is busy (429, 503) is asked again after its Retry-After, `retries` times
Shared     requests and the reading of answers; the two classes only differ in how they wait
Start at   Client
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Any, TypeAlias
from urllib.parse import quote

import httpx

Json: TypeAlias = Mapping[str, Any]
OVER = ("done", "failed", "cancelled")
LONGEST_WAIT_S = 30.0


class ServiceError(Exception):
    """Tell that the service refused; `path` names the bad field where there is one."""

    def __init__(self, status: int, told: Json, retry_after_s: float | None = None) -> None:
        self.status = status
        self.detail = str(told.get("detail", "no details"))
        self.path: str | None = told.get("path")
        self.limit: str | None = told.get("limit")
        self.request_id: str | None = told.get("request_id")
        self.retry_after_s = retry_after_s
        super().__init__(f"{status} {f'{self.path}: ' if self.path else ''}{self.detail}")


@dataclass(frozen=True, slots=True)
class Answer:
    strategy: str
    assignment: dict[str, dict[str, list[int]]]
    quality: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    state: str
    done: float
    """From 0 to 1."""
    problem: Json | None

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True, slots=True)
class Ask:
    """Hold a request before it is sent."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] | None = None

    def arguments(self) -> dict[str, Any]:
        given = {name: plain(value) for name, value in (self.query or {}).items() if value is not None}
        content = None if self.body is None else json.dumps(self.body).encode()
        headers = {} if content is None else {"content-type": "application/json"}
        return {"method": self.method, "url": self.path, "params": given, "content": content, "headers": headers}


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list | tuple) else str(value)


# What can be asked


def assigning(group: Json, strategy: str, optimum: bool) -> Ask:
    return Ask("POST", "/v1/assign", group, {"strategy": strategy, "optimum": optimum or None})


def comparing(group: Json, strategies: Sequence[str] | None) -> Ask:
    body = {"group": group, **({"strategies": list(strategies)} if strategies is not None else {})}
    return Ask("POST", "/v1/compare-assignments", body)


def recommending(document: Json, now: str | None, strategies: Sequence[str] | None, seeds: int | None) -> Ask:
    listed = None if strategies is None else list(strategies)
    return Ask("POST", "/v1/recommend", document, {"from": now, "strategies": listed, "seeds": seeds})


def submitting(document: Json, strategy: str | None, seed: int, until: str | None) -> Ask:
    return Ask("POST", "/v1/simulations", document, {"strategy": strategy, "seed": seed, "until": until})


def of_group(group: str, cluster: str | None, rest: str = "") -> Ask:
    return Ask("GET", f"/v1/groups/{quote(group, safe='')}{rest}", query={"cluster": cluster})


# How answers are read


def answer_of(told: Json) -> Answer:
    return Answer(told["strategy"], told["assignment"], told["quality"])


def job_of(told: Json) -> Job:
    return Job(told["id"], told["state"], float(told["progress"]["done"]), told.get("problem"))


def checked(response: httpx.Response) -> Any:
    if response.is_success:
        return response.json() if response.content else None
    try:
        told = response.json()
    except ValueError:
        told = {"detail": response.text[:200]}
    wait = response.headers.get("retry-after", "")
    raise ServiceError(response.status_code, told, float(wait) if wait.isdigit() else None)


def wait_before(error: ServiceError, retries_left: int) -> float:
    """Return the seconds to wait; raise the error itself where asking again would not help."""
    if retries_left <= 0 or error.status not in (429, 503):
        raise error
    return min(LONGEST_WAIT_S, error.retry_after_s or 1.0)


def events_in(line: str) -> Job | None:
    return job_of(json.loads(line.removeprefix("data: "))) if line.startswith("data: ") else None


def settings(base_url: str, token: str | None, timeout_s: float) -> dict[str, Any]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return {"base_url": base_url, "headers": headers, "timeout": timeout_s}


class Client:
    """Call the service and wait by blocking."""

    def __init__(self, base_url: str, *, token: str | None = None, timeout_s: float = 90.0, retries: int = 2) -> None:
        self._http = httpx.Client(**settings(base_url, token, timeout_s))
        self._retries = retries

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def ask(self, ask: Ask) -> Any:
        for left in range(self._retries, -1, -1):
            try:
                return checked(self._http.request(**ask.arguments()))
            except ServiceError as error:
                sleep(wait_before(error, left))
        raise AssertionError("the last try returns or raises")

    def assign(self, group: Json, *, strategy: str, optimum: bool = False) -> Answer:
        return answer_of(self.ask(assigning(group, strategy, optimum)))

    def compare(self, group: Json, strategies: Sequence[str] | None = None) -> list[Answer]:
        """Compare strategies, and return the answers of those that have one for this group."""
        return [answer_of(one) for one in self.ask(comparing(group, strategies))["results"] if "error" not in one]

    def recommend(
        self,
        document: Json,
        *,
        now: str | None = None,
        strategies: Sequence[str] | None = None,
        seeds: int | None = None,
    ) -> Json:
        found: Json = self.ask(recommending(document, now, strategies, seeds))
        return found

    def size(self, **needs: Any) -> Json:
        found: Json = self.ask(Ask("POST", "/v1/size", needs))
        return found

    def simulate(self, document: Json, *, strategy: str | None = None, seed: int = 1, until: str | None = None) -> Job:
        return job_of(self.ask(submitting(document, strategy, seed, until)))

    def follow(self, job: Job) -> Iterator[Job]:
        """Follow a job until it is over."""
        with self._http.stream("GET", f"/v1/simulations/{job.id}/events") as response:
            if not response.is_success:
                response.read()
                checked(response)
            for line in response.iter_lines():
                told = events_in(line)
                if told is not None:
                    yield told

    def result(self, job: Job) -> Json:
        found: Json = self.ask(Ask("GET", f"/v1/simulations/{job.id}/result"))
        return found

    def cancel(self, job: Job) -> None:
        self.ask(Ask("DELETE", f"/v1/simulations/{job.id}"))

    def group(self, group: str, *, cluster: str | None = None) -> Json:
        found: Json = self.ask(of_group(group, cluster))
        return found

    def group_recommend(self, group: str, *, cluster: str | None = None) -> Json:
        found: Json = self.ask(of_group(group, cluster, "/recommend"))
        return found


class AsyncClient:
    """Call the service and wait by awaiting."""

    def __init__(self, base_url: str, *, token: str | None = None, timeout_s: float = 90.0, retries: int = 2) -> None:
        self._http = httpx.AsyncClient(**settings(base_url, token, timeout_s))
        self._retries = retries

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, ask: Ask) -> Any:
        for left in range(self._retries, -1, -1):
            try:
                return checked(await self._http.request(**ask.arguments()))
            except ServiceError as error:
                await asyncio.sleep(wait_before(error, left))
        raise AssertionError("the last try returns or raises")

    async def assign(self, group: Json, *, strategy: str, optimum: bool = False) -> Answer:
        return answer_of(await self.ask(assigning(group, strategy, optimum)))

    async def compare(self, group: Json, strategies: Sequence[str] | None = None) -> list[Answer]:
        told = await self.ask(comparing(group, strategies))
        return [answer_of(one) for one in told["results"] if "error" not in one]

    async def recommend(
        self,
        document: Json,
        *,
        now: str | None = None,
        strategies: Sequence[str] | None = None,
        seeds: int | None = None,
    ) -> Json:
        found: Json = await self.ask(recommending(document, now, strategies, seeds))
        return found

    async def size(self, **needs: Any) -> Json:
        found: Json = await self.ask(Ask("POST", "/v1/size", needs))
        return found

    async def simulate(
        self, document: Json, *, strategy: str | None = None, seed: int = 1, until: str | None = None
    ) -> Job:
        return job_of(await self.ask(submitting(document, strategy, seed, until)))

    async def follow(self, job: Job) -> AsyncIterator[Job]:
        async with self._http.stream("GET", f"/v1/simulations/{job.id}/events") as response:
            if not response.is_success:
                await response.aread()
                checked(response)
            async for line in response.aiter_lines():
                told = events_in(line)
                if told is not None:
                    yield told

    async def result(self, job: Job) -> Json:
        found: Json = await self.ask(Ask("GET", f"/v1/simulations/{job.id}/result"))
        return found

    async def cancel(self, job: Job) -> None:
        await self.ask(Ask("DELETE", f"/v1/simulations/{job.id}"))

    async def group(self, group: str, *, cluster: str | None = None) -> Json:
        found: Json = await self.ask(of_group(group, cluster))
        return found

    async def group_recommend(self, group: str, *, cluster: str | None = None) -> Json:
        found: Json = await self.ask(of_group(group, cluster, "/recommend"))
        return found

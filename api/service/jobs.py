"""Run simulations as jobs: submitted, followed, fetched, cancelled. Jobs live in memory; the oldest are forgotten
first.

Bound      a job holds a place until it is over (places.py); limits say how many jobs, and how many bytes, are then kept
Clients    a client that keeps too much loses jobs of its own, and never those of a client that keeps less
Whose      a job belongs to the token it came with; for any other token it does not exist
Start at   Jobs.submit
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.api.service.answer_cache import Answer
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.places import Places
from rebalance_lab.api.service.workers.pool import Progress, Question

OVER = ("done", "failed", "cancelled")
STILL_HERE_S = 10.0

Run = Callable[[Question, Progress, str], Awaitable[Answer]]
"""What a job does: a question, its progress, and the client that it is for."""


@dataclass(slots=True, eq=False)
class Job:
    id: str
    owner: str | None
    state: str = "queued"
    progress: Mapping[str, Any] = field(default_factory=lambda: {"done": 0.0})
    answer: Answer | None = None
    problem: Mapping[str, Any] | None = None
    task: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    client: str = ""
    """Whose places and memory it takes: a token, or an address where there are no tokens."""
    followers: int = 0

    @property
    def held_bytes(self) -> int:
        return len(self.answer.body) if self.answer else 0

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    def becomes(self, state: str, **changes: Any) -> None:
        self.state = state
        for name, value in changes.items():
            setattr(self, name, value)
        # A client that waits has the old one; the next client waits for the next change.
        self.changed.set()
        self.changed = asyncio.Event()

    def to_json(self) -> dict[str, Any]:
        here = f"/v1/simulations/{self.id}"
        told: dict[str, Any] = {
            "id": self.id,
            "state": self.state,
            "progress": dict(self.progress),
            "links": {"self": here, "events": f"{here}/events", "result": f"{here}/result"},
        }
        return told if self.problem is None else {**told, "problem": dict(self.problem)}


@dataclass(frozen=True, slots=True)
class Keep:
    """Limit how many jobs are kept when they are over, and how many bytes of answers."""

    most: int
    most_bytes: int

    def compute_share(self, jobs: Sequence[Job]) -> float:
        return max(len(jobs) / self.most, sum(job.held_bytes for job in jobs) / self.most_bytes)

    def is_exceeded(self, jobs: Sequence[Job]) -> bool:
        return bool(jobs) and self.compute_share(jobs) > 1


class Jobs:
    def __init__(self, *, places: Places, most_kept: int, most_kept_per_client: int, most_bytes: int, run: Run) -> None:
        self.places, self.run = places, run
        self.in_all = Keep(most_kept, most_bytes)
        self.per_client = Keep(min(most_kept, most_kept_per_client), most_bytes // 2)
        self._jobs: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def open(self) -> list[Job]:
        return [job for job in self._jobs.values() if not job.is_over]

    def submit(self, question: Question, owner: str | None, client: str) -> Job:
        self.places.take(client)
        job = Job(secrets.token_urlsafe(12), owner, client=client)
        self._jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self._work(job, question))
        # Not a part of the work: a task that is cancelled before its first step never runs at all.
        job.task.add_done_callback(lambda _: self.places.give_back(client))
        return job

    async def _work(self, job: Job, question: Question) -> None:
        try:
            answer = await self.run(question, lambda told: job.becomes("running", progress=told), job.client)
            job.becomes("done", answer=answer, progress={**job.progress, "done": 1.0})
        except Problem as problem:
            job.becomes("failed", problem=problem.to_json())
        except asyncio.CancelledError:
            job.becomes("cancelled")
        self._forget(job.client)

    def _forget(self, client: str) -> None:
        """Forget the oldest jobs of this client, then the oldest of the client that keeps the most."""
        while self.per_client.is_exceeded(kept := self._list_over(client)):
            del self._jobs[kept[0].id]
        while self.in_all.is_exceeded(kept := self._list_over()):
            of_clients = [self._list_over(client) for client in {job.client for job in kept}]
            del self._jobs[max(of_clients, key=self.in_all.compute_share)[0].id]

    def _list_over(self, client: str | None = None) -> list[Job]:
        return [job for job in self._jobs.values() if job.is_over and client in (None, job.client)]

    def find(self, id: str, owner: str | None) -> Job:
        job = self._jobs.get(id)
        if job is None or job.owner != owner:
            raise Problem("not-found", "there is no such simulation, or it is forgotten", path="id")
        return job

    async def remove(self, job: Job) -> None:
        """Cancel a job that is not over, and forget it."""
        self._jobs.pop(job.id, None)
        await self.cancel(job)

    async def cancel(self, job: Job) -> None:
        if job.task is not None and not job.is_over:
            job.task.cancel()
            await asyncio.wait([job.task])
            if not job.is_over:  # it was cancelled before it began
                job.becomes("cancelled")

    async def stop(self, within_s: float) -> None:
        """Let running jobs that are followed finish in that time, and cancel all other jobs.

        Nothing is fetched from a service that stops, so what a job finds reaches its followers alone.
        """
        for job in self.open:
            if job.state == "queued" or not job.followers:
                await self.cancel(job)
        running = [job.task for job in self.open if job.task is not None]
        if running:
            await asyncio.wait(running, timeout=within_s)
        for job in self.open:
            await self.cancel(job)


async def follow(job: Job) -> AsyncIterator[bytes]:
    """Send server-sent events: `progress` until it is over, then `done`, `failed` or `cancelled`, and the end."""
    job.followers += 1
    try:
        while True:
            changed = job.changed
            name = job.state if job.is_over else "progress"
            yield f"event: {name}\ndata: {json.dumps(job.to_json())}\n\n".encode()
            if job.is_over:
                return
            while not await has_changed(changed):
                yield b": still here\n\n"
    finally:
        job.followers -= 1


async def has_changed(changed: asyncio.Event) -> bool:
    try:
        await asyncio.wait_for(changed.wait(), STILL_HERE_S)
    except TimeoutError:
        return False
    return True

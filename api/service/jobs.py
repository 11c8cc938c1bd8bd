"""Run simulations as jobs: submitted, followed, fetched, cancelled. Jobs live in memory; the oldest are forgotten
first.

Bound      limits say how many may wait or run, and how many (and how many bytes) are kept when they are over
Whose      a job belongs to the token it came with; for any other token it does not exist
Start at   Jobs.submit
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.api.service.answer_cache import Answer
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.workers.pool import Progress, Question

OVER = ("done", "failed", "cancelled")
STILL_HERE_S = 10.0

Run = Callable[[Question, Progress], Awaitable[Answer]]


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


class Jobs:
    def __init__(self, *, most_open: int, most_kept: int, most_bytes: int, run: Run) -> None:
        self.most_open, self.most_kept, self.most_bytes = most_open, most_kept, most_bytes
        self.run = run
        self._jobs: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def open(self) -> list[Job]:
        return [job for job in self._jobs.values() if not job.is_over]

    def check_room(self) -> None:
        if len(self.open) >= self.most_open:
            raise Problem("busy", f"{self.most_open} jobs wait or run already", limit="jobs", retry_after_s=5)

    def submit(self, question: Question, owner: str | None) -> Job:
        self.check_room()
        job = Job(secrets.token_urlsafe(12), owner)
        self._jobs[job.id] = job
        job.task = asyncio.get_running_loop().create_task(self._work(job, question))
        return job

    async def _work(self, job: Job, question: Question) -> None:
        try:
            answer = await self.run(question, lambda told: job.becomes("running", progress=told))
            job.becomes("done", answer=answer, progress={**job.progress, "done": 1.0})
        except Problem as problem:
            job.becomes("failed", problem=problem.to_json())
        except asyncio.CancelledError:
            job.becomes("cancelled")
        self._forget()

    def _forget(self) -> None:
        over = [job for job in self._jobs.values() if job.is_over]
        held = sum(len(job.answer.body) for job in over if job.answer)
        while over and (len(over) > self.most_kept or held > self.most_bytes):
            oldest = over.pop(0)
            held -= len(oldest.answer.body) if oldest.answer else 0
            del self._jobs[oldest.id]

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
        """Let running jobs finish in that time; jobs that wait, or take longer, are cancelled."""
        for job in self.open:
            if job.state == "queued":
                await self.cancel(job)
        running = [job.task for job in self.open if job.task is not None]
        if running:
            await asyncio.wait(running, timeout=within_s)
        for job in self.open:
            await self.cancel(job)


async def follow(job: Job) -> AsyncIterator[bytes]:
    """Send server-sent events: `progress` until it is over, then `done`, `failed` or `cancelled`, and the end."""
    while True:
        changed = job.changed
        name = job.state if job.is_over else "progress"
        yield f"event: {name}\ndata: {json.dumps(job.to_json())}\n\n".encode()
        if job.is_over:
            return
        while True:
            try:
                await asyncio.wait_for(changed.wait(), STILL_HERE_S)
                break
            except TimeoutError:
                yield b": still here\n\n"

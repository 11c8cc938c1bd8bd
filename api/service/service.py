"""Hold what the routes share, processes, cache, jobs and clusters, and turn questions into answers or problems.

Start at   Service.answer
"""

from __future__ import annotations

import asyncio
import logging
import math
import time

from starlette.requests import Request

from rebalance_lab.api.service.answer_cache import Answer, Cache
from rebalance_lab.api.service.clusters import Clusters
from rebalance_lab.api.service.connection.auth import Guard
from rebalance_lab.api.service.connection.body_room import BodyRoom
from rebalance_lab.api.service.connection.client_presence import run_while_present
from rebalance_lab.api.service.connection.json_logs import log
from rebalance_lab.api.service.connection.metrics import Metrics
from rebalance_lab.api.service.connection.problems import Problem, of_contract
from rebalance_lab.api.service.jobs import Jobs
from rebalance_lab.api.service.places import Places
from rebalance_lab.api.service.service_settings import Settings
from rebalance_lab.api.service.workers.pool import Busy, Died, Failed, Pool, Progress, Question, Refused, TookTooLong
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.runs import cores

QUICK_NICE, SLOW_NICE = 3, 8


class Service:
    def __init__(self, settings: Settings) -> None:
        limits = settings.limits
        self.settings, self.limits = settings, limits
        quick = settings.workers or cores()
        self.quick = Pool(
            "quick", quick, limits, waiting=limits.waiting, waiting_s=limits.waiting_s, niceness=QUICK_NICE
        )
        # One process more than a client may have, so that the next client finds one.
        share = max(1, quick // 2)
        self.slow = Pool(
            "slow",
            share + 1,
            limits,
            waiting=limits.jobs,
            waiting_s=limits.slow_waiting_s,
            waiting_name="slow_waiting_s",
            most_per_client=share,
            niceness=SLOW_NICE,
        )
        self.places = Places(in_all=limits.jobs, per_client=limits.jobs_per_client)
        self.body_room = BodyRoom(in_all=limits.bodies_bytes, per_client=limits.bodies_bytes_per_client)
        self.cache = Cache(limits.cache_bytes)
        self.guard = Guard(settings.tokens)
        self.metrics = Metrics()
        self.clusters = Clusters(settings.clusters)
        self.jobs = Jobs(
            places=self.places,
            most_kept=limits.jobs_kept,
            most_kept_per_client=limits.jobs_kept_per_client,
            most_bytes=limits.cache_bytes,
            run=self.simulate,
        )
        self.stopping = False

    async def start(self) -> None:
        await self.quick.start()
        await self.slow.start()
        log("started", host=self.settings.host, port=self.settings.port, processes=self.quick.size + self.slow.size)

    def stop_soon(self) -> None:
        """Take on nothing new after a signal. Clients that follow a job would otherwise keep the server up."""
        if not self.stopping:
            self.stopping = True
            log("stopping", open_jobs=len(self.jobs.open))
            self._stopping_jobs = asyncio.get_running_loop().create_task(self.jobs.stop(self.settings.graceful_s / 2))

    async def stop(self) -> None:
        self.stop_soon()
        await self._stopping_jobs
        await asyncio.gather(self.quick.stop(), self.slow.stop())
        self.clusters.close()
        log("stopped")

    @property
    def ready(self) -> bool:
        return not self.stopping and self.quick.ready and self.slow.ready

    async def answer(self, request: Request, question: Question, limit: str, *, slow: bool = False) -> Answer:
        """Answer a request for as long as its client is there. `limit` names the setting with the time it may take."""
        found = self.find_answer(question)
        if found is not None:
            return found
        client: str = request.state.client
        if not slow:
            return await run_while_present(request, self.work(question, limit, self.quick, client))
        self.places.take(client)
        try:
            return await run_while_present(request, self.work(question, limit, self.slow, client))
        finally:
            self.places.give_back(client)

    async def simulate(self, question: Question, progress: Progress, client: str) -> Answer:
        """Do what a job does; it has its place already, and may wait for as long as it takes."""
        found = self.find_answer(question)
        if found is not None:
            return found
        return await self.work(question, "simulation_s", self.slow, client, progress=progress, waiting_s=math.inf)

    def find_answer(self, question: Question) -> Answer | None:
        """Return the answer from memory if the same question was asked before."""
        found = self.cache.get(self.cache.key(question))
        self.metrics.cache.labels("yes" if found else "no").inc()
        return found

    async def work(
        self,
        question: Question,
        limit: str,
        pool: Pool,
        client: str,
        *,
        progress: Progress | None = None,
        waiting_s: float | None = None,
    ) -> Answer:
        if self.stopping:
            raise Problem("stopping", "try another one", retry_after_s=5)
        started = time.perf_counter()
        time_s: float = getattr(self.limits, limit)
        try:
            body = await pool.run(question, time_s=time_s, progress=progress, client=client, waiting_s=waiting_s)
        except Busy as busy:
            raise Problem("busy", str(busy), limit=busy.limit, retry_after_s=busy.retry_after_s) from None
        except Refused as refused:
            raise of_contract(ContractError(refused.path, refused.message), refused.limit) from None
        except TookTooLong:
            detail = f"this takes more than {time_s:g} s: ask for less at once"
            raise Problem("limit", detail, limit=limit) from None
        except Died:
            raise Problem("busy", "the process that worked on it died, twice", retry_after_s=1) from None
        except Failed as failed:
            log("bug", logging.ERROR, operation=question.operation, trace=str(failed))
            raise Problem("failed", "the log of the service says more") from None
        answer = Answer.of(body)
        self.metrics.work.labels(question.operation).observe(time.perf_counter() - started)
        self.cache.put(self.cache.key(question), answer)
        return answer

    def measure(self) -> bytes:
        for pool in (self.quick, self.slow):
            self.metrics.waiting.labels(pool.name).set(pool.waiting)
            self.metrics.busy.labels(pool.name).set(pool.busy)
            self.metrics.restarts.labels(pool.name).set(pool.restarts)
        self.metrics.jobs.set(len(self.jobs.open))
        return self.metrics.text()

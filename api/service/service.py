"""Hold what the routes share, processes, cache, jobs and clusters, and turn questions into answers or problems.

Start at   Service.ask
"""

from __future__ import annotations

import asyncio
import logging
import time

from rebalance_lab.api.service.answer_cache import Answer, Cache
from rebalance_lab.api.service.clusters import Clusters
from rebalance_lab.api.service.connection.auth import Guard
from rebalance_lab.api.service.connection.json_logs import log
from rebalance_lab.api.service.connection.metrics import Metrics
from rebalance_lab.api.service.connection.problems import Problem, of_contract
from rebalance_lab.api.service.jobs import Jobs
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
        self.slow = Pool("slow", max(1, quick // 2), limits, waiting=limits.jobs, niceness=SLOW_NICE)
        self.cache = Cache(limits.cache_bytes)
        self.guard = Guard(settings.tokens)
        self.metrics = Metrics()
        self.clusters = Clusters(settings.clusters)
        self.jobs = Jobs(
            most_open=limits.jobs, most_kept=limits.jobs_kept, most_bytes=limits.cache_bytes, run=self.simulate
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

    async def ask(
        self, question: Question, limit: str, *, slow: bool = False, progress: Progress | None = None
    ) -> Answer:
        """Answer a question; `limit` names the setting with the time it may take. The same question is answered from
        memory.
        """
        key = self.cache.key(question)
        found = self.cache.get(key)
        self.metrics.cache.labels("yes" if found else "no").inc()
        if found is not None:
            return found
        if self.stopping:
            raise Problem("stopping", "try another one", retry_after_s=5)
        started = time.perf_counter()
        answer = Answer.of(await self.in_a_process(question, limit, self.slow if slow else self.quick, progress))
        self.metrics.work.labels(question.operation).observe(time.perf_counter() - started)
        self.cache.put(key, answer)
        return answer

    async def in_a_process(self, question: Question, limit: str, pool: Pool, progress: Progress | None) -> bytes:
        time_s: float = getattr(self.limits, limit)
        try:
            return await pool.run(question, time_s=time_s, progress=progress)
        except Busy as busy:
            raise Problem("busy", str(busy), limit="waiting", retry_after_s=busy.retry_after_s) from None
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

    async def simulate(self, question: Question, progress: Progress) -> Answer:
        return await self.ask(question, "simulation_s", slow=True, progress=progress)

    def measure(self) -> bytes:
        for pool in (self.quick, self.slow):
            self.metrics.waiting.labels(pool.name).set(pool.waiting)
            self.metrics.busy.labels(pool.name).set(pool.busy)
            self.metrics.restarts.labels(pool.name).set(pool.restarts)
        self.metrics.jobs.set(len(self.jobs.open))
        return self.metrics.text()

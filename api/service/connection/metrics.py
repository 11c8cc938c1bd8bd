"""Count what /metrics shows, in Prometheus's words."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"namespace": "rebalance_lab", "registry": self.registry}
        self.requests = Counter(
            "http_requests", "Requests by route, method and status", ("route", "method", "status"), **made
        )
        self.seconds = Histogram("http_request_seconds", "Time to the last byte", ("route",), buckets=BUCKETS, **made)
        self.work = Histogram("work_seconds", "Time in line and in a process", ("operation",), buckets=BUCKETS, **made)
        self.refused = Counter("refused", "Requests refused, by the kind of problem", ("problem",), **made)
        self.cache = Counter("cache", "Questions that were asked before, and that were not", ("found",), **made)
        for found in ("yes", "no"):
            self.cache.labels(found)
        self.waiting = Gauge("waiting", "Questions that wait for a process", ("pool",), **made)
        self.busy = Gauge("busy_processes", "Processes at work", ("pool",), **made)
        self.restarts = Gauge("process_restarts", "Processes replaced since the start", ("pool",), **made)
        self.jobs = Gauge("open_jobs", "Simulations that wait or run", **made)

    def text(self) -> bytes:
        return generate_latest(self.registry)

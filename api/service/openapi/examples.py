"""Make an example for everything in the document, by the code itself, and keep it in examples.json.

python -m rebalance_lab.api.service.openapi.examples        # writes the file anew; a test holds it against the code
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from rebalance_lab.harness.kafka.groups.offset_window import BLIND_SPOTS

KEPT = Path(__file__).with_name("examples.json")

GROUP = {
    "topics": {"orders": {"partitions": 6}},
    "members": {
        "pod-a": {"topics": ["orders"], "owned": {"orders": [0, 1, 2]}, "generation": 7},
        "pod-b": {"topics": ["orders"], "owned": {"orders": [3, 4, 5]}, "generation": 7},
        "pod-c": {"topics": ["orders"]},
    },
}
SCENARIO = {
    "name": "one restart",
    "duration": "2m",
    "strategy": "classic/range",
    "topics": {"orders": {"partitions": 3, "rate": "30/s"}},
    "members": {"consumer": {"count": 2, "topics": "orders"}},
    "timeline": [{"at": "1m", "restart": {"members": "consumer-1", "downtime": "5s"}}],
}
SIZE = {"target": "5k/s", "per_consumer": "600/s", "growth": "30%", "horizon": "2y"}
LIVE = {
    "group": "orders",
    "protocol": "classic",
    "state": "Stable",
    "assignor": "range",
    "coordinator": "broker-1:9092",
    "lag": 12,
    "subscriptions": "as members say",
    "members": [],
    "partitions": [],
    "window": {"looks": 6, "seconds": 17.2, "commits_apart_s": 5.0, "cannot_be_known": list(BLIND_SPOTS)},
    "snapshot": GROUP,
}
JOB_ID = "Zm9yZ290dGVuLi4u"


@cache
def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def example(name: str) -> Any:
    return kept().get(name)


def made() -> dict[str, Any]:
    from rebalance_lab.api.service.jobs import Job
    from rebalance_lab.api.service.service_settings import Limits
    from rebalance_lab.api.service.workers.work import OPERATIONS

    def asked(operation: str, value: Any, **options: Any) -> Any:
        return json.loads(
            OPERATIONS[operation](json.dumps(value).encode(), options, Limits(), lambda *told, **more: None)
        )

    request = {"strategy": "classic/sticky", "group": GROUP}
    batch = {"requests": [request, {"strategy": "uniform", "group": GROUP}]}
    side_by_side = {"strategies": ["classic/range", "consumer/uniform"], "group": GROUP}
    advice = asked("recommend", SCENARIO, media="json", strategies="classic/range,consumer/uniform", seeds=1)
    advice["evidence"] = None  # the published table changes with every sweep, and an example should not
    job = Job(JOB_ID, None, "running", {"done": 0.5, "at_ms": 60_000, "events": 48})
    run = asked("simulate", SCENARIO, media="json")
    return {
        "assign.request": {"a request": request, "a batch": batch},
        "assign.response": asked("assign", request),
        "compareAssignments.request": {"two strategies": side_by_side, "all, for a bare group": GROUP},
        "compareAssignments.response": asked("compare-assignments", side_by_side),
        "recommend.request": {"a scenario": SCENARIO, "a group, with a life assumed": GROUP},
        "recommend.response": advice,
        "size.request": {"records": SIZE},
        "size.response": asked("size", SIZE),
        "submitSimulation.request": {"a scenario": SCENARIO, "a group, with a life assumed": request},
        "submitSimulation.response": Job(JOB_ID, None).to_json(),
        "simulation.response": job.to_json(),
        "followSimulation.response": f"event: progress\ndata: {json.dumps(job.to_json())}\n\n",
        "simulationResult.response": run,
        "group.response": LIVE,
        "groupRecommend.response": advice,
        "strategies.response": {"strategies": strategies()},
        "healthz.response": {"status": "ok"},
        "readyz.response": {"status": "ready"},
    }


def strategies() -> list[dict[str, Any]]:
    from rebalance_lab.api.service.strategy_list import strategy_infos

    return strategy_infos()


def text() -> str:
    return json.dumps(made(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    KEPT.write_text(text())

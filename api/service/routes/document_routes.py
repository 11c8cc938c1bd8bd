"""Answer a document: /v1/assign, /v1/compare-assignments, /v1/recommend, /v1/size."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rebalance_lab.api.service.connection.bodies import media_of, read_body, respond
from rebalance_lab.api.service.openapi import query_parameters as parameters
from rebalance_lab.api.service.openapi.operations import operation
from rebalance_lab.api.service.openapi.schemas import ref
from rebalance_lab.api.service.service import Service
from rebalance_lab.api.service.workers.pool import Question

SEEDS = 6
"""The fewest that give a 95 % interval: a request should be answered in seconds."""
LIFE = {"anyOf": [ref("Scenario"), ref("Group"), ref("Request")]}


def advice_parameters(most_seeds: int) -> tuple[parameters.Parameter, ...]:
    seeds = parameters.seeds(most_seeds, SEEDS)
    return (parameters.NOW, parameters.STRATEGIES, seeds, parameters.WEIGHTS, parameters.BROKERS)


def advice_options(asked: dict[str, Any], media: str, most_seeds: int) -> dict[str, Any]:
    now = asked.pop("from", None)
    return {"media": media, "now": now, "seeds": min(SEEDS, most_seeds), **asked}


def router(service: Service) -> APIRouter:
    made = APIRouter()
    limits = service.limits
    assigning = (parameters.STRATEGY, parameters.EXPLAIN, parameters.OPTIMUM)
    advising = advice_parameters(limits.seeds)

    @made.post(
        "/v1/assign",
        **operation(
            "assign",
            "Assign a group's partitions exactly as Kafka would",
            tag="assign",
            description="A request, a bare group with ?strategy=, or a batch, whose requests are answered in order.",
            takes={"anyOf": [ref("Request"), ref("Group"), ref("Batch")]},
            gives={"anyOf": [ref("Answer"), ref("Answers")]},
            parameters=assigning,
            cached=True,
        ),
    )
    async def assign(request: Request) -> Response:
        media_of(request)
        options = parameters.read_query(request.query_params, assigning)
        question = Question("assign", await read_body(request, limits), options)
        return respond(request, await service.answer(request, question, "assign_s"))

    @made.post(
        "/v1/compare-assignments",
        **operation(
            "compareAssignments",
            "One group through several strategies, with the quality of each answer",
            tag="assign",
            takes={"anyOf": [ref("SideBySide"), ref("Group")]},
            gives=ref("Compared"),
            parameters=(parameters.OPTIMUM,),
            cached=True,
        ),
    )
    async def compare_assignments(request: Request) -> Response:
        media_of(request)
        options = parameters.read_query(request.query_params, (parameters.OPTIMUM,))
        question = Question("compare-assignments", await read_body(request, limits), options)
        return respond(request, await service.answer(request, question, "assign_s"))

    @made.post(
        "/v1/recommend",
        **operation(
            "recommend",
            "Which strategy to take, why, how sure that is, what to paste and how to get there",
            tag="recommend",
            description="A scenario, a group (a deploy, a crash and a scale-out are assumed for it), or a comparison "
            "that an earlier answer held, to be ranked by other weights. Simulates, so it takes seconds.",
            takes={"anyOf": [*LIFE["anyOf"], {"type": "object", "required": ["runs", "ranking", "description"]}]},
            takes_yaml=True,
            gives=ref("Advice"),
            parameters=advising,
            cached=True,
        ),
    )
    async def recommend(request: Request) -> Response:
        media = media_of(request, yaml=True)
        options = advice_options(parameters.read_query(request.query_params, advising), media, limits.seeds)
        question = Question("recommend", await read_body(request, limits), options)
        return respond(request, await service.answer(request, question, "recommend_s", slow=True))

    @made.post(
        "/v1/size",
        **operation(
            "size",
            "How many partitions and consumers a throughput needs, now and in some years",
            tag="recommend",
            description="Simulates deploys of the group that it finds, so it takes seconds.",
            takes=ref("Size"),
            gives=ref("Sizing"),
            cached=True,
        ),
    )
    async def size(request: Request) -> Response:
        media_of(request)
        parameters.read_query(request.query_params, ())
        question = Question("size", await read_body(request, limits))
        return respond(request, await service.answer(request, question, "recommend_s", slow=True))

    return made

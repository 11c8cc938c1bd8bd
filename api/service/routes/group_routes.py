"""Serve live groups of the clusters that the operator configured by name."""

from __future__ import annotations

import json

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from rebalance_lab.api.service.connection.bodies import respond
from rebalance_lab.api.service.openapi import query_parameters as parameters
from rebalance_lab.api.service.openapi.operations import JSON, operation
from rebalance_lab.api.service.openapi.query_parameters import Parameter
from rebalance_lab.api.service.openapi.schemas import ref
from rebalance_lab.api.service.routes.document_routes import advice_options, advice_parameters
from rebalance_lab.api.service.service import Service
from rebalance_lab.api.service.workers.pool import Question

GROUP = Parameter(name="group", place="path", schema={"type": "string"}, description="Its id.", example="orders")


def router(service: Service) -> APIRouter:
    made = APIRouter()
    limits = service.limits
    advising = (parameters.CLUSTER, *advice_parameters(limits.seeds))

    @made.get(
        "/v1/groups/{group}",
        **operation(
            "group",
            "A live group: who is in it, who owns what, how far behind",
            tag="groups",
            description="Its `snapshot` is what /v1/assign, /v1/compare-assignments and /v1/recommend take.",
            gives=ref("LiveGroup"),
            parameters=(GROUP, parameters.CLUSTER),
            problems=("not-found", "invalid", "cluster"),
        ),
    )
    async def group(request: Request) -> Response:
        asked = parameters.read_query(request.query_params, (parameters.CLUSTER,))
        found = await service.clusters.describe(asked.get("cluster"), request.path_params["group"])
        return Response(json.dumps(found), media_type=JSON)

    @made.get(
        "/v1/groups/{group}/recommend",
        **operation(
            "groupRecommend",
            "Which strategy a live group should take",
            tag="groups",
            description="Its present is known; a deploy, a crash and a scale-out are assumed for its life.",
            gives=ref("Advice"),
            parameters=(GROUP, *advising),
            problems=("not-found", "invalid", "limit", "cluster", "busy"),
            cached=True,
        ),
    )
    async def group_recommend(request: Request) -> Response:
        asked = parameters.read_query(request.query_params, advising)
        found = await service.clusters.describe(asked.pop("cluster", None), request.path_params["group"])
        body = json.dumps(found["snapshot"]).encode()
        question = Question("recommend", body, advice_options(asked, "json", limits.seeds))
        return respond(request, await service.answer(request, question, "recommend_s", slow=True))

    return made

"""Serve a simulation as a job: submit, look, follow, fetch, cancel."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rebalance_lab.api.service.connection.bodies import media_of, read_body, respond
from rebalance_lab.api.service.connection.problems import Problem
from rebalance_lab.api.service.jobs import Job, follow
from rebalance_lab.api.service.openapi import query_parameters as parameters
from rebalance_lab.api.service.openapi.examples import JOB_ID
from rebalance_lab.api.service.openapi.operations import JSON, operation
from rebalance_lab.api.service.openapi.query_parameters import Parameter
from rebalance_lab.api.service.openapi.schemas import ref
from rebalance_lab.api.service.routes.document_routes import LIFE
from rebalance_lab.api.service.service import Service
from rebalance_lab.api.service.workers.pool import Question

ID = Parameter(name="id", place="path", schema={"type": "string"}, description="As submitted.", example=JOB_ID)
ASKED = (parameters.STRATEGY, parameters.SEED, parameters.UNTIL)
TAG = "simulate"


def link(operation_id: str) -> dict[str, Any]:
    return {"operationId": operation_id, "parameters": {"id": "$response.body#/id"}}


def told(job: Job, status: int = 200, **headers: str) -> Response:
    return Response(json.dumps(job.to_json()), status, headers=headers, media_type=JSON)


def router(service: Service) -> APIRouter:
    made = APIRouter()
    limits = service.limits

    def job_of(request: Request) -> Job:
        parameters.read_query(request.query_params, ())
        return service.jobs.find(request.path_params["id"], request.state.owner)

    @made.post(
        "/v1/simulations",
        **operation(
            "submitSimulation",
            "Run one strategy through a scenario, as a job",
            tag=TAG,
            description="A scenario, or a group, for which a deploy, a crash and a scale-out are assumed. The job's "
            "result is what `rebalance-lab simulate --json` prints, and the run as intervals for a chart.",
            takes=LIFE,
            takes_yaml=True,
            gives=ref("Job"),
            status=201,
            parameters=ASKED,
            links={
                "look": link("simulation"),
                "follow": link("followSimulation"),
                "fetch": link("simulationResult"),
                "cancel": link("cancelSimulation"),
            },
        ),
    )
    async def submit(request: Request) -> Response:
        media = media_of(request, yaml=True)
        options = {"media": media, **parameters.read_query(request.query_params, ASKED)}
        body = await read_body(request, limits)
        service.places.check(request.state.client)
        # A scenario that is wrong is refused here and not by a job that fails.
        await service.answer(request, Question("check-simulation", body, options), "assign_s")
        job = service.jobs.submit(Question("simulate", body, options), request.state.owner, request.state.client)
        return told(job, 201, location=f"/v1/simulations/{job.id}")

    @made.get(
        "/v1/simulations/{id}",
        **operation(
            "simulation",
            "How far a simulation is",
            tag=TAG,
            gives=ref("Job"),
            parameters=(ID,),
            problems=("not-found", "invalid"),
        ),
    )
    async def look(request: Request) -> Response:
        return told(job_of(request))

    @made.get(
        "/v1/simulations/{id}/events",
        **operation(
            "followSimulation",
            "Follow a simulation: server-sent events until it is over",
            tag=TAG,
            description="`progress` for each step, then `done`, `failed` or `cancelled`, and the stream ends. The data "
            "of each event is the job.",
            gives=ref("JobEvent"),
            media="text/event-stream",
            parameters=(ID,),
            problems=("not-found", "invalid"),
        ),
    )
    async def events(request: Request) -> Response:
        return StreamingResponse(follow(job_of(request)), media_type="text/event-stream")

    @made.get(
        "/v1/simulations/{id}/result",
        **operation(
            "simulationResult",
            "What a simulation found",
            tag=TAG,
            gives=ref("Run"),
            parameters=(ID,),
            problems=("not-found", "unfinished", "invalid"),
            cached=True,
        ),
    )
    async def result(request: Request) -> Response:
        job = job_of(request)
        if job.answer is None:
            headers = {} if job.is_over else {"retry-after": "1"}
            raise Problem("unfinished", f"the simulation is {job.state}", headers=headers)
        return respond(request, job.answer)

    @made.delete(
        "/v1/simulations/{id}",
        **operation(
            "cancelSimulation",
            "Cancel a simulation if it is not over, and forget it",
            tag=TAG,
            status=204,
            parameters=(ID,),
            problems=("not-found", "invalid"),
        ),
    )
    async def cancel(request: Request) -> Response:
        await service.jobs.remove(job_of(request))
        return Response(status_code=204)

    return made

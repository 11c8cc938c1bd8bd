"""Assign one group, or many, by a strategy: a request of the JSON contract to its answer.

Given      decoded JSON: {"strategy": ..., "group": ...}, a bare group, or {"requests": [...]}
Returns    the answer of the contract; ContractError or AssignorError for a single request that is wrong. One of
           many has the error as data in its place
Start at   answer_document
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.json_contract import (
    ContractError,
    assignment_to_json,
    expect_list,
    expect_object,
    parse_request,
    refuse_unknown,
)
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.strategies import Strategy, load_assignor, parse_strategy, run_assignor

Shares = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Hold what is asked beside the document itself."""

    strategy: str | None = None
    """Wins over the request's own."""
    explain: bool = False
    optimum: bool = False
    check: Callable[[Group, str], None] | None = None
    """Shown each group and its path before any work is done on it; it may raise ContractError."""


def answer_document(value: Any, asked: Asked) -> dict[str, Any]:
    """Answer a document. A batch answers each request in its place; a single one that is wrong raises."""
    value = as_requests(value)
    if "requests" not in value:
        return answer_request(value, asked)
    refuse_unknown(value, ("requests",), "")
    return {"results": [answer_in_place(one, asked) for one in expect_list(value["requests"], "requests")]}


def as_requests(value: Any) -> dict[str, Any]:
    """Read requests. A bare group is a request without a strategy: what `group snapshot` writes can be piped in as it
    is.
    """
    request = expect_object(value, "request")
    if "group" not in request and "requests" not in request and {"topics", "members"} & request.keys():
        return {"group": request}
    return request


def answer_in_place(value: Any, asked: Asked) -> dict[str, Any]:
    try:
        return answer_request(value, asked)
    except ContractError as error:
        return error.to_json()
    except AssignorError as error:
        return {"error": {"path": error.path, "message": str(error)}}


def answer_request(value: Any, asked: Asked) -> dict[str, Any]:
    """Answer one request of the JSON contract."""
    named, group = parse_request(value)
    own = None if named is None else parse_strategy(named)  # wrong also where another one wins
    chosen = own if asked.strategy is None else parse_strategy(asked.strategy)
    if chosen is None:
        raise ContractError("strategy", "is missing; give it in the request or with --strategy")
    if asked.check is not None:
        asked.check(group, "group")
    return answer_group(group, chosen, explain=asked.explain, optimum=asked.optimum)


def answer_group(group: Group, strategy: Strategy, *, explain: bool = False, optimum: bool = False) -> dict[str, Any]:
    with limited(strategy, "cannot be loaded: it is not done"):
        assignor = load_assignor(strategy)
    with limited(strategy, "gave no answer"):
        assignment = run_assignor(assignor, group)
        shares = assignment_to_json(assignment, group)
    answer: dict[str, Any] = {
        "strategy": str(strategy),
        "assignment": shares,
        "quality": quality_row(group, assignment, optimum=optimum),
    }
    if explain:
        answer["explanation"] = explanation(assignor, group, assignment)
    return answer


def limited(strategy: Strategy, what: str) -> AbstractContextManager[None]:
    """Limit the time of a custom class; the built-in ones need no limit, nor what keeps it."""
    if not strategy.is_custom:
        return nullcontext()
    from rebalance_lab.harness.evaluate.call_timeout import time_limit

    return time_limit([strategy], "strategy", what)


def quality_row(group: Group, assignment: Shares, *, optimum: bool) -> dict[str, Any]:
    from rebalance_lab.assignors.quality import quality

    if not optimum:
        return quality(group, assignment).as_row()
    from rebalance_lab.assignors.optimal import optimum as best

    return quality(group, assignment, best(group)).as_row()


def explanation(assignor: Assignor, group: Group, assignment: Shares) -> list[dict[str, Any]]:
    from rebalance_lab.assignors.explain import explain

    return [reason.to_json() for reason in explain(assignor.name, group, assignment)]


def answer_side_by_side(group: Group, strategies: Sequence[Strategy], *, optimum: bool = False) -> dict[str, Any]:
    """Assign one group by several strategies. One that has no answer for it says so in its place."""
    results = []
    for strategy in strategies:
        try:
            results.append(answer_group(group, strategy, optimum=optimum))
        except AssignorError as error:
            results.append({"strategy": str(strategy), "error": {"path": error.path, "message": str(error)}})
    given = [one["assignment"] for one in results if "assignment" in one]
    return {"results": results, "differences": differing_partitions(given)}


def differing_partitions(sides: Sequence[Shares]) -> list[dict[str, Any]]:
    """Return the partitions that do not go to the same member everywhere, with their owner on each side."""
    owners: list[dict[tuple[str, int], str]] = [
        {(topic, p): member for member, share in side.items() for topic, ps in share.items() for p in ps}
        for side in sides
    ]
    places = sorted({place for side in owners for place in side})
    told = [(place, [side.get(place) for side in owners]) for place in places]
    return [{"topic": topic, "partition": p, "owners": found} for (topic, p), found in told if len(set(found)) > 1]

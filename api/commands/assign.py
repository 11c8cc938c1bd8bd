"""`rebalance-lab assign`: one group, or many, through one strategy or two side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from api.terminal import console, print_json, ranges, read_input, share_text
from assignors.interface import Assignor, AssignorError
from assignors.json_contract import (
    ContractError,
    assignment_to_json,
    decode,
    expect_list,
    expect_object,
    parse_request,
    refuse_unknown,
)
from assignors.strategies import Strategy, load_assignor, parse_strategy, run_assignor

if TYPE_CHECKING:
    from rich.console import RenderableType

    from assignors.model import Group

Shares = Mapping[str, Mapping[str, Sequence[int]]]


def assign_command(
    file: str, strategy: str | None, *, as_json: bool, explain: bool, optimum: bool, diff: tuple[str, str] | None
) -> None:
    """Read, answer, print. A batch answers each request in its place; a single one that is wrong raises."""
    value = as_requests(decode(read_input(file)))
    if diff is not None:
        strategy, group = parse_request(value)
        show_diff(group, diff, as_json=as_json, optimum=optimum)
        return
    if "requests" not in value:
        answer = answer_request(value, strategy, explain=explain, optimum=optimum)
        print_json(answer) if as_json else show(answer)
        return
    refuse_unknown(value, ("requests",), "")
    results = []
    for request in expect_list(value["requests"], "requests"):
        try:
            results.append(answer_request(request, strategy, explain=explain, optimum=optimum))
        except (ContractError, AssignorError) as error:
            results.append(error_to_json(error))
    if as_json:
        print_json({"results": results})
    else:
        for i, result in enumerate(results):
            console().rule(f"requests[{i}]", align="left")
            show(result)


def as_requests(value: Any) -> dict[str, Any]:
    """A bare group is a request without a strategy: what `group snapshot` writes can be piped in as it is."""
    request = expect_object(value, "request")
    if "group" not in request and "requests" not in request and {"topics", "members"} & request.keys():
        return {"group": request}
    return request


def error_to_json(error: ContractError | AssignorError) -> dict[str, Any]:
    if isinstance(error, ContractError):
        return error.to_json()
    return {"error": {"path": error.path, "message": str(error)}}


def answer_request(value: Any, strategy: str | None, *, explain: bool, optimum: bool) -> dict[str, Any]:
    """One request of the JSON contract to its answer."""
    named, group = parse_request(value)
    chosen = strategy or named
    if chosen is None:
        raise ContractError("strategy", "is missing; give it in the request or with --strategy")
    return answer_group(group, parse_strategy(chosen), explain=explain, optimum=optimum)


def answer_group(group: Group, strategy: Strategy, *, explain: bool = False, optimum: bool = False) -> dict[str, Any]:
    assignor = load_assignor(strategy)
    assignment = run_assignor(assignor, group)
    answer: dict[str, Any] = {
        "strategy": str(strategy),
        "assignment": assignment_to_json(assignment, group),
        "quality": quality_row(group, assignment, optimum=optimum),
    }
    if explain:
        answer["explanation"] = explanation(assignor, group, assignment)
    return answer


def quality_row(group: Group, assignment: Shares, *, optimum: bool) -> dict[str, Any]:
    from assignors.quality import quality

    if not optimum:
        return quality(group, assignment).as_row()
    from assignors.optimal import optimum as best

    return quality(group, assignment, best(group)).as_row()


def explanation(assignor: Assignor, group: Group, assignment: Shares) -> list[dict[str, Any]]:
    from assignors.explain import explain

    return [reason.to_json() for reason in explain(assignor.name, group, assignment)]


def show(answer: dict[str, Any]) -> None:
    """An answer as people read it."""
    out = console()
    if "error" in answer:
        out.print(f"[red]error[/red] {answer['error']['path']}: {answer['error']['message']}", soft_wrap=True)
        return
    out.print(f"[bold]{answer['strategy']}[/bold]")
    out.print(assignment_table(answer["assignment"]))
    out.print(quality_line(answer["quality"]), soft_wrap=True)
    for (topic, member, why), reasons in groupby(
        answer.get("explanation", ()), key=itemgetter("topic", "member", "why")
    ):
        where = f"{topic} {ranges(reason['partition'] for reason in reasons)}"
        out.print(f"  {where} -> {member or 'nobody'}: {why}", soft_wrap=True, markup=False)


def assignment_table(assignment: Shares) -> RenderableType:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", no_wrap=True)
    table.add_column("count", justify="right")
    table.add_column("partitions", overflow="fold")
    for member, share in assignment.items():
        count = sum(len(partitions) for partitions in share.values())
        table.add_row(escape(member), str(count), escape(share_text(share)) or "[dim]none[/dim]")
    return table


def quality_line(row: Mapping[str, Any]) -> str:
    """The figures a reader asks for first; --json has all of them."""
    parts = [f"{row['assigned']} of {row['partitions']} assigned", f"{row['min']} to {row['max']} a member"]
    if row["kept"] or row["moved"] or row["revoked"]:
        parts.append(f"{row['kept']} kept, {row['moved']} moved ({row['needlessly_moved']} needlessly)")
        parts.append(f"{row['revoked']} to be revoked first")
    if row["rack_local"] is not None:
        parts.append(f"{row['rack_local']:.0%} in the member's rack")
    if row["load_skew"] is not None:
        parts.append(f"load skew {row['load_skew']:.2f}")
    if row["gap_balance"] is not None:
        parts.append(f"gap to the optimum: balance {row['gap_balance']}, moves {row['gap_moves']}")
    return ", ".join(parts)


def show_diff(group: Group, names: tuple[str, str], *, as_json: bool, optimum: bool) -> None:
    """Two strategies on one group: each member's two shares, and the partitions that go to different members."""
    answers = [answer_group(group, parse_strategy(name, "--diff"), optimum=optimum) for name in names]
    differences = differing_partitions(answers[0]["assignment"], answers[1]["assignment"])
    if as_json:
        print_json({"a": answers[0], "b": answers[1], "differences": differences})
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    out = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", no_wrap=True)
    for answer in answers:
        table.add_column(answer["strategy"], overflow="fold")
    for member in group.members:
        shares = [share_text(answer["assignment"].get(member, {})) for answer in answers]
        style = None if shares[0] == shares[1] else "yellow"
        table.add_row(escape(member), *(escape(share) or "none" for share in shares), style=style)
    out.print(table)
    for answer in answers:
        out.print(f"{answer['strategy']}: {quality_line(answer['quality'])}", soft_wrap=True)
    out.print(f"{len(differences)} partitions go to different members")


def differing_partitions(a: Shares, b: Shares) -> list[dict[str, Any]]:
    owners: list[dict[tuple[str, int], str]] = [
        {(topic, p): member for member, share in side.items() for topic, ps in share.items() for p in ps}
        for side in (a, b)
    ]
    places = sorted(owners[0].keys() | owners[1].keys())
    return [
        {"topic": topic, "partition": p, "a": owners[0].get((topic, p)), "b": owners[1].get((topic, p))}
        for topic, p in places
        if owners[0].get((topic, p)) != owners[1].get((topic, p))
    ]

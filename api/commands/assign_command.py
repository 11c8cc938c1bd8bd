"""Run `rebalance-lab assign`: one group, or many, through one strategy or two side by side."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rebalance_lab.api.answers.assign_answer import (
    Asked,
    Shares,
    answer_document,
    answer_group,
    as_requests,
    differing_partitions,
)
from rebalance_lab.api.terminal import aside, console, headline, print_json, ranges, read_input, share_text
from rebalance_lab.assignors.json_contract import decode, parse_request
from rebalance_lab.assignors.strategies import parse_strategy

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rebalance_lab.assignors.model import Group


def assign_command(
    file: str, strategy: str | None, *, as_json: bool, explain: bool, optimum: bool, diff: tuple[str, str] | None
) -> None:
    """Read, answer, print. A batch answers each request in its place; a single one that is wrong raises."""
    value = as_requests(decode(read_input(file)))
    if diff is not None:
        strategy, group = parse_request(value)
        show_diff(group, diff, as_json=as_json, optimum=optimum)
        return
    with aside():
        answer = answer_document(value, Asked(strategy=strategy, explain=explain, optimum=optimum))
    if as_json:
        print_json(answer)
    elif "results" not in answer:
        show(answer)
    else:
        for i, result in enumerate(answer["results"]):
            console().rule(f"requests[{i}]", align="left")
            show(result)


def show(answer: dict[str, Any]) -> None:
    """Print an answer as people read it."""
    out = console()
    if "error" in answer:
        where, what = answer["error"]["path"], answer["error"]["message"]
        out.print(headline("error", f" {where}: {what}", "red"), soft_wrap=True)
        return
    out.print(answer["strategy"], style="bold")
    out.print(assignment_table(answer["assignment"]))
    out.print(quality_line(answer["quality"]), soft_wrap=True)
    for (topic, member, why), reasons in groupby(
        answer.get("explanation", ()), key=itemgetter("topic", "member", "why")
    ):
        where = f"{topic} {ranges(reason['partition'] for reason in reasons)}"
        out.print(f"  {where} -> {member or 'nobody'}: {why}", soft_wrap=True)


def assignment_table(assignment: Shares) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", no_wrap=True)
    table.add_column("count", justify="right")
    table.add_column("partitions", overflow="fold")
    for member, share in assignment.items():
        count = sum(len(partitions) for partitions in share.values())
        table.add_row(member, str(count), share_text(share) or headline("none", style="dim"))
    return table


def quality_line(row: Mapping[str, Any]) -> str:
    """Print the figures that a reader asks for first; --json has all of them."""
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
    """Show two strategies on one group: each member's two shares, and the partitions that go to different members."""
    with aside():
        answers = [answer_group(group, parse_strategy(name, "--diff"), optimum=optimum) for name in names]
    found = differing_partitions([answer["assignment"] for answer in answers])
    differences = [
        {"topic": one["topic"], "partition": one["partition"], "a": one["owners"][0], "b": one["owners"][1]}
        for one in found
    ]
    if as_json:
        print_json({"a": answers[0], "b": answers[1], "differences": differences})
        return
    from rich import box
    from rich.table import Table

    out = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", no_wrap=True)
    for answer in answers:
        table.add_column(answer["strategy"], overflow="fold")
    for member in group.members:
        shares = [share_text(answer["assignment"].get(member, {})) for answer in answers]
        style = None if shares[0] == shares[1] else "yellow"
        table.add_row(member, *(share or "none" for share in shares), style=style)
    out.print(table)
    for answer in answers:
        out.print(f"{answer['strategy']}: {quality_line(answer['quality'])}", soft_wrap=True)
    out.print(f"{len(differences)} partitions go to different members")

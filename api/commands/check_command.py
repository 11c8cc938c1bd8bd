"""Run `rebalance-lab check`: an assignor's report card, and a counterexample that can be seen again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rebalance_lab.api.terminal import BadInput, aside, console, print_json, put_aside, read_input
from rebalance_lab.assignors.json_contract import ContractError, decode, expect_object

if TYPE_CHECKING:
    from rebalance_lab.assignors.testing.search.report_card import Report, Row
    from rebalance_lab.assignors.testing.subject.targets import Target


def check_command(
    assignor: str, *, examples: int, seed: int, promises: Collection[str], replay: str | None, as_json: bool
) -> bool:
    """Check an assignor, and return True when everything promised holds."""
    from rebalance_lab.assignors.testing.search.checking import check
    from rebalance_lab.assignors.testing.subject.targets import load_target
    from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn

    if examples < 1:
        raise BadInput(f"--examples must be at least 1, got {examples}")
    with aside():
        target = load_target(assignor, promises)
    if replay is not None:
        return replay_command(target, replay, as_json=as_json)
    with progress_bar(examples) as progress:
        report = check(target, examples, seed, machines=ProtocolChurn, progress=progress)
    for found in report.findings:
        put_aside(found.notes)
    if as_json:
        print_json(report.to_json())
    else:
        show(report)
    return report.holds


def replay_command(target: Target, text: str, *, as_json: bool) -> bool:
    """Run one case again: JSON on the command line, in a file, or on standard input."""
    from rebalance_lab.assignors.testing.properties.contract import BY_NAME
    from rebalance_lab.assignors.testing.sampling.cases import case_from_json
    from rebalance_lab.assignors.testing.search.checking import replay
    from rebalance_lab.assignors.testing.search.report_text import aligned, group_rows
    from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn

    value = expect_object(decode(text if text.lstrip().startswith("{") else read_input(text)), "replay")
    name = value.get("property", "valid")
    if name not in BY_NAME:
        raise ContractError("property", f"{name!r} is no property; known: {', '.join(BY_NAME)}")
    finding = replay(target, name, case_from_json(value), ProtocolChurn)
    put_aside(finding.notes if finding else "")
    if as_json:
        print_json(
            {"property": name, "holds": finding is None, "counterexample": finding and finding.to_json(target.text)}
        )
    elif finding is None:
        sys.stdout.write(f"{name} holds here\n")
    else:
        lines = [f"{finding.property} is broken: {finding.message}", "", *aligned(group_rows(finding))]
        sys.stdout.write("\n".join(lines) + "\n")
    return finding is None


@contextmanager
def progress_bar(examples: int) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal only; a pipe sees the report and nothing else."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("groups", total=examples)
        yield lambda number: bar.update(task, completed=number)


def show(report: Report) -> None:
    from rich import box
    from rich.table import Table

    from rebalance_lab.assignors.testing.search.report_text import closing, counterexample, promised, title, verdict

    out = console()
    out.print(title(report), style="bold", soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("property", "promised"):
        table.add_column(column, no_wrap=True)
    table.add_column("examples", justify="right")
    table.add_column("verdict")
    table.add_column("worst case", overflow="fold")
    for row in report.rows:
        table.add_row(row.name, promised(row), f"{row.examples:,}", verdict(row), row.worst, style=style(row))
    out.print(table)
    for waived, why in report.waived.items():
        out.print(f"waived: {waived}: {why}", soft_wrap=True)
    for note in report.notes:
        out.print(f"note: {note}", soft_wrap=True)
    for finding in report.findings:
        out.rule(style="red")
        out.print(counterexample(report, finding), soft_wrap=True)
    out.print("\n" + closing(report), soft_wrap=True)


def style(row: Row) -> str | None:
    return {"broken": "red", "not-run": "dim", "measured": "dim"}.get(row.verdict)

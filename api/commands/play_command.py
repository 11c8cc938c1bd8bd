"""Run `rebalance-lab play`: a request sequence to the coordinator machine; its answers as JSON, or as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rebalance_lab.api.commands.play_text import answer_text, request_text, worst_error
from rebalance_lab.api.terminal import console, print_json, read_input
from rebalance_lab.assignors.json_contract import ContractError, decode, expect_object
from rebalance_lab.harness.conversation.sequence_player import Fact, Transcript, play, play_many

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from rebalance_lab.harness.conversation.sequence_file import Step


def play_command(file: str, *, as_json: bool) -> None:
    """Play sequences. A batch answers each sequence in its place; a single one that is wrong raises."""
    value = expect_object(decode(read_input(file)), "sequence")
    if "sequences" not in value:
        transcript = play(value)
        print_json(transcript.to_json()) if as_json else show(transcript)
        return
    results = play_many(value)
    if as_json:
        print_json({"results": [result.to_json() for result in results]})
        return
    for i, result in enumerate(results):
        console().rule(f"sequences[{i}]", align="left")
        if isinstance(result, ContractError):
            console().print(f"error {result}", style="red", soft_wrap=True)
        else:
            show(result)


def show(transcript: Transcript) -> None:
    """Time runs downwards; messages to the coordinator point right, answers left, and states stand at the right."""
    table = chart()
    last_ms = None
    for fact in transcript.facts:
        when = "" if fact.at_ms == last_ms else f"{fact.at_ms:,}"
        last_ms = fact.at_ms
        table.add_row(when, *row(fact))
    for step in transcript.unanswered.values():
        table.add_row("", step.name, styled("◀┄ no answer", "yellow"), "")
    console().print(table)


def chart() -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True)
    table.add_column("message", overflow="fold", ratio=1)
    table.add_column("group", overflow="fold")
    return table


def row(fact: Fact) -> tuple[str, Text, Text]:
    if fact.state is not None:
        state = fact.state
        cause = " ".join(part for part in (state.event, state.member_id and f"({state.member_id})") if part)
        said = f", it says: {state.client_reason}" if state.client_reason else ""
        return "", styled(f"    {cause}{said}", "dim"), styled(f"{state.group_id}: {state.state}", "bold")
    step = fact.step
    assert step is not None
    if fact.answered:
        body = fact.body or {}
        waited = f"  +{fact.at_ms - step.at_ms:,} ms" if fact.at_ms > step.at_ms else ""
        style = "green" if worst_error(body) == "NONE" else "red"
        return step.name, styled(f"◀── {answer_text(body)}{waited}", style), styled("", "")
    if step.request is None:
        return "", styled(f"*** {other_text(step)}", "magenta"), styled("", "")
    name = step.request.__name__.removesuffix("Request")
    return step.name, styled(f"──▶ {name} v{step.version} {request_text(fact.body)}", ""), styled("", "")


def other_text(step: Step) -> str:
    if step.transaction is not None:
        producer_id, committed = step.transaction
        return f"transaction of producer {producer_id}: {'committed' if committed else 'aborted'}"
    if step.topics is not None:
        return f"topics: {step.topics}"
    return f"appends: {step.appends}" if step.appends is not None else f"coordinator: {step.coordinator}"


def styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)

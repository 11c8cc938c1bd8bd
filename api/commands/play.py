"""`rebalance-lab play`: a request sequence to the coordinator machine; its answers as JSON, or as a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from api.terminal import console, print_json, read_input
from assignors.json_contract import ContractError, decode, expect_object
from harness.sequences import Fact, Transcript, play, play_many

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Body = Mapping[str, Any]


def play_command(file: str, *, as_json: bool) -> None:
    """A batch answers each sequence in its place; a single one that is wrong raises."""
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
            console().print(f"error {result}", markup=False, style="red", soft_wrap=True)
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
        other = step.topics or step.appends or step.coordinator
        kind = "topics" if step.topics is not None else "appends" if step.appends is not None else "coordinator"
        return "", styled(f"*** {kind}: {other}", "magenta"), styled("", "")
    name = step.request.__name__.removesuffix("Request")
    return step.name, styled(f"──▶ {name} v{step.version} {request_text(fact.body)}", ""), styled("", "")


def styled(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(text, style=style)


def request_text(body: Any) -> str:
    """What tells one request from the next; timeouts and bytes are left to --json."""
    if not isinstance(body, dict):
        return ""
    told = [str(body[key]) for key in ("group_id", "member_id", "group_instance_id") if body.get(key)]
    generation = body.get("generation_id", body.get("generation_id_or_member_epoch"))
    if generation is not None:
        told.append(f"generation {generation}")
    for key in ("protocols", "topics"):
        names = [str(item.get("name", item.get("topic_name", ""))) for item in body.get(key) or ()]
        if names:
            told.append(f"[{', '.join(names)}]")
    for key in ("members", "assignments"):
        if body.get(key):
            told.append(f"{key} {', '.join(str(item.get('member_id')) for item in body[key])}")
    told += [str(name) for key in ("groups", "groups_names") for name in body.get(key) or () if isinstance(name, str)]
    return " ".join(told)


def worst_error(body: Body) -> str:
    """The first error that stands anywhere in an answer, or NONE."""
    return next((error for error in errors_in(body) if error != "NONE"), "NONE")


def errors_in(value: Any) -> list[str]:
    if isinstance(value, list):
        return [error for item in value for error in errors_in(item)]
    if not isinstance(value, Mapping):
        return []
    own = [value["error_code"]] if "error_code" in value else []
    return own + [error for item in value.values() for error in errors_in(item)]


def answer_text(body: Body) -> str:
    told = [worst_error(body)]
    if body.get("generation_id", -1) >= 0:
        leads = body["leader"] == body["member_id"]
        listed = f" of {len(body['members'])}" if body["members"] else ""
        told.append(
            f"generation {body['generation_id']}, {body['protocol_name']}, {'leads' if leads else 'follows'}{listed}"
        )
        if body.get("skip_assignment"):
            told.append("skips the assignment")
    if body.get("member_id"):
        told.append(str(body["member_id"]))
    for key, describe in DETAILS.items():
        if body.get(key):
            told.append(describe(body[key]))
    return "  ".join(told)


def described(groups: list[Body]) -> str:
    return ", ".join(f"{g['group_id']} {g.get('group_state', '')} {len(g.get('members', ()))} members" for g in groups)


DETAILS: dict[str, Callable[[Any], str]] = {
    "assignment": lambda data: f"assignment {data if len(data) <= 24 else data[:21] + '...'}",
    "groups": described,
}

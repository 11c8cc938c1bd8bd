"""Print the state tables of both protocols as pages with mermaid diagrams.

Given      TRANSITIONS of protocol_v1, MEMBER_TRANSITIONS of both, ACTIONS, NEXT and MOVES of protocol_v2
Returns    PAGES: each file's path and its text; a test fails when a file is stale
Run        python -m tools.state_diagrams      writes them
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from rebalance_lab.protocol_v1.coordinator.state.states import TRANSITIONS
from rebalance_lab.protocol_v1.member.states import MEMBER_TRANSITIONS as CLASSIC_MEMBER_TRANSITIONS
from rebalance_lab.protocol_v2.coordinator.state.states import ACTIONS, DONE, MOVES, NEXT, REVOKE_FIRST, WAIT, Action
from rebalance_lab.protocol_v2.member.states import MEMBER_TRANSITIONS as CONSUMER_MEMBER_TRANSITIONS

COMMAND = "python -m tools.state_diagrams"
ROOT = Path(__file__).resolve().parents[1]
BEFORE = "[*]"


def diagram(arrows: Iterable[tuple[str, str, str]], *, first: str = "", last: str = "") -> list[str]:
    """Draw arrows with from, to and why; reasons with the same two ends share an arrow."""
    shared: dict[tuple[str, str], list[str]] = {}
    for source, target, why in arrows:
        shared.setdefault((source, target), []).append(why)
    lines = [f"    {source} --> {target}: {'<br/>'.join(whys)}" for (source, target), whys in shared.items()]
    return ["```mermaid", "stateDiagram-v2", *ended(first), *lines, *ended(last), "```"]


def ended(line: str) -> list[str]:
    return [f"    {line}"] if line else []


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def page(title: str, tables: str, *parts: Iterable[str]) -> str:
    lines = [f"# {title}", "", f"Generated from {tables} with `{COMMAND}`."]
    for part in parts:
        lines += ["", *part]
    return "\n".join([*lines, ""])


def transitions_page(
    title: str, tables: str, transitions: Mapping[Any, Enum], *, first: str = "", last: str = ""
) -> str:
    """Write the page of a machine whose every move is one row: state (None before there is one) and event give the next
    state.
    """
    moves = [(state, str(event.value), str(target.value)) for (state, event), target in transitions.items()]
    arrows = [(str(state.value) if state else BEFORE, target, event) for state, event, target in moves]
    rows = [(str(state.value) if state else "(none)", event, target) for state, event, target in moves]
    return page(title, tables, diagram(arrows, first=first, last=last), table(("From", "Event", "To"), rows))


def consumer_group_page() -> str:
    outcomes = {Action.NEXT: (REVOKE_FIRST, WAIT, DONE), Action.STRIP: (REVOKE_FIRST,)}
    member = [
        (state.name, outcome.state.name, str(situation.value))
        for (state, situation), action in ACTIONS.items()
        for outcome in outcomes.get(action, ())
    ]
    group = [
        (state.value if state else BEFORE, target.value, str(event.value))
        for (state, event), targets in MOVES.items()
        for target in targets
        if target is not state
    ]
    actions = [(state.name, str(situation.value), str(action.value)) for (state, situation), action in ACTIONS.items()]
    findings = [
        (
            *("yes" if fact else "no" for fact in finding),
            outcome.state.name,
            "assignment epoch" if outcome.advances else "stays",
        )
        for finding, outcome in NEXT.items()
    ]
    moves = [
        (state.value if state else "(none)", str(event.value), ", ".join(target.value for target in targets))
        for (state, event), targets in MOVES.items()
    ]
    finds = ("Still owns what it must revoke", "Gets free partitions", "Waits for others", "State", "Epoch")
    return page(
        "The states of a consumer group and of its members",
        "the tables in `state/states.py`",
        ["## Member"],
        diagram(member, first=f"{BEFORE} --> STABLE: joins"),
        ["What a heartbeat does:"],
        table(("State", "Finds", "Does"), actions),
        ["Where the next step towards the target leads:"],
        table(finds, findings),
        ["## Group"],
        diagram(group, last=f"Dead --> {BEFORE}"),
        table(("From", "Event", "To one of"), moves),
    )


def pages() -> dict[Path, str]:
    members = "`MEMBER_TRANSITIONS` in `states.py`"
    return {
        ROOT / "protocol_v1" / "coordinator" / "STATES.md": transitions_page(
            "The states of a classic group",
            "`TRANSITIONS` in `state/states.py`",
            TRANSITIONS,
            last=f"Dead --> {BEFORE}",
        ),
        ROOT / "protocol_v1" / "member" / "STATES.md": transitions_page(
            "The states of a classic member",
            members,
            CLASSIC_MEMBER_TRANSITIONS,
            first=f"{BEFORE} --> Unjoined",
        ),
        ROOT / "protocol_v2" / "coordinator" / "STATES.md": consumer_group_page(),
        ROOT / "protocol_v2" / "member" / "STATES.md": transitions_page(
            "The states of a KIP-848 member",
            members,
            CONSUMER_MEMBER_TRANSITIONS,
            first=f"{BEFORE} --> Unsubscribed",
        ),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)

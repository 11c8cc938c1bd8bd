"""The shortest sequence that a broker and our coordinator still answer differently.

Given      an outcome with a difference
Returns    an outcome of as few steps as possible; each try is a real run, so there is an end to the tries
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.conversation.references import referred
from rebalance_lab.harness.kafka.wire.recordings.differential import Bench, Outcome

TRIES = 40
TAIL_MS = 2_000
"""After the last step: what is parked may be answered yet."""


async def shrunk(bench: Bench, outcome: Outcome) -> Outcome:
    """Drop what the difference does not need: halves first, then smaller pieces, then single steps."""
    steps, tries = outcome.recorded["steps"], TRIES
    size = len(steps)
    while size:
        start = 0
        while start < len(steps):
            fewer = without_dangling(steps[:start] + steps[start + size :])
            found = await differs(bench, outcome, fewer) if tries and len(fewer) < len(steps) else None
            tries = max(0, tries - 1)
            if found is None:
                start += size
            else:
                outcome, steps = found, fewer
        size //= 2
    return outcome


async def differs(bench: Bench, outcome: Outcome, steps: list[dict[str, Any]]) -> Outcome | None:
    try:
        until_ms = min(outcome.recorded["until_ms"], steps[-1]["at_ms"] + TAIL_MS if steps else 0)
        found = await bench.compare({**outcome.recorded, "steps": steps, "member_ids": [], "until_ms": until_ms})
    except ContractError:  # a step refers to a field that an answer no longer has
        return None
    return found if found.unexplained else None


def without_dangling(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A step that refers to one that was dropped goes as well."""
    kept: list[dict[str, Any]] = []
    names: set[str] = set()
    for step in steps:
        if all(name in names for name in referred(step["body"])):
            kept.append(step)
            names.add(step["as"])
    return kept

"""Run `rebalance-lab record`: one sequence to a real broker, its answers beside the steps, and where we differ."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_lab.api.terminal import BadInput, console, print_json, read_input
from rebalance_lab.assignors.json_contract import decode, expect_object

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.wire.recordings.differential import Outcome


def record_command(file: str, *, bootstrap: str, output: str | None, timeout_s: float, as_json: bool) -> bool:
    """Record a sequence, and return whether our coordinator answers as the broker did."""
    from rebalance_lab.harness.kafka.wire.addresses import WireError
    from rebalance_lab.harness.kafka.wire.recordings.one_recording import record_one

    value = expect_object(decode(read_input(file)), "sequence")
    try:
        outcome, unsent = asyncio.run(record_one(value, bootstrap, timeout_s))
    except WireError as error:
        raise BadInput(str(error)) from None
    if output is not None:
        write(output, outcome.recorded)
    if as_json:
        print_json({**outcome.recorded, "differences": [str(each) for each in outcome.unexplained]})
    else:
        show(outcome, unsent, output)
    return not outcome.unexplained


def write(output: str, recorded: dict[str, Any]) -> None:
    try:
        Path(output).write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise BadInput(f"{output}: {error.strerror or error}") from error


def show(outcome: Outcome, unsent: dict[str, str], output: str | None) -> None:
    answered, steps = outcome.recorded["answered"], outcome.recorded["steps"]
    out = console()
    out.print(f"{len(answered)} of {len(steps)} requests answered; {outcome.compared} answers compared")
    for name, why in unsent.items():
        out.print(f"{name} was not sent: {why}", style="yellow", soft_wrap=True)
    for difference in outcome.differences:
        style = "dim" if difference.explained else "red"
        out.print(str(difference), style=style, soft_wrap=True)
    if not outcome.unexplained and outcome.compared:
        out.print("our coordinator answers alike", style="green")
    elif not outcome.compared:
        out.print("nothing could be compared: every step came too close to a timer", style="yellow")
    if output is not None:
        out.print(f"saved as {output}; look at it with: rebalance-lab play {output}", soft_wrap=True)

"""The options of `play` and `record`: requests to a coordinator, ours and Kafka's."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import AsJson, InputFile


def play(file: InputFile = "-", as_json: AsJson = False) -> None:
    """Play a timed list of requests to a coordinator and show what it answers, and when.

    The input is a sequence, {"protocol": "classic", "steps": [...]}, or {"sequences": [...]} for many at once.
    """
    from rebalance_lab.api.commands.play_command import play_command

    play_command(file, as_json=as_json)


def record(
    file: InputFile = "-",
    bootstrap: Annotated[
        str,
        typer.Option(
            "--bootstrap",
            metavar="HOST:PORT",
            help="A broker on this machine, or of the test cluster that REBALANCE_LAB_BOOTSTRAP names.",
        ),
    ] = "127.0.0.1:9092",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the recording there; `play` takes it."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for a broker.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Send a sequence to a real broker at its times, record what it answers, and compare that with our coordinator.

    Groups get fresh names there, and topics that are missing are created for as long as it takes. The exit code is 1
    where our coordinator answers otherwise.
    """
    from rebalance_lab.api.commands.record_command import record_command

    if not record_command(file, bootstrap=bootstrap, output=output, timeout_s=timeout, as_json=as_json):
        raise typer.Exit(1)

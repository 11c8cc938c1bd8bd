"""The options of `broker`."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import AsJson, Provider

broker_app = typer.Typer(help="Real Kafka clusters on tap.", no_args_is_help=True)


@broker_app.command("up")
def broker_up(
    provider: Provider = "auto",
    nodes: Annotated[int, typer.Option("--nodes", help="1 or 3.")] = 1,
    kafka_version: Annotated[
        str | None,
        typer.Option("--kafka-version", help="Such as 4.3.1."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="The first node's port; the others follow. Free ports are chosen without it."),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap", help="For the provider external: the address of a cluster that runs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a Kafka cluster until Ctrl-C and print its bootstrap address. Nothing is left behind."""
    from rebalance_lab.api.commands.broker_command import broker_up_command

    broker_up_command(provider, nodes, kafka_version, port, bootstrap, as_json=as_json)

"""The options of `serve`."""

from __future__ import annotations

from typing import Annotated

import typer


def serve(
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="Settings as TOML: address, limits, tokens, clusters."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 without it."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="8000 without it; 0 takes a free one."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, max=512, help="Processes for quick work; all cores without it."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option("--cluster", metavar="NAME=HOST:PORT", help="A Kafka cluster that requests may name; repeatable."),
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen on a reachable address without tokens.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host", metavar="NAME", help="A name that requests may give as Host; * is any; repeatable."
        ),
    ] = None,
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = "info",
    new_token: Annotated[
        str | None,
        typer.Option("--new-token", metavar="NAME", help="Print a new token and its lines for --config, and stop."),
    ] = None,
) -> None:
    """Answer over HTTP until Ctrl-C: the page at /, what the paths take at /openapi.json.

    Prints its address when it listens; logs are JSON lines on standard error. An address other than this machine's own
    needs tokens (--new-token), or --allow-anonymous. Requests must name this machine in their Host,
    as localhost or by the address that they reach, or a name of --allowed-host. Flags win over the file of --config.
    """
    from rebalance_lab.api.commands.serve_command import serve_command

    serve_command(
        config=config,
        host=host,
        port=port,
        workers=workers,
        clusters=cluster or (),
        allow_anonymous=allow_anonymous,
        allowed_hosts=allowed_host or (),
        log_level=log_level,
        new_token=new_token,
    )

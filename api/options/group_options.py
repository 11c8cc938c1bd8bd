"""The options of `rebalance-lab group`: a live group, read and nothing else."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import AsJson

group_app = typer.Typer(help="A live group: read, never changed.", no_args_is_help=True)

GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="The group.id.")]
Bootstrap = Annotated[str, typer.Option("--bootstrap", metavar="HOST:PORT", help="The cluster's bootstrap.servers.")]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="A client's properties: security.protocol, sasl.*, ssl.*."),
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds for everything.")]
Apart = Annotated[
    float,
    typer.Option("--apart", metavar="S", help="Seconds between two looks at the offsets; 0 for one look alone."),
]
Window = Annotated[
    float | None,
    typer.Option("--window", metavar="S", help="Seconds of looks for statuses; 12, or half of --timeout."),
]


@group_app.command("describe")
def group_describe(
    group: GroupId,
    bootstrap: Bootstrap,
    config: Config = None,
    timeout: Timeout = 30.0,
    apart: Apart = 2.0,
    window: Window = None,
    as_json: AsJson = False,
) -> None:
    """Members, subscriptions, owners, lag, and a status for each partition: working, behind, rewound, stalled or
    stopped; unknown where the looks tell too little.
    """
    from rebalance_lab.api.commands.group_command import group_describe_command

    group_describe_command(
        group, bootstrap, config=config, timeout_s=timeout, apart_s=apart, window_s=window, as_json=as_json
    )


@group_app.command("snapshot")
def group_snapshot(
    group: GroupId,
    bootstrap: Bootstrap,
    config: Config = None,
    timeout: Timeout = 20.0,
    apart: Apart = 6.0,
    load: Annotated[
        str,
        typer.Option("--load", metavar="WHAT", help="What a partition's load is: rate (needs two looks), lag or none."),
    ] = "rate",
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Where to write it; standard output without it."),
    ] = None,
) -> None:
    """The group as JSON that assign, compare and recommend take."""
    from rebalance_lab.api.commands.group_command import group_snapshot_command

    group_snapshot_command(group, bootstrap, config=config, timeout_s=timeout, apart_s=apart, load=load, out=out)

"""The options of `rebalance-lab live` and `rebalance-lab fidelity`: scenarios done for real."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import REAL_PROVIDERS, AsJson, strategies_option

Provider = Annotated[str, typer.Option("--provider", metavar="NAME", help=f"{REAL_PROVIDERS}.")]

FIDELITY_STRATEGIES = "classic/range,classic/cooperative-sticky,consumer/uniform,classic/cooperative-sticky+static"
FidelityStrategies = Annotated[str, strategies_option(FIDELITY_STRATEGIES, "Which to run;")]
Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT",
        help="A running cluster: on this machine, or the test cluster.",
    ),
]


def live(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO|-]", help="YAML or JSON; it takes as long as it says."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", help="What the consumers run; the scenario's own without it."),
    ] = None,
    provider: Provider = "auto",
    bootstrap: Bootstrap = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Write what happened as JSON lines, as simulate does."),
    ] = None,
    as_json: AsJson = False,
    assignor: Annotated[
        str | None,
        typer.Option(
            "--assignor", metavar="MODULE:CLASS", help="No scenario: the lab's own members with this assignor."
        ),
    ] = None,
    group: Annotated[
        str, typer.Option("--group", metavar="GROUP", help="With --assignor: which group to join.")
    ] = "lab",
    topics: Annotated[
        str | None,
        typer.Option("--topics", metavar="A,B", help="With --assignor: what to subscribe to."),
    ] = None,
    members: Annotated[int, typer.Option("--members", metavar="N", help="With --assignor: how many of ours.")] = 1,
) -> None:
    """Run a scenario with real consumers on a real cluster, and measure it as a simulated one.

    Members are confluent-kafka processes; the timeline is done to them with signals. Exit code 1 when the sequence
    oracle finds a record that was skipped, or committed before it was processed. With --assignor, members of the lab
    join a real group, beside whoever is in it, until Ctrl-C.
    """
    from rebalance_lab.api.commands.live_command import live_command

    if not live_command(
        scenario,
        strategy=strategy,
        provider=provider,
        bootstrap=bootstrap,
        trace=trace,
        as_json=as_json,
        assignor=assignor,
        group=group,
        topics=topics,
        members=members,
    ):
        raise typer.Exit(1)


def fidelity(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO...]", help="YAML or JSON; six short ones of the lab's own without any."),
    ] = None,
    strategies: FidelityStrategies = FIDELITY_STRATEGIES,
    seeds: Annotated[int, typer.Option("--seeds", metavar="N", help="Simulated runs beside each live one.")] = 20,
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", help="Live runs at a time.")] = 2,
    provider: Provider = "auto",
    bootstrap: Bootstrap = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the answer as JSON there, too."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Simulation and live run side by side, with the ratio, and why where they differ by more than 15 %.

    Exit code 1 when a difference is not explained, or the sequence oracle finds something.
    """
    from rebalance_lab.api.commands.fidelity_command import fidelity_command

    if not fidelity_command(
        scenarios or [],
        strategies=strategies,
        seeds=seeds,
        at_once=at_once,
        provider=provider,
        bootstrap=bootstrap,
        out=out,
        as_json=as_json,
    ):
        raise typer.Exit(1)

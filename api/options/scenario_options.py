"""The options of `compare`, `recommend`, `simulate` and `size`: what a strategy costs."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import AsJson, Html, strategies_option

SCENARIO = "YAML or JSON, - for standard input; or a group, or saved runs."
SIZE_STRATEGIES = "classic/range,classic/cooperative-sticky,consumer/uniform"
SizeStrategies = Annotated[
    str, strategies_option(SIZE_STRATEGIES, "What a deploy is simulated with; the first one counts.")
]
Strategies = Annotated[
    str | None,
    typer.Option("--strategies", metavar="A,B,C", help="Which to compare; seven usual ones without it."),
]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", metavar="N", help="Runs of each strategy, with the same N seeds; 20 without it."),
]
WeightsText = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="NAME=X,...",
        help="What costs how much, over the usual weights: 1 is one partition standing still for one second.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", help="Processes to use; all cores without it."),
]


def compare(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help=SCENARIO)],
    strategies: Strategies = None,
    seeds: Seeds = None,
    weights: WeightsText = None,
    html: Html = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Run every strategy through the same scenario with the same seeds, and rank what they cost.

    What --json prints can be given back instead of a scenario: its runs are ranked by other --weights at once.
    Exit code 1 when a run breaks an invariant, such as two owners of a partition. Ctrl-C ranks what is finished.
    """
    from rebalance_lab.api.commands.compare_command import compare_command

    if not compare_command(
        scenario, strategies=strategies, seeds=seeds, weights=weights, html=html, jobs=jobs, as_json=as_json
    ):
        raise typer.Exit(1)


def recommend(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO|GROUP", help="A scenario, a saved comparison, or a group as in assign.")
    ],
    now: Annotated[
        str | None,
        typer.Option("--from", metavar="STRATEGY", help="What runs now; wins over the scenario's own."),
    ] = None,
    strategies: Strategies = None,
    seeds: Seeds = None,
    weights: WeightsText = None,
    brokers: Annotated[
        int | None,
        typer.Option("--brokers", metavar="N", help="How many there are: then fetch session slots are checked too."),
    ] = None,
    html: Html = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Say which strategy to take, why, how sure that is, what to paste and how to get there from what runs now.

    Exit code 1 when a run breaks an invariant, such as two owners of a partition.
    """
    from rebalance_lab.api.commands.recommend_command import recommend_command

    if not recommend_command(
        scenario,
        now=now,
        strategies=strategies,
        seeds=seeds,
        weights=weights,
        brokers=brokers,
        html=html,
        jobs=jobs,
        as_json=as_json,
    ):
        raise typer.Exit(1)


def simulate(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help=SCENARIO),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", help="Such as classic/sticky; the scenario's own without it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="The same seed, the same run.")] = 1,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Stop there and look around: 12.5s or 2m30s."),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            "--show",
            metavar="WHAT",
            help="ownership, costs, events or cpu, also several; the first two without it, with --until ownership.",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Write every fact as JSON lines."),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a scenario and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run one strategy through a scenario once: who owns what at a moment, what happened, what it cost.

    Exit code 1 when the run breaks an invariant, such as two owners of a partition.
    """
    from rebalance_lab.api.commands.simulate_command import simulate_command

    if not simulate_command(
        scenario, strategy=strategy, seed=seed, until=until, show=show, trace=trace, schema=schema, as_json=as_json
    ):
        raise typer.Exit(1)


def size(
    target: Annotated[str, typer.Option("--target", metavar="RATE", help="What comes in: 5k/s or 50MB/s.")],
    per_consumer: Annotated[str, typer.Option("--per-consumer", metavar="RATE", help="What one consumer does.")],
    per_partition: Annotated[
        str | None,
        typer.Option("--per-partition", metavar="RATE", help="What producers can write to one partition."),
    ] = None,
    record_size: Annotated[
        str | None,
        typer.Option("--record-size", metavar="SIZE", help="Such as 1kB: rates of records and of bytes can be mixed."),
    ] = None,
    growth: Annotated[
        str, typer.Option("--growth", metavar="SHARE", help="More each year: 30%; with --horizon.")
    ] = "0%",
    horizon: Annotated[str, typer.Option("--horizon", metavar="TIME", help="It grows for 2y, 18mo or 90d.")] = "0y",
    headroom: Annotated[str, typer.Option("--headroom", metavar="SHARE", help="On top of the demand: 20%.")] = "20%",
    outage: Annotated[str, typer.Option("--outage", metavar="TIME", help="To catch up after: 30m.")] = "0s",
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", metavar="N", help="Those there are."),
    ] = None,
    consumers: Annotated[
        int | None,
        typer.Option("--consumers", metavar="N", help="Those there are."),
    ] = None,
    brokers: Annotated[
        int | None,
        typer.Option("--brokers", metavar="N", help="Those there are."),
    ] = None,
    replication: Annotated[int, typer.Option("--replication", metavar="N", help="Replicas of a partition.")] = 3,
    broker_limit: Annotated[int, typer.Option("--broker-limit", metavar="N", help="Replicas on a broker.")] = 4_000,
    strategies: SizeStrategies = SIZE_STRATEGIES,
    deploys: Annotated[int, typer.Option("--deploys", metavar="N", help="Each day; 0 leaves their cost out.")] = 1,
    downtime: Annotated[str, typer.Option("--downtime", metavar="TIME", help="Of a consumer in a deploy.")] = "10s",
    as_json: AsJson = False,
) -> None:
    """Say how many partitions and consumers a throughput needs, now and in some years, and what a deploy of them costs.

    The deploy is simulated: how long partitions stand still, what waits meanwhile, and how soon that is caught up with.
    """
    from rebalance_lab.api.commands.size_command import size_command

    size_command(
        target=target,
        per_consumer=per_consumer,
        per_partition=per_partition,
        record_size=record_size,
        growth=growth,
        horizon=horizon,
        headroom=headroom,
        outage=outage,
        partitions=partitions,
        consumers=consumers,
        brokers=brokers,
        replication=replication,
        broker_limit=broker_limit,
        strategies=strategies,
        deploys=deploys,
        downtime=downtime,
        as_json=as_json,
    )

"""The command `rebalance-lab`: its options, its errors, its exit codes.

0 good, 1 the answer is no (a counterexample, a broken invariant), 2 bad input with one clear line on stderr.
Bodies live in api/commands/ and are imported when called: starting `assign` must not cost what `sweep` needs.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Optional, cast

import typer
import typer.core

from api.group_cli import group_app
from api.live_cli import fidelity, live
from api.terminal import BadInput

UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])
"""Typer keeps click's class to itself; a wrong option should be one line like any other bad input."""

EXTRA_OF = {
    "confluent_kafka": "kafka",
    "kio": "kafka",
    "platformdirs": "kafka",
    "docker": "containers",
    "testcontainers": "containers",
    "pyspark": "spark",
    "pyarrow": "spark",
    "fastapi": "api",
    "uvicorn": "api",
    "httpx": "api",
    "prometheus_client": "api",
    "hypothesis": "testing",
    "pytest": "testing",
}
"""Which extra brings a module that the light base does not have."""

app = typer.Typer(
    name="rebalance-lab",
    help="A wind tunnel for Kafka consumer groups: what an assignor, a protocol and a deploy cost, before production.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
broker_app = typer.Typer(help="Real Kafka clusters on tap.", no_args_is_help=True)
app.add_typer(broker_app, name="broker")
app.add_typer(group_app, name="group")
app.command()(live)
app.command()(fidelity)


class RunByDefault(typer.core.TyperGroup):
    """`sweep SWEEP.yaml` is `sweep run SWEEP.yaml`: what is no command is the file of the usual one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] != "--help" and args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


sweep_app = typer.Typer(
    help="Runs by the thousand, with Spark: `sweep SWEEP.yaml --out DIR` is short for `sweep run`.",
    cls=RunByDefault,
    no_args_is_help=True,
)
app.add_typer(sweep_app, name="sweep")

InputFile = Annotated[str, typer.Argument(metavar="[FILE|-]", help="A JSON file, or - for standard input.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Strategies = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--strategies", metavar="A,B,C", help="Which to compare; seven usual ones without it."),
]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", help="Runs of each strategy, with the same N seeds.")]
WeightsText = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--weights",
        metavar="NAME=X,...",
        help="What costs how much, over the usual weights: 1 is one partition standing still for one second.",
    ),
]
Html = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--html", metavar="FILE", help="Write the report as one web page that needs nothing else."),
]
Jobs = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--jobs", metavar="N", help="Processes to use; all cores without it."),
]


@app.callback(invoke_without_command=True)
def version(
    ctx: typer.Context,
    show: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if show:
        from importlib.metadata import version as installed

        typer.echo(f"rebalance-lab {installed('rebalance-lab')}")
        raise typer.Exit


@app.command()
def assign(
    file: InputFile = "-",
    strategy: Annotated[
        Optional[str],  # noqa: UP045 - typer reads this at run time
        typer.Option("--strategy", "-s", help="Such as classic/sticky; wins over the request's own."),
    ] = None,
    as_json: AsJson = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say in words why each partition went there.")] = False,
    optimum: Annotated[bool, typer.Option("--optimum", help="Compute the exact optimum and the gap to it.")] = False,
    diff: Annotated[
        Optional[tuple[str, str]],  # noqa: UP045
        typer.Option("--diff", metavar="A B", help="Two strategies side by side."),
    ] = None,
) -> None:
    """Assign a group's partitions exactly as Kafka would.

    The input is {"strategy": ..., "group": ...}, a bare group, or {"requests": [...]} for many at once.
    """
    from api.commands.assign import assign_command

    assign_command(file, strategy, as_json=as_json, explain=explain, optimum=optimum, diff=diff)


@app.command()
def compare(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="YAML or JSON, - for standard input; or a group, or saved runs.")
    ],
    strategies: Strategies = None,
    seeds: Seeds = 20,
    weights: WeightsText = None,
    html: Html = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Run every strategy through the same scenario with the same seeds, and rank what they cost.

    What --json prints can be given back instead of a scenario: its runs are ranked by other --weights at once.
    """
    from api.commands.compare import compare_command

    if not compare_command(
        scenario, strategies=strategies, seeds=seeds, weights=weights, html=html, jobs=jobs, as_json=as_json
    ):
        raise typer.Exit(1)


@app.command()
def simulate(
    scenario: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(metavar="SCENARIO", help="YAML or JSON, or - for standard input."),
    ] = None,
    strategy: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--strategy", "-s", help="Such as classic/sticky; the scenario's own without it."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="The same seed, the same run.")] = 1,
    until: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--until", metavar="TIME", help="Stop there and look around: 12.5s or 2m30s."),
    ] = None,
    show: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--show", metavar="WHAT", help="ownership, costs or events; may be given several times."),
    ] = None,
    trace: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--trace", metavar="FILE", help="Write every fact as JSON lines."),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a scenario and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run one strategy through a scenario once: who owns what at a moment, what happened, what it cost."""
    from api.commands.simulate import simulate_command

    if not simulate_command(
        scenario, strategy=strategy, seed=seed, until=until, show=show, trace=trace, schema=schema, as_json=as_json
    ):
        raise typer.Exit(1)


@app.command()
def recommend(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO|GROUP", help="A scenario, a saved comparison, or a group as in assign.")
    ],
    now: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--from", metavar="STRATEGY", help="What runs now; wins over the scenario's own."),
    ] = None,
    strategies: Strategies = None,
    seeds: Seeds = 20,
    weights: WeightsText = None,
    brokers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--brokers", metavar="N", help="How many there are: then fetch session slots are checked too."),
    ] = None,
    html: Html = None,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Say which strategy to take, why, how sure that is, what to paste and how to get there from what runs now."""
    from api.commands.recommend import recommend_command

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


@broker_app.command("up")
def broker_up(
    provider: Annotated[
        str, typer.Option("--provider", help="auto, testcontainers, jvm, external or mock.", metavar="NAME")
    ] = "auto",
    nodes: Annotated[int, typer.Option("--nodes", help="1 or 3.")] = 1,
    kafka_version: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--kafka-version", help="Such as 4.3.1."),
    ] = None,
    port: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--port", help="The first node's port; the others follow. Free ports are chosen without it."),
    ] = None,
    bootstrap: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--bootstrap", help="For the provider external: the address of a cluster that runs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a Kafka cluster until Ctrl-C and print its bootstrap address. Nothing is left behind."""
    from api.commands.broker import broker_up_command

    broker_up_command(provider, nodes, kafka_version, port, bootstrap, as_json=as_json)


Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="local[*], local-cluster[2,1,1024], spark://host:7077, ...")
]
SparkLog = Annotated[bool, typer.Option("--spark-log", help="Show what Spark itself has to say.")]


@sweep_app.command("run")
def sweep_run(
    file: Annotated[str, typer.Argument(metavar="SWEEP", help="YAML or JSON: a scenario and what to vary in it.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="A folder, or any URL that Hadoop can write to.")],
    master: Master = "local[*]",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what DIR holds: only what is missing.")] = False,
    spark_log: SparkLog = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario in all its variations with every strategy and seed, and publish which strategy wins where.

    DIR then holds every run as Parquet, and decision_table.json. Exit code 1 when a run failed: it is told how to
    replay it, and the others are kept.
    """
    from api.commands.sweep import sweep_command

    if not sweep_command(file, out, master=master, resume=resume, spark_log=spark_log, as_json=as_json):
        raise typer.Exit(1)


@sweep_app.command("report")
def sweep_report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A sweep's folder, or a decision_table.json.")],
    html: Annotated[bool, typer.Option("--html", help="Write one web page that needs nothing else.")] = False,
    to: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--to", metavar="FILE", help="Where to write it; DIR/report.html without it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a sweep found: which strategy wins where, by how much, and what decides it."""
    from api.commands.sweep import report_command

    report_command(folder, html=html, to=to, as_json=as_json)


@sweep_app.command("ingest")
def sweep_ingest(
    sources: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="SOURCE",
            help="Files or folders: snapshots (.json), membership logs (.jsonl, .csv, .parquet) with time, group, "
            "member and event.",
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="A new folder.")] = "recorded",
    bootstrap: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--bootstrap", metavar="ADDRESS", help="A cluster whose __consumer_offsets is read as well."),
    ] = None,
    master: Master = "local[*]",
    spark_log: SparkLog = False,
    as_json: AsJson = False,
) -> None:
    """Turn what happened to real groups into scenarios, and a sweep that replays them under every strategy.

    Lines that make no sense are counted and set aside in DIR/set_aside, with the reason.
    """
    from api.commands.sweep import ingest_command

    ingest_command(sources or [], out, bootstrap=bootstrap, master=master, spark_log=spark_log, as_json=as_json)


@app.command()
def play(file: InputFile = "-", as_json: AsJson = False) -> None:
    """Play a timed list of requests to a coordinator and show what it answers, and when.

    The input is a sequence, {"protocol": "classic", "steps": [...]}, or {"sequences": [...]} for many at once.
    """
    from api.commands.play import play_command

    play_command(file, as_json=as_json)


@app.command()
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
        Optional[str],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Write the recording there; `play` takes it."),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for a broker.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Send a sequence to a real broker at its times, record what it answers, and compare that with our coordinator.

    Groups get fresh names there, and topics that are missing are created for as long as it takes. The exit code is 1
    where our coordinator answers otherwise.
    """
    from api.commands.record import record_command

    if not record_command(file, bootstrap=bootstrap, output=output, timeout_s=timeout, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def check(
    assignor: Annotated[
        str,
        typer.Argument(
            metavar="ASSIGNOR",
            help="package.module:Class, a strategy such as classic/sticky, kafka-python:MODULE:CLASS, "
            "aiokafka:MODULE:CLASS, java:CLASSPATH:CLASS, or 'command:PROGRAM --ARGS'.",
        ),
    ],
    examples: Annotated[int, typer.Option("--examples", metavar="N", help="How many groups to try.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Which groups: the same seed, the same ones.")] = 0,
    promise: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--promise", metavar="PROMISE", help="Hold it to this too; may be given several times."),
    ] = None,
    replay: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--replay", metavar="JSON|FILE|-", help="One counterexample again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Property-test an assignor: a report card, and for what is broken the smallest group that shows it.

    Exit code 0 when everything it promises holds, 1 when not, 2 when it could not be loaded.
    """
    from api.commands.check import check_command

    if not check_command(
        assignor, examples=examples, seed=seed, promises=promise or (), replay=replay, as_json=as_json
    ):
        raise typer.Exit(1)


@app.command()
def size(
    target: Annotated[str, typer.Option("--target", metavar="RATE", help="What comes in: 5k/s or 50MB/s.")],
    per_consumer: Annotated[str, typer.Option("--per-consumer", metavar="RATE", help="What one consumer does.")],
    per_partition: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--per-partition", metavar="RATE", help="What producers can write to one partition."),
    ] = None,
    record_size: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--record-size", metavar="SIZE", help="Such as 1kB: rates of records and of bytes can be mixed."),
    ] = None,
    growth: Annotated[str, typer.Option("--growth", metavar="SHARE", help="More each year: 30%.")] = "0%",
    horizon: Annotated[str, typer.Option("--horizon", metavar="TIME", help="2y, 18mo or 90d.")] = "0y",
    headroom: Annotated[str, typer.Option("--headroom", metavar="SHARE", help="To plan on top of the demand.")] = "20%",
    outage: Annotated[str, typer.Option("--outage", metavar="TIME", help="To catch up after: 30m.")] = "0s",
    partitions: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--partitions", metavar="N", help="Those there are."),
    ] = None,
    consumers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--consumers", metavar="N", help="Those there are."),
    ] = None,
    brokers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--brokers", metavar="N", help="Those there are."),
    ] = None,
    replication: Annotated[int, typer.Option("--replication", metavar="N", help="Replicas of a partition.")] = 3,
    broker_limit: Annotated[int, typer.Option("--broker-limit", metavar="N", help="Replicas on a broker.")] = 4_000,
    as_json: AsJson = False,
) -> None:
    """Say how many partitions and consumers a throughput needs, now and in some years."""
    from api.commands.size import size_command

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
        as_json=as_json,
    )


@app.command()
def serve(
    config: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--config", metavar="FILE", help="Settings as TOML: address, limits, tokens, clusters."),
    ] = None,
    host: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1 without it."),
    ] = None,
    port: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--port", metavar="N", min=0, max=65535, help="8000 without it; 0 takes a free one."),
    ] = None,
    workers: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--workers", metavar="N", min=1, max=512, help="Processes for quick work; all cores without it."),
    ] = None,
    cluster: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--cluster", metavar="NAME=HOST:PORT", help="A Kafka cluster that requests may name; repeatable."),
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Listen on a reachable address without tokens.")
    ] = False,
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
    ] = "info",
    new_token: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--new-token", metavar="NAME", help="Print a new token and its lines for --config, and stop."),
    ] = None,
) -> None:
    """Answer over HTTP until Ctrl-C: the page at /, what the paths take at /openapi.json.

    Prints its address when it listens; logs are JSON lines on standard error. An address other than this machine's own
    needs tokens (--new-token), or --allow-anonymous. Flags win over the file of --config.
    """
    from api.commands.serve import serve_command

    serve_command(
        config=config,
        host=host,
        port=port,
        workers=workers,
        clusters=cluster or (),
        allow_anonymous=allow_anonymous,
        log_level=log_level,
        new_token=new_token,
    )


def main() -> None:
    """The console script. Whatever a user can cause ends as one line; only our own bugs end in a traceback."""
    from assignors.interface import AssignorError
    from assignors.json_contract import ContractError

    # A custom assignor lies where the user is.
    sys.path.insert(0, os.getcwd())
    try:
        sys.exit(app(standalone_mode=False))
    except typer.Abort:
        sys.exit(130)
    except UsageError as error:
        fail(error.format_message() or "name a command; --help lists them")
    except (BadInput, ContractError) as error:
        fail(str(error))
    except AssignorError as error:
        fail(f"{error.path}: {error}")
    except ModuleNotFoundError as error:
        extra = EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        fail(f"{error.name} is not installed: pip install 'rebalance-lab[{extra}]'")
    except BrokenPipeError:  # `rebalance-lab ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str) -> None:
    sys.stderr.write("rebalance-lab: " + " ".join(message.split()) + "\n")
    raise SystemExit(2)


if __name__ == "__main__":
    main()

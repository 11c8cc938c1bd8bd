"""The options of `sweep`: runs by the thousand."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import typer.core

from rebalance_lab.api.options.shared_options import AsJson


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
    from rebalance_lab.api.commands.sweep_command import sweep_command

    if not sweep_command(file, out, master=master, resume=resume, spark_log=spark_log, as_json=as_json):
        raise typer.Exit(1)


@sweep_app.command("report")
def sweep_report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A sweep's folder, or a decision_table.json.")],
    html: Annotated[bool, typer.Option("--html", help="Write one web page that needs nothing else.")] = False,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="FILE", help="Where to write it; DIR/report.html without it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a sweep found: which strategy wins where, by how much, and what decides it."""
    from rebalance_lab.api.commands.sweep_command import report_command

    report_command(folder, html=html, to=to, as_json=as_json)


@sweep_app.command("ingest")
def sweep_ingest(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Files or folders: snapshots (.json), membership logs (.jsonl, .csv, .parquet) with time, group, "
            "member and event.",
        ),
    ] = None,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="A new folder.")] = "recorded",
    bootstrap: Annotated[
        str | None,
        typer.Option("--bootstrap", metavar="ADDRESS", help="A cluster whose __consumer_offsets is read as well."),
    ] = None,
    master: Master = "local[*]",
    spark_log: SparkLog = False,
    as_json: AsJson = False,
) -> None:
    """Turn what happened to real groups into scenarios, and a sweep that replays them under every strategy.

    Lines that make no sense are counted and set aside in DIR/set_aside, with the reason.
    """
    from rebalance_lab.api.commands.sweep_command import ingest_command

    ingest_command(sources or [], out, bootstrap=bootstrap, master=master, spark_log=spark_log, as_json=as_json)

"""The options of `assign` and `check`: assignors, asked and tested."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.api.options.shared_options import AsJson, InputFile


def assign(
    file: InputFile = "-",
    strategy: Annotated[
        str | None,
        typer.Option("--strategy", "-s", help="Such as classic/sticky; wins over the request's own."),
    ] = None,
    as_json: AsJson = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say in words why each partition went there.")] = False,
    optimum: Annotated[bool, typer.Option("--optimum", help="Compute the exact optimum and the gap to it.")] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="Two strategies side by side."),
    ] = None,
) -> None:
    """Assign a group's partitions exactly as Kafka would.

    The input is {"strategy": ..., "group": ...}, a bare group, or {"requests": [...]} for many at once.
    """
    from rebalance_lab.api.commands.assign_command import assign_command

    assign_command(file, strategy, as_json=as_json, explain=explain, optimum=optimum, diff=diff)


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
        list[str] | None,
        typer.Option("--promise", metavar="PROMISE", help="Hold it to this too; may be given several times."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="JSON|FILE|-", help="One counterexample again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Property-test an assignor: a report card, and for what is broken the smallest group that shows it.

    Exit code 0 when everything it promises holds, 1 when not, 2 when it could not be loaded.
    """
    from rebalance_lab.api.commands.check_command import check_command

    if not check_command(
        assignor, examples=examples, seed=seed, promises=promise or (), replay=replay, as_json=as_json
    ):
        raise typer.Exit(1)

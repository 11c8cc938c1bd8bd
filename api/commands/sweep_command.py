"""Run `rebalance-lab sweep`: runs by the thousand, and what they show."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from rebalance_lab.api.terminal import check_place, console, headline, print_json, progress_bar, read_input, write_file

if TYPE_CHECKING:
    from rebalance_lab.spark_eval.sweep import Outcome

TABLE = "decision_table.json"
MOST_LINES = 5
"""Of failed runs, in full."""


def sweep_command(file: str, out: str, *, master: str, resume: bool, spark_log: bool, as_json: bool) -> bool:
    """Run a sweep, and return True when no run failed."""
    from rebalance_lab.spark_eval.cells import cells_of
    from rebalance_lab.spark_eval.sweep_file import load_sweep

    sweep = load_sweep(file)
    total = len(cells_of(sweep)) * len(sweep.strategies) * len(sweep.seeds)  # what is wrong is told before Spark starts

    from rebalance_lab.spark_eval.folder import Folder
    from rebalance_lab.spark_eval.session import open_session
    from rebalance_lab.spark_eval.sweep import run_sweep

    done = 0
    try:
        with progress_bar("runs", total) as tell, open_session(master, noisy=spark_log) as spark:

            def progress(runs: int) -> None:
                nonlocal done
                done = runs
                if tell is not None:
                    tell(runs)

            outcome = run_sweep(spark, sweep, Folder(spark, out), resume=resume, progress=progress)
    except KeyboardInterrupt:
        again = shlex.join(["rebalance-lab", "sweep", file, "--out", out, "--master", master, "--resume"])
        sys.stderr.write(f"\nrebalance-lab: stopped after {done:,} of {total:,} runs; to go on: {again}\n")
        raise typer.Exit(130) from None
    if as_json:
        print_json(outcome.to_json())
    else:
        show(outcome, sweep.name, out)
    return outcome.failures == 0


def report_command(folder: str, *, html: bool, to: str | None, as_json: bool) -> None:
    from rebalance_lab.harness.evaluate.recommend.decision_table import read_table

    text = table_text(folder)
    table = read_table(text, folder)
    if as_json:
        sys.stdout.write(text)
        return
    say = console().print
    say(headline(table.data["name"], f": {table.data['provenance']['runs']:,} runs"))
    say(winners_table(table.data))
    if html or to is not None:
        from rebalance_lab.spark_eval.report.sweep_page import table_page

        file = to or os.path.join(os.path.dirname(folder) if folder.endswith(".json") else folder, "report.html")
        check_place(file)
        write_file(file, table_page(table, command=shlex.join(["rebalance-lab", "sweep", "report", folder, "--html"])))
        say(f"written: {file}", soft_wrap=True)


def table_text(folder: str) -> str:
    """Read the table from a disk, or through Hadoop where it is a URL."""
    file = folder if folder.endswith(".json") else os.path.join(folder, TABLE)
    if "://" not in folder:
        return read_input(file).decode("utf-8", "replace")
    from rebalance_lab.spark_eval.folder import Folder
    from rebalance_lab.spark_eval.session import open_session

    with open_session("local[1]") as spark:
        return Folder(spark, folder).read_text(TABLE)


def ingest_command(
    sources: list[str], out: str, *, bootstrap: str | None, master: str, spark_log: bool, as_json: bool
) -> None:
    from dataclasses import asdict

    from rebalance_lab.spark_eval.folder import Folder
    from rebalance_lab.spark_eval.ingest.ingest import SET_ASIDE, ingest
    from rebalance_lab.spark_eval.session import open_session

    with open_session(master, noisy=spark_log) as spark:
        found = ingest(spark, sources, Folder(spark, out), bootstrap=bootstrap)
    if as_json:
        print_json(asdict(found))
        return
    say = console().print
    say(f"{len(found.groups):,} groups, {found.events:,} events")
    if found.set_aside:
        say(f"{found.set_aside:,} lines make no sense: {os.path.join(out, SET_ASIDE)}", style="yellow")
    for line in found.passed_over:
        say(f"passed over: {line}", style="yellow", soft_wrap=True)
    if found.groups:
        again = shlex.join(["rebalance-lab", "sweep", os.path.join(out, "sweep.yaml"), "--out", f"{out}-runs"])
        say(f"to replay them: {again}", soft_wrap=True)


def show(outcome: Outcome, name: str, out: str) -> None:
    say = console().print
    table = outcome.table
    counted = table["provenance"]
    speed = f", {outcome.new / outcome.seconds:,.0f} a second" if outcome.new else ""
    say(headline(name, f": {outcome.runs:,} runs, {outcome.new:,} of them new{speed}"))
    say(f"{counted['cells']:,} cells, {len(table['strategies'])} strategies, {counted['seeds']['count']} seeds each")
    say(winners_table(table))
    for run in outcome.failed[:MOST_LINES]:
        say(f"failed: run {run.run_id}, seed {run.seed}: {run.error}", style="red", soft_wrap=True)
        say(f"  again: cd {shlex.quote(out)} && {run.replay}", soft_wrap=True)
    if outcome.failures > MOST_LINES:
        say(f"... and {outcome.failures - MOST_LINES:,} more: rows of {out}/runs with an error")
    say(f"written: {os.path.join(out, TABLE)}", soft_wrap=True)


def winners_table(table: Mapping[str, Any]) -> Any:
    """Count how many cells each strategy wins, and how many of them clearly."""
    from rich.table import Table

    won = Counter(cell["winner"] for cell in table["cells"])
    clear = Counter(cell["winner"] for cell in table["cells"] if cell["margin"] and cell["margin"][1] > 0)
    shown = Table("strategy", box=None, header_style="dim", pad_edge=False)
    for title in ("cells won", "clearly"):
        shown.add_column(title, justify="right")
    for strategy in sorted(table["strategies"], key=lambda one: -won[one]):
        shown.add_row(strategy, f"{won[strategy]:,}", f"{clear[strategy]:,}")
    return shown

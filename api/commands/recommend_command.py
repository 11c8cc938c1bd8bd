"""Run `rebalance-lab recommend`: advice from a comparison, with settings to paste and steps to migrate."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from rebalance_lab.api.answers.recommend_answer import AdviceAsked, advise
from rebalance_lab.api.commands.compare_command import (
    command_line,
    put_user_notes_aside,
    run_comparison,
    seeds_for,
    trouble,
    write_report,
)
from rebalance_lab.api.commands.interruption import exit_if_partial
from rebalance_lab.api.terminal import aside, check_place, console, harmless, print_json, read_input

if TYPE_CHECKING:
    from rich.console import Console

    from rebalance_lab.harness.evaluate.comparison import Comparison
    from rebalance_lab.harness.evaluate.recommend.advice import Advice
    from rebalance_lab.harness.evaluate.recommend.decision_table import Cell
    from rebalance_lab.harness.evaluate.recommend.evidence import Evidence


def recommend_command(
    file: str,
    *,
    now: str | None,
    strategies: str | None,
    seeds: int | None,
    weights: str | None,
    brokers: int | None,
    html: str | None,
    jobs: int | None,
    as_json: bool,
) -> bool:
    """Recommend a strategy, and return True when every run got through."""
    from rebalance_lab.harness.evaluate.recommend.advice import NothingSound
    from rebalance_lab.harness.scenario.documents import decode_document

    check_place(html, file)
    data = decode_document(read_input(file))
    asked = AdviceAsked(now=now, strategies=strategies, seeds=seeds_for(data, seeds), weights=weights, brokers=brokers)
    asked_now = {"from": now, "strategies": strategies, "seeds": seeds, "weights": weights, "brokers": brokers}
    command = command_line("recommend", file, **asked_now, html=html)
    try:
        with aside():
            advised = advise(data, asked, partial(run_comparison, jobs=jobs))
    except NothingSound as nothing:
        sys.stderr.write(f"broken: {nothing.message}\n")
        if html is not None:
            write_report(nothing.comparison, html, command=command, jobs=jobs)
        show_trouble(nothing.comparison, file)
        exit_if_partial(nothing.comparison)
        return False
    advice, sure, notes, comparison = advised.advice, advised.sureness, advised.notes, advised.comparison
    if html is not None:
        from rebalance_lab.harness.evaluate.report.advice_section import advice_html

        write_report(comparison, html, command=command, jobs=jobs, advice=advice_html(advice, sure, notes))
    if as_json:
        print_json(advised.to_json())
    else:
        show(advice, sure, notes, advised.evidence)
        if html is not None:
            console().print(f"written: {html}")
    show_trouble(comparison, file)
    exit_if_partial(comparison)
    return not comparison.broken


def show_trouble(comparison: Comparison, file: str) -> None:
    """Show what exit code 1 stands for, beside the answer, which may be JSON."""
    put_user_notes_aside(comparison)
    if comparison.broken:
        sys.stderr.writelines(f"{harmless(told)}\n" for told in trouble(comparison, file))


def show(advice: Advice, sure: str, notes: list[str], evidence: Evidence | None) -> None:
    from rebalance_lab.harness.evaluate.recommend.properties_to_paste import as_lines

    out = console()
    line(out, advice.summary, "bold")
    line(out, f"{advice.verdict.capitalize()}: {sure}")
    for note in notes:
        line(out, f"note: {note}", "yellow")
    if advice.reasons:
        heading(out, "Why")
        for reason in advice.reasons:
            line(out, f"- {reason}")
    if evidence is not None:
        heading(out, "Evidence")
        for told in (evidence.summary, *map(cell_text, evidence.near)):
            line(out, f"- {told}")
    if advice.cautions:
        heading(out, "Know before")
        for caution in advice.cautions:
            line(out, f"- {caution}", "yellow")
    paste = advice.properties
    for title, settings in (
        ("Java clients", paste.java),
        ("librdkafka clients", paste.librdkafka),
        ("Brokers", paste.broker),
    ):
        if settings:
            heading(out, title)
            line(out, as_lines(settings))
    for note in paste.notes:
        line(out, f"- {note}", "dim")
    if advice.steps:
        heading(out, f"From {advice.now} to {advice.strategy}" if advice.now else "To get there")
        for number, step in enumerate(advice.steps, start=1):
            line(out, f"{number}. {step.do}")
            if step.why:
                line(out, f"   {step.why}", "dim")


def cell_text(near: tuple[Cell, float]) -> str:
    from rebalance_lab.harness.measure.cost_descriptions import number

    cell, _ = near
    values = ", ".join(f"{name} {value}" for name, value in cell.parameters.items())
    if cell.winner is None:
        return f"{values}: nobody got through all of {cell.runs:,} runs"
    by = f", {cell.data['next']} costs {number(cell.data['margin'][0])} more" if cell.data["margin"] else ""
    return f"{values}: {cell.winner} is best in {cell.of(cell.winner)['wins']:.0%} of the seeds, {cell.runs:,} runs{by}"


def heading(out: Console, text: str) -> None:
    out.print()
    line(out, text, "bold")


def line(out: Console, text: str, style: str = "") -> None:
    """Print a line as written: names may hold brackets, and properties must not be wrapped."""
    out.print(text, style=style, soft_wrap=True)

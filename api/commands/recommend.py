"""`rebalance-lab recommend`: a comparison turned into an answer, with what to paste and how to get there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from api.commands.compare import command_line, run_comparison
from api.terminal import check_place, console, print_json, progress_bar, read_input, write_file
from assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rich.console import Console

    from harness.compare import Comparison
    from harness.recommend.advice import Advice
    from harness.scenario.model import Scenario


def recommend_command(
    file: str,
    *,
    now: str | None,
    strategies: str | None,
    seeds: int,
    weights: str | None,
    brokers: int | None,
    html: str | None,
    jobs: int | None,
    as_json: bool,
) -> bool:
    """True when every run got through."""
    from harness.recommend.advice import recommend, sureness
    from harness.recommend.cautions import fetch_session_caution
    from harness.scenario.strategy_lists import normal_strategy

    check_place(html)
    now = now and normal_strategy(now, "--from")
    if brokers is not None and not 1 <= brokers <= 10_000:
        raise ContractError("--brokers", f"must be between 1 and 10,000, got {brokers}")
    comparison, notes = comparison_for(file, now=now, strategies=strategies, seeds=seeds, weights=weights, jobs=jobs)
    advice = recommend(comparison, now=now)
    if brokers is not None:
        slots = fetch_session_caution(comparison.scenario, brokers, advice.strategy)
        advice = replace(advice, cautions=(*advice.cautions, *([slots] if slots else [])))
    sure = sureness(advice, comparison)
    if html is not None:
        from harness.report.advice import advice_html
        from harness.report.page import report_page

        command = command_line("recommend", file, strategies=strategies, seeds=seeds, weights=weights, html=html)
        with progress_bar("drawing", len(comparison.strategies)) as progress:
            shown = advice_html(advice, sure, notes)
            write_file(html, report_page(comparison, command=command, advice=shown, jobs=jobs, progress=progress))
    if as_json:
        print_json({**advice.to_json(), "sureness": sure, "notes": notes, "comparison": comparison.to_json()})
    else:
        show(advice, sure, notes)
        if html is not None:
            console().print(f"written: {html}", markup=False)
    return not comparison.broken


def comparison_for(
    file: str, *, now: str | None, strategies: str | None, seeds: int, weights: str | None, jobs: int | None
) -> tuple[Comparison, list[str]]:
    """From a scenario, a saved comparison, or a group of which only the present is known."""
    from harness.saved_runs import is_comparison, read_comparison
    from harness.scenario.documents import decode_document
    from harness.weights import parse_weights

    chosen = parse_weights(weights)
    data = decode_document(read_input(file))
    if is_comparison(data):
        if strategies is not None:
            raise ContractError("--strategies", "a saved comparison has its own; name a scenario to run others")
        saved = read_comparison(data)
        return (saved if weights is None else saved.weighted(chosen)), list(saved.notes)
    scenario, assumed = scenario_from(data, now)
    comparison = run_comparison(scenario, strategies=strategies, seeds=seeds, weights=chosen, jobs=jobs)
    return comparison, [*comparison.notes, *assumed]


def scenario_from(data: Any, now: str | None) -> tuple[Scenario, list[str]]:
    from assignors.json_contract import group_from_json, parse_request
    from harness.recommend.group_life import ASSUMED, life_of_group
    from harness.scenario.reading import parse_scenario

    if not isinstance(data, Mapping) or "duration" in data or not {"group", "members"} & data.keys():
        scenario = parse_scenario(data)
        return (scenario if now is None else replace(scenario, strategy=now)), []
    if "group" in data:
        named, group = parse_request(data)
    else:
        named, group = None, group_from_json(data)
    return life_of_group(group, strategy=now or named), [ASSUMED]


def show(advice: Advice, sure: str, notes: list[str]) -> None:
    from harness.recommend.properties import as_lines

    out = console()
    line(out, advice.summary, "bold")
    line(out, f"{advice.verdict.capitalize()}: {sure}")
    for note in notes:
        line(out, f"note: {note}", "yellow")
    if advice.reasons:
        heading(out, "Why")
        for reason in advice.reasons:
            line(out, f"- {reason}")
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


def heading(out: Console, text: str) -> None:
    out.print()
    line(out, text, "bold")


def line(out: Console, text: str, style: str = "") -> None:
    """As written: names may hold brackets, and properties must not be wrapped."""
    out.print(text, style=style, markup=False, soft_wrap=True)

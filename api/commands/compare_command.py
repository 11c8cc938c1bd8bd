"""Run `rebalance-lab compare`: strategies on one scenario, as a table, as JSON, or as a web page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rebalance_lab.api.commands.interruption import exit_if_partial, sigterm_interrupts
from rebalance_lab.api.terminal import (
    aside,
    check_place,
    console,
    headline,
    print_json,
    progress_bar,
    put_aside,
    read_input,
    write_file,
)
from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rich.table import Table

    from rebalance_lab.harness.evaluate.comparison import Comparison, Ranked
    from rebalance_lab.harness.evaluate.intervals import Interval
    from rebalance_lab.harness.evaluate.runs import Sample
    from rebalance_lab.harness.scenario.model import Scenario

COLUMNS: Mapping[str, tuple[str, str]] = {
    "unowned_s": ("without\nan owner", "s"),
    "unowned_longest_s": ("longest\ngap", "s"),
    "stalled_s": ("owner\nstuck", "s"),
    "behind_s": ("behind", "s"),
    "moved": ("moved", ""),
    "needless_revocations": ("given up\nneedlessly", ""),
    "read_twice": ("read\ntwice", ""),
    "rebalances": ("rebal-\nances", ""),
}
"""The costs of the table, most telling first: on a narrow terminal the last are left out."""
SPREAD = "cost\n(low to high)"
WIDE = 120
"""From this width on differences have their intervals, too."""
USUAL_SEEDS = 20


def compare_command(
    file: str,
    *,
    strategies: str | None,
    seeds: int | None,
    weights: str | None,
    html: str | None,
    jobs: int | None,
    as_json: bool,
) -> bool:
    """Compare strategies, and return True when every run got through."""
    check_place(html, file)
    with aside():
        comparison = comparison_of(file, strategies=strategies, seeds=seeds, weights=weights, jobs=jobs)
    if html is not None:
        command = command_line("compare", file, strategies=strategies, seeds=seeds, weights=weights, html=html)
        write_report(comparison, html, command=command, jobs=jobs)
    put_user_notes_aside(comparison)
    if as_json:
        print_json(comparison.to_json())
    else:
        show(comparison, file)
        if html is not None:
            console().print(f"written: {html}")
    exit_if_partial(comparison)
    return not comparison.broken


def put_user_notes_aside(comparison: Comparison) -> None:
    """Show of each strategy what its first failing run raised and printed."""
    for samples in comparison.by_strategy.values():
        put_aside(next((one.notes for one in samples.values() if one.notes), ""))


def comparison_of(
    file: str, *, strategies: str | None, seeds: int | None, weights: str | None, jobs: int | None
) -> Comparison:
    """Run a scenario, read a saved comparison, or run the life assumed for a group."""
    from rebalance_lab.api.answers.recommend_answer import AdviceAsked, comparison_for
    from rebalance_lab.harness.scenario.documents import decode_document

    data = decode_document(read_input(file))
    asked = AdviceAsked(strategies=strategies, seeds=seeds_for(data, seeds), weights=weights)
    comparison, notes = comparison_for(data, None, asked, partial(run_comparison, jobs=jobs))
    return replace(comparison, notes=tuple(notes))


def seeds_for(data: object, asked: int | None) -> int:
    """Return the seeds. Saved runs have their own, so a user who asks for other seeds is refused."""
    from rebalance_lab.harness.evaluate.saved_runs import is_comparison

    if asked is not None and is_comparison(data):
        raise ContractError("--seeds", "a saved comparison has its own; name a scenario to run others")
    return USUAL_SEEDS if asked is None else asked


def run_comparison(
    scenario: Scenario, *, strategies: str | None, seeds: int, weights: Mapping[str, float], jobs: int | None
) -> Comparison:
    from rebalance_lab.harness.evaluate.comparison import (
        MOST_SEEDS,
        checked_strategies,
        compare,
        split_strategies,
        usual_strategies,
    )

    if not 1 <= seeds <= MOST_SEEDS:
        raise ContractError("--seeds", f"must be between 1 and {MOST_SEEDS:,}, got {seeds}")
    if jobs is not None and jobs < 1:
        raise ContractError("--jobs", f"must be at least 1, got {jobs}")
    chosen = None if strategies is None else checked_strategies(split_strategies(strategies))
    total = len(chosen or usual_strategies(scenario)[0]) * seeds
    asked = range(1, seeds + 1)
    with sigterm_interrupts(), progress_bar("runs", total) as progress:
        return compare(scenario, chosen, asked, weights=weights, jobs=jobs, progress=progress, keep_finished=True)


def write_report(comparison: Comparison, file: str, *, command: str, jobs: int | None, advice: str = "") -> None:
    from rebalance_lab.harness.evaluate.report.page import report_page

    with progress_bar("drawing", len(comparison.strategies)) as progress, aside():
        page = report_page(comparison, command=command, advice=advice, jobs=jobs, progress=progress)
    write_file(file, page)


def command_line(command: str, file: str, **options: object) -> str:
    """Return what was asked, as a user could type it again."""
    parts = ["rebalance-lab", command, file]
    for name, value in options.items():
        if value is not None:
            parts += [f"--{name}", str(value)]
    return shlex.join(parts)


def show(comparison: Comparison, file: str) -> None:
    from rebalance_lab.harness.measure.cost_weights import weights_text
    from rebalance_lab.harness.scenario.units import duration_text

    out = console()
    strategies, seeds = len(comparison.strategies), len(comparison.seeds)
    runs = (
        f"{strategies} {'strategy' if strategies == 1 else 'strategies'}, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    )
    runs += " each" if strategies > 1 else ""
    length = duration_text(comparison.scenario.duration_ms)
    out.print(headline(comparison.scenario.name, f", {length}: {runs}"), soft_wrap=True)
    for note in comparison.notes:
        out.print(f"note: {note}", style="yellow", soft_wrap=True)
    ranked = table(comparison, out.width)
    out.print(ranked)
    out.print(
        f"cost: 1 = one partition standing still for one second; {weights_text(comparison.weights)}",
        style="dim",
        soft_wrap=True,
    )
    if any(column.header == SPREAD for column in ranked.columns):
        out.print(f"(low to high) is {interval_words(comparison)}", style="dim", soft_wrap=True)
    for line in trouble(comparison, file):
        out.print(line, style="red", soft_wrap=True)


def interval_words(comparison: Comparison) -> str:
    from rebalance_lab.harness.evaluate.intervals import confidence_of

    if confidence_of(len(comparison.seeds)) < 0.95:
        seeds = "one seed, no range" if len(comparison.seeds) == 1 else f"the range of {len(comparison.seeds)} seeds"
        return f"{seeds}; six or more give a 95 % interval of the median"
    against = f"; differences are seed by seed against {comparison.reference}" if comparison.reference else ""
    return f"a 95 % interval of the median{against}"


def table(comparison: Comparison, width: int) -> Table:
    from rich import box
    from rich.table import Table

    ranking = comparison.ranking
    against = "now" if comparison.present == comparison.reference else "the best"
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    made.add_column("", justify="right", no_wrap=True, min_width=1)
    made.add_column("strategy", overflow="fold")
    first = first_columns(ranking, against, width)
    for title in first:
        made.add_column(title, justify="right", no_wrap=True)
    left = width - needed(ranking, first)
    names = []
    for name, (title, _) in COLUMNS.items():
        # A column that is 0 for every strategy says nothing.
        if not any(one.costs and one.costs[name].high for one in ranking):
            continue
        left -= 2 + max(map(len, [*title.split("\n"), *(cell(one, name) for one in ranking)]))
        if left < 0:
            break
        names.append(name)
        made.add_column(title, justify="right", no_wrap=True)
    for number, one in enumerate(ranking):
        rank = "-" if one.rank is None else str(one.rank)
        style = "red" if one.rank is None else "bold" if one.rank == 1 else ""
        made.add_row(
            rank,
            one.strategy,
            *(cells[number] for cells in first.values()),
            *(cell(one, name) for name in names),
            style=style,
        )
    return made


def first_columns(ranking: Sequence[Ranked], against: str, width: int) -> dict[str, list[str]]:
    """Return the cost, and further columns where there is room: half a figure would be another figure."""
    score = {SPREAD: [score_text(one) for one in ranking]}
    wide, narrow = (
        {**score, f"against\n{against}": [against_text(one, narrow) for one in ranking]} for narrow in (False, True)
    )
    for columns in (wide, narrow, score) if width >= WIDE else (narrow, score):
        if needed(ranking, columns) <= width:
            return columns
    return {"cost": [score_text(one, narrow=True) for one in ranking]}


def needed(ranking: Sequence[Ranked], columns: Mapping[str, Sequence[str]]) -> int:
    """Count the characters of a line with a rank, a strategy, and these, with one to spare."""
    strategy = ["strategy", *(one.strategy for one in ranking)]
    texts = [strategy, *([*title.split("\n"), *cells] for title, cells in columns.items())]
    return 6 + sum(2 + max(map(len, cells)) for cells in texts)


def score_text(one: Ranked, *, narrow: bool = False) -> str:
    if one.rank is None or one.score is None:
        return f"broken in {len(one.broken)}"
    return figure(one.score.median) if narrow else spread_text(one.score)


def against_text(one: Ranked, narrow: bool) -> str:
    if one.against is None:
        return ""
    return figure(one.against.median, signed=True) if narrow else spread_text(one.against, signed=True)


def spread_text(interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None:
        return ""
    shown = [figure(value, signed=signed) for value in (interval.median, interval.low, interval.high)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def cell(one: Ranked, name: str) -> str:
    return f"{figure(one.costs[name].median)} {COLUMNS[name][1]}".rstrip() if one.costs else ""


def figure(value: float, *, signed: bool = False) -> str:
    from rebalance_lab.harness.measure.cost_descriptions import number

    return ("+" if signed and value > 0 else "") + number(value)


def trouble(comparison: Comparison, file: str) -> list[str]:
    """List what went wrong, with the command that shows it again."""
    lines = []
    for one in comparison.ranking:
        if one.broken:
            first = one.broken[0]
            lines.append(f"{one.strategy}, seed {first.seed}: {first.broken}")
            lines.append(f"  again: {replay(file, first)}")
        if one.failed_processes:
            runs = sum(1 for run in comparison.by_strategy[one.strategy].values() if failed(run))
            lines.append(
                f"{one.strategy}: processes ended with an exception {one.failed_processes} times, in {runs} of "
                f"{len(comparison.seeds)} runs"
            )
    return lines


def failed(run: Sample) -> bool:
    return run.costs is not None and run.costs["failed_processes"] > 0


def replay(file: str, run: Sample) -> str:
    return command_line("simulate", file, strategy=run.strategy, seed=run.seed, show="events")

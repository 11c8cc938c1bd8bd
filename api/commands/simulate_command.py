"""Run `rebalance-lab simulate`: one run, with the owners at a moment, the events and the costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rebalance_lab.api.answers.simulate_answer import simulate_once
from rebalance_lab.api.terminal import (
    aside,
    check_place,
    console,
    print_json,
    progress_bar,
    read_input,
    share_text,
    write_file,
)
from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rebalance_lab.harness.evaluate.runs import Watched
    from rebalance_lab.harness.measure.ownership import Timelines
    from rebalance_lab.harness.measure.trace import Fact
    from rebalance_lab.harness.scenario.model import Scenario

VIEWS = ("ownership", "costs", "events", "cpu")
BAR_AFTER_S = 1.0
LANE = 72
"""Characters of a lane: each is one stretch of time."""
MOST_LANES = 40
DIGITS = "·123456789abcdefghijklmnopqrstuvwxyz"
PLAIN_MARKS = str.maketrans("·▼", ".V")
"""For terminals that are not UTF-8."""


def simulate_command(
    file: str | None,
    *,
    strategy: str | None,
    seed: int,
    until: str | None,
    show: Sequence[str] | None,
    trace: str | None,
    schema: bool,
    as_json: bool,
) -> bool:
    """Simulate a run, and return True when no invariant was broken."""
    if schema:
        from rebalance_lab.harness.scenario.forms.json_schema import schema_text

        sys.stdout.write(schema_text())
        return True
    if file is None:
        raise ContractError("SCENARIO", "is missing: name a file, or - for standard input")
    from rebalance_lab.harness.measure.trace import lines

    check_place(trace, file)
    views = checked_views(show)
    scenario, notes = read_scenario(file)
    with progress_bar(f"{scenario.name}, virtual seconds", scenario.duration_ms // 1_000) as progress, aside():
        done = simulate_once(scenario, strategy=strategy, seed=seed, until=until, watch=watcher(progress))
    run, drawn, chosen = done.run, done.drawn, done.strategy
    if trace is not None:
        write_file(trace, "".join(f"{line}\n" for line in lines(run.facts)))
    if as_json:
        print_json(done.to_json(views))
    else:
        for note in notes:
            console().print(f"note: {note}", style="yellow", soft_wrap=True)
        print_views(scenario, chosen, seed, run, drawn, views or (("ownership",) if until else ("costs", "ownership")))
    if run.broken is not None:
        from rebalance_lab.api.commands.compare_command import command_line

        again = command_line("simulate", file, strategy=chosen, seed=seed, until=f"{drawn.end_ms}ms", show="events")
        why = f"Kafka's own, perhaps: {run.known_violation}\n" if run.known_violation else ""
        sys.stderr.write(f"broken: {run.broken}, seed {seed}\n{why}again: {again}\n")
    return run.broken is None


def read_scenario(file: str) -> tuple[Scenario, Sequence[str]]:
    """Read whatever compare and recommend take, because the commands that they print for a broken run must work as they
    are.
    """
    from rebalance_lab.api.answers.recommend_answer import scenario_from
    from rebalance_lab.harness.evaluate.saved_runs import described, is_comparison
    from rebalance_lab.harness.scenario.documents import decode_document

    data = decode_document(read_input(file))
    return (described(data), ()) if is_comparison(data) else scenario_from(data)


def watcher(progress: Callable[[int], None] | None) -> Callable[[Fact], None] | None:
    """Make a progress bar for a run that takes long; most runs are over in a moment."""
    if progress is None:
        return None
    begins = time.monotonic() + BAR_AFTER_S

    def watch(fact: Fact) -> None:
        if fact["fact"] in ("lag", "end") and time.monotonic() > begins:
            progress(fact["t"] // 1_000)

    return watch


def checked_views(show: Sequence[str] | None) -> tuple[str, ...]:
    for one in show or ():
        if one not in VIEWS:
            raise ContractError("--show", f"expected {', '.join(VIEWS[:-1])} or {VIEWS[-1]}, got {one!r}")
    return tuple(dict.fromkeys(show or ()))


def print_views(
    scenario: Scenario, strategy: str, seed: int, run: Watched, drawn: Timelines, views: Sequence[str]
) -> None:
    out = console()
    out.print(f"{scenario.name}, {strategy}, seed {seed}, at {clock(drawn.end_ms)}", style="bold")
    for view in views:
        if view == "costs":
            print_costs(run)
        elif view == "ownership":
            print_lanes(drawn)
            print_ownership(drawn)
        elif view == "cpu":
            console().print(f"Leaders' assignments: {run.assignment_cpu_ms or 0:g} ms CPU here", markup=False)
        else:
            print_events(drawn)


def print_costs(run: Watched) -> None:
    from rich import box
    from rich.table import Table

    from rebalance_lab.harness.measure.cost_descriptions import COST_DESCRIPTIONS

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column("cost")
    table.add_column("figure", justify="right")
    for name, value in run.costs.row().items():
        table.add_row(COST_DESCRIPTIONS[name].title, COST_DESCRIPTIONS[name].figure(value))
    if run.assignment_cpu_ms:
        table.add_row("Leaders' assignments", f"{run.assignment_cpu_ms:g} ms CPU here")
    console().print(table)


def print_ownership(drawn: Timelines) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("member", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column(f"reads at {clock(drawn.end_ms)}", overflow="fold")
    for member, share in drawn.owners_at(drawn.end_ms).items():
        what = drawn.what_at(member, drawn.end_ms)
        table.add_row(member, "" if what == "running" else what or "gone", share_text(share) or "-")
    unowned = drawn.unowned_at(drawn.end_ms)
    if unowned:
        table.add_row("nobody", "", share_text(unowned), style="red")
    console().print(table)


def print_lanes(drawn: Timelines) -> None:
    """Print a lane a member: how many partitions it read in each stretch; above them the most that had no reader."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    out = console()
    names = max(map(cell_len, ["nobody", *drawn.members]))
    lane = min(LANE, max(20, out.width - names - 3))
    step_ms = max(1, -(-drawn.end_ms // lane))
    marks = [" "] * lane
    for one in drawn.happenings:
        if one.kind == "event":
            marks[min(lane - 1, one.at_ms // step_ms)] = "▼"
    rows = [("", "".join(marks), "yellow")]
    if drawn.gaps:
        rows.append(("nobody", worst_lane(drawn, step_ms, lane), "red"))
    rows += [(member, member_lane(drawn, member, step_ms), "") for member in drawn.members[:MOST_LANES]]
    if len(drawn.members) > MOST_LANES:
        rows.append(("...", f"{len(drawn.members) - MOST_LANES} more members", "dim"))
    rows.append(("", f"{'0':<{lane - 12}}{clock(drawn.end_ms):>12}", "dim"))
    legend = f"a character is {step_ms / 1000:g} s and says how many partitions are read; ▼ the timeline"
    plain = PLAIN_MARKS if out.options.ascii_only else {}
    for name, text, style in rows:
        out.print(Text(f"{set_cell_size(name, names)}  {text.rstrip().translate(plain)}", style=style), soft_wrap=True)
    out.print(Text(legend.translate(plain), style="dim"), soft_wrap=True)


def member_lane(drawn: Timelines, member: str, step_ms: int) -> str:
    """Return counts at the end of each stretch; blank where the process does not run."""
    spans = [span for span in drawn.reads if span.member == member]
    marks = []
    for at_ms in range(step_ms, drawn.end_ms + step_ms, step_ms):
        now_ms = min(at_ms, drawn.end_ms)
        count = sum(len(span.partitions) for span in drawn.at(spans, now_ms))
        marks.append(digit(count) if count or drawn.what_at(member, now_ms) else " ")
    return "".join(marks)


def worst_lane(drawn: Timelines, step_ms: int, lane: int) -> str:
    """Draw the most gaps at once in each stretch, because gaps are short and none should be overlooked."""
    changes: list[tuple[int, int]] = []
    for gap in drawn.gaps:
        changes += [(gap.start_ms, len(gap.partitions)), (gap.end_ms, -len(gap.partitions))]
    worst = [0] * lane
    now, last = 0, 0
    for at_ms, change in sorted(changes):
        for i in range(min(lane - 1, last // step_ms), min(lane - 1, at_ms // step_ms) + 1):
            worst[i] = max(worst[i], now)
        now, last = now + change, at_ms
    return "".join(digit(count) if count else " " for count in worst)


def digit(count: int) -> str:
    return DIGITS[count] if count < len(DIGITS) else "#"


def print_events(drawn: Timelines) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for one in drawn.happenings:
        table.add_row(clock(one.at_ms), one.text, style="yellow" if one.kind == "event" else "")
    console().print(table)


def clock(ms: int) -> str:
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:06.3f}"
    return f"{hours}:{minutes:02}:{seconds}" if hours else f"{minutes}:{seconds}"

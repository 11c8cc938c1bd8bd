"""Write the parts of the page that read without a script: the ranking, all costs, the events, as escaped HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from rebalance_lab.harness.evaluate.comparison import Comparison, Ranked
from rebalance_lab.harness.evaluate.intervals import Interval
from rebalance_lab.harness.measure.cost_descriptions import COST_DESCRIPTIONS, number
from rebalance_lab.harness.measure.cost_weights import DEFAULT

SHOWN = ("unowned_s", "unowned_longest_s", "behind_s", "moved", "read_twice", "rebalances")
"""The figures beside the bars; the table further down has all."""
LONGEST = 4.0
"""A bar ends at so many times the lowest cost that is one: one bad strategy must not make the good ones look alike."""


def ranking_table(comparison: Comparison) -> str:
    ranking = comparison.ranking
    scores = [one.score.median for one in ranking if one.score and (one.rank or not comparison.sound)]
    lowest = min((score for score in scores if score), default=1.0)
    top = min(max(scores, default=1.0), LONGEST * lowest) * 1.04 or 1.0
    against = "now" if comparison.reference == comparison.present else "the best"
    heads = "".join(f'<th scope="col">{escape(COST_DESCRIPTIONS[name].title)}</th>' for name in SHOWN)
    rows = "".join(ranking_row(comparison, one, top, against) for one in ranking)
    return (
        '<table class="ranking"><thead><tr><th scope="col" class="left">Strategy</th>'
        '<th scope="col">Cost</th><th scope="col" class="left">made of</th>'
        f'<th scope="col">Against {against}</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )


def ranking_row(comparison: Comparison, one: Ranked, top: float, against: str) -> str:
    classes = " ".join(
        name for name, holds in (("first", one.rank == 1), ("now", one.strategy == comparison.present)) if holds
    )
    tags = ""
    if one.strategy == comparison.present:
        tags += '<span class="tag">runs now</span>'
    if one.broken:
        tags += f'<span class="tag broken">broken in {len(one.broken)} of {len(comparison.seeds)} runs</span>'
    if one.failed_processes:
        tags += '<span class="tag broken">processes failed</span>'
    rank = "–" if one.rank is None else f"{one.rank}."
    name = f'<th scope="row" class="wide">{rank}&nbsp;<code>{breakable(one.strategy)}</code>{tags}</th>'
    figures = "".join(
        labelled(COST_DESCRIPTIONS[cost].title, short_figure(cost, one.costs[cost].median) if one.costs else "–")
        for cost in SHOWN
    )
    wins = f"<small>best in {one.wins:.0%}</small>" if one.wins and len(comparison.strategies) > 1 else ""
    cells = (
        labelled("Cost", f"{with_interval(one.score)}{wins}", "cost"),
        f'<td class="left wide">{bar(comparison, one, top)}</td>',
        labelled(f"Against {against}", with_interval(one.against, signed=True), "against"),
    )
    return f'<tr class="{classes}">{name}{"".join(cells)}{figures}</tr>'


def breakable(strategy: str) -> str:
    """Let a narrow column break a strategy's name where a reader would."""
    return escape(strategy).replace("/", "/<wbr>").replace("+", "<wbr>+")


def labelled(label: str, text: str, kind: str = "") -> str:
    """Add a label, which is shown where a phone turns the row into a card."""
    return f'<td class="{kind}" data-label="{escape(label)}">{text}</td>'


def short_figure(cost: str, value: float) -> str:
    """Print a figure without its unit: the head of the column already says what is counted."""
    return f"{number(value)} s" if COST_DESCRIPTIONS[cost].unit == "s" else number(value)


def with_interval(interval: Interval | None, *, signed: bool = False) -> str:
    if interval is None:
        return "–"
    values = (interval.median, interval.low, interval.high)
    shown = [("+" if signed and value > 0 else "") + number(value) for value in values]
    return f"{shown[0]}<small>{shown[1]} to {shown[2]}</small>"


def parts(comparison: Comparison, one: Ranked) -> dict[str, float]:
    """Return what each cost adds to the score, in medians."""
    return {
        name: weight * one.costs[name].median
        for name, weight in comparison.weights.items()
        if weight and one.costs and one.costs[name].median
    }


def bar(comparison: Comparison, one: Ranked, top: float) -> str:
    """Draw the bar stacked by cost, with the interval as a line on it."""
    if one.score is None:
        return ""
    made = parts(comparison, one)
    pieces, at = [], 0.0
    for name, value in made.items():
        width = max(0.0, min(value, top - at))
        colour = f"var(--{name if name in DEFAULT else 'other'})"
        pieces.append(f'<i style="left:{percent(at, top)};width:{percent(width, top)};background:{colour}"></i>')
        at += value
    if one.score.median > top:
        pieces.append('<i class="over" aria-hidden="true">»</i>')
    else:
        low, high = one.score.low, min(one.score.high, top)
        pieces.append(f'<i class="whisker" style="left:{percent(low, top)};width:{percent(high - low, top)}"></i>')
    words = escape(
        ", ".join(f"{COST_DESCRIPTIONS[name].title.lower()} {number(value)}" for name, value in made.items())
    )
    return f'<div class="bar" role="img" aria-label="{words or "nothing"}" title="{words}">{"".join(pieces)}</div>'


def percent(value: float, top: float) -> str:
    return f"{100 * value / top:.2f}%"


def legend(comparison: Comparison) -> str:
    weighted = [name for name, weight in comparison.weights.items() if weight]
    items = "".join(
        f'<li><span class="swatch" style="background:var(--{name if name in DEFAULT else "other"})"></span>'
        f"{escape(COST_DESCRIPTIONS[name].title)} × {comparison.weights[name]:g}</li>"
        for name in weighted
    )
    return f'<ul class="legend" aria-label="What the cost is made of, with its weights">{items}</ul>'


def costs_table(comparison: Comparison) -> str:
    heads = "".join(f'<th scope="col"><code>{breakable(one.strategy)}</code></th>' for one in comparison.ranking)
    rows = []
    for name, words in COST_DESCRIPTIONS.items():
        unit = f" <small>{escape(words.unit)}</small>" if words.unit else ""
        cells = "".join(
            f"<td>{with_interval(one.costs[name]) if one.costs else '–'}</td>" for one in comparison.ranking
        )
        rows.append(
            f'<tr><th scope="row" title="{escape(words.explanation)}">{escape(words.title)}{unit}</th>{cells}</tr>'
        )
    if any(one.assignment_cpu_ms for one in comparison.ranking):
        cells = "".join(f"<td>{with_interval(one.assignment_cpu_ms)}</td>" for one in comparison.ranking)
        why = "What the group leaders' assignments took on the machine that made this; a broker's are not among them."
        rows.append(f'<tr><th scope="row" title="{why}">Leaders\' CPU <small>ms here</small></th>{cells}</tr>')
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="All costs of all strategies">'
        f'<table><thead><tr><th scope="col" class="left">Cost</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def events_lists(drawings: Sequence[Mapping[str, Any]]) -> str:
    return "".join(events_list(one) for one in drawings)


def events_list(drawing: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr class="{escape(kind)}"><td class="left">{clock(at_ms)}</td><td class="left">{escape(text)}</td></tr>'
        for at_ms, kind, text in drawing["happenings"]
    )
    what = f"{len(drawing['events'])} events, {number(drawing['costs']['rebalances'])} rebalances"
    rest = (
        f'<p class="hint">{number(drawing["untold"])} later changes of processes and of the group are not listed.</p>'
        if drawing["untold"]
        else ""
    )
    return (
        f'<details><summary><code>{escape(drawing["strategy"])}</code><span class="hint">{what}</span></summary>'
        '<table><thead><tr><th scope="col" class="left">At</th><th scope="col" class="left">What</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>{rest}</details>"
    )


def trouble_list(lines: Iterable[str]) -> str:
    return "".join(f'<p class="bad">{escape(line)}</p>' for line in lines)


def clock(ms: int) -> str:
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{f'{hours}:{minutes:02}' if hours else minutes}:{rest / 1000:06.3f}"

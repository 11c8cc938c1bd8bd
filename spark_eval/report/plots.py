"""Draw the Pareto plot and the sensitivity bars from the table, as SVG and HTML that need no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from statistics import median

from rebalance_lab.harness.evaluate.recommend.decision_table import DecisionTable
from rebalance_lab.harness.measure.cost_descriptions import number

WIDTH, HEIGHT, EDGE, TOP = 360, 300, 44, 16
POINT = 6


def pareto_html(table: DecisionTable) -> str:
    """Draw a point a strategy: medians over all cells, of standing still and of records read twice."""
    points = {one: (stands_still(table, one), cost(table, one, "read_twice")) for one in table.strategies}
    points = {one: point for one, point in points.items() if not math.isnan(point[0])}
    if not points:
        return ""
    across = scale([x for x, _ in points.values()], EDGE, WIDTH - 16)
    down = scale([y for _, y in points.values()], HEIGHT - EDGE, TOP)
    drawn = "".join(
        f'<g class="s{table.strategies.index(one) % 8}"><circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="{POINT}"/>'
        f'<text x="{across(x):.1f}" y="{down(y) + 4:.1f}" text-anchor="middle">{table.strategies.index(one) + 1}</text>'
        f"<title>{escape(one)}: {number(x)} partition-seconds, {number(y)} records</title></g>"
        for one, (x, y) in points.items()
    )
    axes = (
        f'<path d="M{EDGE} {TOP}V{HEIGHT - EDGE}H{WIDTH - 8}"/>'
        f'<text x="{WIDTH - 8}" y="{HEIGHT - 12}" text-anchor="end">stands still, partition-seconds →</text>'
        f'<text x="12" y="{TOP}" transform="rotate(-90 12 {TOP})" text-anchor="end">records read twice →</text>'
    )
    return (
        f'<figure class="pareto"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Standing still against '
        f'records read twice">{axes}{drawn}</svg><figcaption class="hint">Left and low is better; both axes '
        f"logarithmic.</figcaption></figure>{legend(table, points)}"
    )


def scale(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """Make a logarithmic scale, with room at both ends; values may be 0."""
    low, high = math.log1p(min(values)), math.log1p(max(values))
    room = max(0.08 * (high - low), 0.02)
    return lambda value: start + (end - start) * (math.log1p(value) - low + room) / (high - low + 2 * room)


def legend(table: DecisionTable, points: dict[str, tuple[float, float]]) -> str:
    items = "".join(
        f"<li><b>{table.strategies.index(one) + 1}</b> {escape(one)}: {number(x)} partition-seconds, {number(y)} "
        f"records, on the front in {fronts(table, one):,} of {len(table.cells):,} cells</li>"
        for one, (x, y) in points.items()
    )
    return f'<ul class="points">{items}</ul>'


def stands_still(table: DecisionTable, strategy: str) -> float:
    return cost(table, strategy, "unowned_s", "stalled_s")


def cost(table: DecisionTable, strategy: str, *names: str) -> float:
    rows = [cell.of(strategy) for cell in table.cells]
    found = [sum(row["costs"][name] for name in names) for row in rows if "costs" in row]
    return median(found) if found else math.nan


def fronts(table: DecisionTable, strategy: str) -> int:
    return sum(cell.of(strategy)["front"] for cell in table.cells)


def sensitivity_html(table: DecisionTable) -> str:
    """Draw the sensitivity: a parameter's bar is the mean over strategies, with the value of each below it."""
    by_parameter: dict[str, list[tuple[str, float]]] = {}
    for one in table.data["sensitivity"]:
        if one["parameter"]:
            by_parameter.setdefault(one["parameter"], []).append((one["strategy"], one["share"]))
    means = {name: sum(share for _, share in found) / len(found) for name, found in by_parameter.items()}
    rows = "".join(
        f'<li><span class="name">{escape(name)}</span><span class="share">{means[name]:.0%}</span>'
        f'<span class="bar"><i style="width:{100 * means[name]:.1f}%"></i></span>'
        f"<small>{escape(', '.join(f'{strategy} {share:.0%}' for strategy, share in by_parameter[name]))}</small></li>"
        for name in sorted(means, key=lambda name: -means[name])
    )
    return f'<ul class="sensitivity">{rows}</ul>' if rows else '<p class="hint">Nothing was varied.</p>'

"""Draw decision maps: two parameters, and in each field the strategy that wins there and by how much.

Overview   a field is all cells with those two values, whatever the others are: the strategy that wins most of them
Slices     of the first map, one for each combination of the other parameters: a field is one cell
Start at   maps_html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from rebalance_lab.harness.evaluate.recommend.decision_table import Cell, DecisionTable
from rebalance_lab.harness.measure.cost_descriptions import number

MOST_SLICES = 24


def maps_html(table: DecisionTable) -> str:
    maps = table.data["maps"]
    if not maps:
        return '<p class="hint">The sweep varies fewer than two parameters: there is no map to draw.</p>'
    axes = maps[0]
    others = [name for name in table.parameters if name not in axes]
    parts = [map_html(table, each, table.cells, "All cells together") for each in maps]
    slices = sliced(table.cells, others)
    if len(slices) > 1:
        shown = list(slices.items())[:MOST_SLICES]
        parts += [slice_html(table, axes, cells, dict(zip(others, values, strict=True))) for values, cells in shown]
        if len(slices) > len(shown):
            parts.append(f'<p class="hint">{len(slices) - len(shown):,} more combinations are in the JSON.</p>')
    return "".join(parts)


def sliced(cells: Sequence[Cell], others: Sequence[str]) -> dict[tuple[Any, ...], list[Cell]]:
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        found.setdefault(tuple(cell.parameters[name] for name in others), []).append(cell)
    return found


def slice_html(table: DecisionTable, axes: Sequence[str], cells: Sequence[Cell], fixed: Mapping[str, Any]) -> str:
    title = ", ".join(f"{name} {value}" for name, value in fixed.items())
    return f"<details><summary>{escape(title)}</summary>{map_html(table, axes, cells, title)}</details>"


def map_html(table: DecisionTable, axes: Sequence[str], cells: Sequence[Cell], title: str) -> str:
    across, down = axes
    columns, rows = table.parameters[across], table.parameters[down]
    head = "".join(f'<th scope="col">{escape(str(value))}</th>' for value in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(str(value))}</th>'
        + "".join(field(table, chosen(cells, {across: column, down: value})) for column in columns)
        + "</tr>"
        for value in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="map"><caption>{escape(title)}. Across: {escape(across)}; '
        f'down: {escape(down)}</caption><thead><tr><th scope="col"><span class="still">{escape(down)}</span></th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def chosen(cells: Sequence[Cell], values: Mapping[str, Any]) -> list[Cell]:
    return [cell for cell in cells if all(cell.parameters[name] == value for name, value in values.items())]


def margin_words(more: float) -> str:
    """Describe the margin; seed by seed the next strategy may even be ahead of the one with the lower median."""
    return f"next costs {number(more)} more" if more > 0 else "next costs about as much"


def field(table: DecisionTable, cells: Sequence[Cell]) -> str:
    won = Counter(cell.winner for cell in cells if cell.winner is not None)
    if not won:
        return '<td class="none">nobody</td>'
    winner, count = won.most_common(1)[0]
    margins = [cell.data["margin"][0] for cell in cells if cell.winner == winner and cell.data["margin"]]
    by = margin_words(median(margins)) if margins else "alone"
    clear = sum(cell.is_clear for cell in cells if cell.winner == winner)
    share = f"{count} of {len(cells)} cells, {clear} clearly" if len(cells) > 1 else "clearly" if clear else "close"
    shade = table.strategies.index(winner) % 8
    return f'<td class="s{shade}"><b>{escape(winner)}</b><small>{by}</small><small>{share}</small></td>'

"""Write the strategies side by side over all cells, and every cell for readers who look one up."""

from __future__ import annotations

from html import escape
from statistics import median
from typing import Any

from rebalance_lab.harness.evaluate.recommend.decision_table import Cell, DecisionTable
from rebalance_lab.harness.measure.cost_descriptions import number
from rebalance_lab.spark_eval.report.plots import fronts

MOST_CELLS = 400
TITLES = ("Winner", "Cost", "Best in", "Next", "costs more")


def strategies_table(table: DecisionTable) -> str:
    head = ("Cells won", "Clearly", "On the front", "Cost, median of cells", "More than the best", "Failed runs")
    rows = "".join(strategy_row(table, one) for one in by_wins(table))
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    return (
        '<div class="scroll" tabindex="0"><table><thead><tr><th scope="col" class="left">Strategy</th>'
        f"{titles}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def by_wins(table: DecisionTable) -> list[str]:
    return sorted(table.strategies, key=lambda one: -sum(cell.winner == one for cell in table.cells))


def strategy_row(table: DecisionTable, strategy: str) -> str:
    rows = [cell.of(strategy) for cell in table.cells]
    costs = [row["cost"][0] for row in rows if "cost" in row]
    more = [row["more"][0] for row in rows if "more" in row]
    won = [cell for cell in table.cells if cell.winner == strategy]
    figures = (
        f"{len(won):,}",
        f"{sum(cell.is_clear for cell in won):,}",
        f"{fronts(table, strategy):,}",
        number(median(costs)) if costs else "",
        number(median(more)) if more else "",
        f"{sum(row['failed'] for row in rows):,}",
    )
    return f'<tr><th scope="row"><code>{escape(strategy)}</code></th>{cells_html(figures)}</tr>'


def cells_html(figures: Any) -> str:
    return "".join(f"<td>{figure}</td>" for figure in figures)


def cells_table(table: DecisionTable) -> str:
    names = list(table.parameters)
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in (*names, *TITLES))
    shown = table.cells[:MOST_CELLS]
    left_out = len(table.cells) - len(shown)
    rest = f'<p class="hint">{left_out:,} more are in the JSON.</p>' if left_out else ""
    return (
        f"<details><summary>Every cell <span class=hint>{len(table.cells):,}</span></summary>"
        f'<div class="scroll" tabindex="0"><table><thead><tr>{titles}</tr></thead><tbody>'
        f"{''.join(cell_row(cell, names) for cell in shown)}</tbody></table></div>{rest}</details>"
    )


def cell_row(cell: Cell, names: list[str]) -> str:
    values = [escape(str(cell.parameters[name])) for name in names]
    if cell.winner is None:
        return f"<tr>{cells_html([*values, 'nobody', '', '', '', ''])}</tr>"
    best = cell.of(cell.winner)
    middle, low, high = cell.data["margin"] or (0, 0, 0)
    more = f"{number(middle)} <small>{number(low)} to {number(high)}</small>"
    next_best = escape(cell.data["next"] or "")
    figures = (escape(cell.winner), number(best["cost"][0]), f"{best['wins']:.0%}", next_best, more)
    return f"<tr>{cells_html([*values, *figures])}</tr>"

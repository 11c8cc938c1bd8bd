"""Write the page: a decision table as one HTML file.

Given      a DecisionTable and the command that asks for the page
Returns    the text of the file; it fetches nothing from a network
Start at   table_page
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template

from rebalance_lab.harness.evaluate.recommend.decision_table import DecisionTable
from rebalance_lab.harness.measure.cost_weights import weights_text
from rebalance_lab.spark_eval.report.cell_tables import by_wins, cells_table, strategies_table
from rebalance_lab.spark_eval.report.decision_maps import maps_html
from rebalance_lab.spark_eval.report.plots import pareto_html, sensitivity_html


def table_page(table: DecisionTable, *, command: str = "") -> str:
    name, description = table.data["name"], table.data["description"]
    style = (files("rebalance_lab.harness.evaluate.report") / "style.css").read_text("utf-8")
    folder = files("rebalance_lab.spark_eval.report")
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        title=escape(f"{name}: which strategy wins where"),
        name=escape(name),
        description=f'<p class="soft">{escape(description)}</p>' if description else "",
        facts=facts(table),
        verdict=verdict(table),
        maps=maps_html(table),
        strategies=strategies_table(table),
        pareto=pareto_html(table),
        sensitivity=sensitivity_html(table),
        cells=cells_table(table),
        provenance=provenance(table, command),
        version=escape(table.data["provenance"]["version"]),
        style=style + (folder / "extra.css").read_text("utf-8"),
    )


def facts(table: DecisionTable) -> str:
    known = table.data["provenance"]
    counts = (
        (known["runs"], "runs"),
        (known["cells"], "cells"),
        (len(table.strategies), "strategies"),
        (known["seeds"]["count"], "seeds each"),
        (known["failed"], "failed"),
    )
    return f'<ul class="facts">{"".join(f"<li><b>{count:,}</b> {what}</li>" for count, what in counts)}</ul>'


def verdict(table: DecisionTable) -> str:
    best = by_wins(table)[0]
    won = [cell for cell in table.cells if cell.winner == best]
    clear = sum(cell.is_clear for cell in won)
    return (
        f'<div class="verdict"><p class="big"><code><b>{escape(best)}</b></code> wins {len(won):,} of '
        f"{len(table.cells):,} cells, {clear:,} of them clearly.</p><p>Clearly: the next best costs more in every part "
        "of the interval of the differences, seed by seed.</p></div>"
    )


def provenance(table: DecisionTable, command: str) -> str:
    known = table.data["provenance"]
    seeds = known["seeds"]
    pieces = (
        ("Command", f"<code>{escape(command)}</code>" if command else ""),
        ("Runs", f"{known['runs']:,}, of which {known['failed']:,} failed"),
        ("Seeds", f"{seeds['count']:,}, from {seeds['first']} to {seeds['last']}"),
        ("Weights", f"<code>{escape(weights_text(table.data['weights']))}</code>"),
        ("Sweep", f"<code>{escape(known['sweep_id'])}</code>"),
        ("Versions", escape(f"Rebalance Lab {known['version']}, Spark {known['spark']}, Python {known['python']}")),
    )
    return f"<dl>{''.join(f'<dt>{title}</dt><dd>{text}</dd>' for title, text in pieces if text)}</dl>"

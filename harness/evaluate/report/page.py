"""Write the page: a comparison, and the advice drawn from it if there is one, as one HTML file.

Given      a Comparison, the command that made it, and HTML of the advice
Returns    the text of the file; it fetches nothing from a network
Start at   report_page
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from string import Template
from typing import Any

from rebalance_lab.harness.evaluate.comparison import Comparison
from rebalance_lab.harness.evaluate.intervals import confidence_of
from rebalance_lab.harness.evaluate.report.drawings import drawing
from rebalance_lab.harness.evaluate.report.tables import costs_table, events_lists, legend, ranking_table, trouble_list
from rebalance_lab.harness.evaluate.runs import Progress, spread
from rebalance_lab.harness.measure.cost_descriptions import COST_DESCRIPTIONS, number
from rebalance_lab.harness.measure.cost_weights import DEFAULT, weights_text
from rebalance_lab.harness.scenario.units import duration_text
from rebalance_lab.harness.scenario.writer import scenario_json

SCRIPTS = ("runs.js", "draw.js", "page.js")
"""In this order, as one script: what is known, how it is drawn, what one can do with it."""


def report_page(
    comparison: Comparison,
    *,
    command: str = "",
    advice: str = "",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> str:
    best_first = [one.strategy for one in comparison.ranking]
    pairs = [(strategy, comparison.typical_seed) for strategy in best_first]
    drawings = spread(drawing, comparison.scenario, pairs, jobs=jobs, progress=progress)
    scenario = comparison.scenario
    folder = files("rebalance_lab.harness.evaluate.report")
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        title=escape(f"{scenario.name}: strategies compared"),
        name=escape(scenario.name),
        description=f'<p class="soft">{escape(scenario.description)}</p>' if scenario.description else "",
        facts=facts(comparison),
        verdict=advice or verdict(comparison),
        ranking_words=ranking_words(comparison),
        ranking=ranking_table(comparison),
        legend=legend(comparison),
        trouble=trouble_list(trouble(comparison)),
        seed=comparison.typical_seed,
        seeds_count="one seed" if len(comparison.seeds) == 1 else f"{len(comparison.seeds):,} seeds",
        interval_words=interval_words(comparison),
        costs=costs_table(comparison),
        events=events_lists(drawings),
        reading=reading(comparison),
        provenance=provenance(comparison, command),
        version=escape(lab_version()),
        style=(folder / "style.css").read_text("utf-8"),
        script="\n".join((folder / name).read_text("utf-8") for name in SCRIPTS),
        data=embedded(chart_data(comparison, drawings)),
    )


def lab_version() -> str:
    try:
        return version("rebalance-lab")
    except PackageNotFoundError:
        return "(not installed)"


def embedded(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the script element it stands in, whatever a topic is called."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def chart_data(comparison: Comparison, drawings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    end_ms = comparison.scenario.duration_ms
    events = sorted({(at_ms, text) for one in drawings for at_ms, text in one["events"]})
    from_ms, to_ms = interesting(drawings, end_ms)
    keep = ("strategy", "end", "topics", "members", "left_out", "reads", "gaps", "states", "lag", "events")
    return {
        "end": end_ms,
        "from": from_ms,
        "to": to_ms,
        "events": [list(event) for event in events],
        "runs": [{**{key: one[key] for key in keep}, "summary": summary(one)} for one in drawings],
    }


def interesting(drawings: Sequence[Mapping[str, Any]], end_ms: int) -> tuple[int, int]:
    """Return where the charts begin: around the events, because a deploy of a minute is a line in an hour."""
    starts = [at_ms for one in drawings for at_ms, _ in one["events"]]
    ends = [gap[3] for one in drawings for gap in one["gaps"]]
    if not starts:
        return 0, end_ms
    first, last = min(starts), max(max(starts), max(ends, default=0))
    edge = max((last - first) // 20, end_ms // 50)
    return max(0, first - edge), min(end_ms, last + edge)


def summary(one: Mapping[str, Any]) -> str:
    costs = one["costs"]
    if one["broken"]:
        return f"stopped here: {one['broken']}"
    return (
        f"{number(costs['unowned_s'])} s without an owner, longest gap {number(costs['unowned_longest_s'])} s, "
        f"{costs['moved']:,} moved, {costs['rebalances']:,} rebalances"
    )


def facts(comparison: Comparison) -> str:
    scenario = comparison.scenario
    counts = (
        (sum(topic.partitions for topic in scenario.topics), "partition", "partitions"),
        (len(scenario.members), "member", "members"),
        (len(comparison.strategies), "strategy", "strategies"),
        (len(comparison.seeds), "seed", "seeds each"),
    )
    items = [(duration_text(scenario.duration_ms), "of virtual time")]
    items += [(f"{n:,}", one if n == 1 else many) for n, one, many in counts]
    return f'<ul class="facts">{"".join(f"<li><b>{escape(n)}</b> {what}</li>" for n, what in items)}</ul>'


def verdict(comparison: Comparison) -> str:
    if not comparison.sound:
        return '<div class="verdict"><p class="big">No strategy got through every run.</p></div>'
    best = comparison.ranking[0]
    assert best.score is not None
    others = [one.strategy for one in comparison.ranking[1:] if one.strategy in comparison.sound]
    alike = [one for one in others if costs_the_same(comparison, one, best.strategy)]
    others = [one for one in others if one not in alike]
    first = f"<code><b>{escape(best.strategy)}</b></code>"
    if len(comparison.strategies) == 1:
        lines = [f'<p class="big">{first} costs {number(best.score.median)}; nothing stands beside it.</p>']
    elif alike and not others:
        lines = [f'<p class="big">Every strategy costs the same here: {number(best.score.median)}.</p>']
    elif alike:
        names = ", ".join(f"<code>{escape(one)}</code>" for one in alike)
        lines = [
            f'<p class="big">Lowest cost: {first}, {number(best.score.median)}.</p>'
            f"<p>In every seed it is the same with {names}.</p>"
        ]
    else:
        lines = [
            f'<p class="big">Lowest cost: {first}, {number(best.score.median)}, '
            f"and best in {best.wins:.0%} of the seeds.</p>"
        ]
    now = comparison.present
    if now in others and now is not None:
        more = comparison.difference(now, best.strategy)
        lines.append(
            f"<p>What runs now, <code>{escape(now)}</code>, costs {number(more.median)} more "
            f"({number(more.low)} to {number(more.high)}, seed by seed).</p>"
        )
    elif others:
        more = comparison.difference(others[0], best.strategy)
        lines.append(
            f"<p>Next is <code>{escape(others[0])}</code> with {number(more.median)} more "
            f"({number(more.low)} to {number(more.high)}, seed by seed).</p>"
        )
    return f'<div class="verdict">{"".join(lines)}</div>'


def costs_the_same(comparison: Comparison, one: str, other: str) -> bool:
    scores = comparison.scores
    return scores[one] == scores[other]


def ranking_words(comparison: Comparison) -> str:
    return (
        "Cost 1 is one partition standing still for one second; everything else is weighed against that. "
        f"Figures are medians over the seeds, with the {interval_words(comparison)} below. The line on a bar is that "
        "interval of the cost."
    )


def interval_words(comparison: Comparison) -> str:
    held = confidence_of(len(comparison.seeds))
    return "95 % interval of the median" if held >= 0.95 else "range of the few runs there are"


def trouble(comparison: Comparison) -> list[str]:
    return [
        f"{one.strategy}, seed {one.broken[0].seed}: {one.broken[0].broken}" for one in comparison.ranking if one.broken
    ]


def reading(comparison: Comparison) -> str:
    return f"{READING}<dl>{''.join(cost_words(comparison, name) for name in COST_DESCRIPTIONS)}</dl>"


READING = """
<p>Every strategy meets the same scenario with the same seeds, so differences are taken seed by seed: what bad luck does
to everybody cancels out. An interval of a difference that does not hold 0 is a difference.</p>
<p>In the charts a triangle is an event of the timeline. A grey lane is a process that runs without partitions, an empty
one a process that does not run; amber is a process that is paused, cut off, held up or in a callback. In the view by
partition a colour is the member that reads it, and red is nobody.</p>
"""


def cost_words(comparison: Comparison, name: str) -> str:
    weight = f" Weighs {DEFAULT[name].weight:g}: {DEFAULT[name].why}." if is_usual(comparison, name) else ""
    described = COST_DESCRIPTIONS[name]
    return f"<dt>{escape(described.title)}</dt><dd>{escape(described.explanation + weight)}</dd>"


def is_usual(comparison: Comparison, name: str) -> bool:
    return name in DEFAULT and comparison.weights.get(name) == DEFAULT[name].weight


def provenance(comparison: Comparison, command: str) -> str:
    seeds = comparison.seeds
    run = seeds == tuple(range(seeds[0], seeds[0] + len(seeds)))
    shown = f"{seeds[0]} to {seeds[-1]}" if run and len(seeds) > 1 else ", ".join(map(str, seeds))
    scenario = json.dumps(scenario_json(comparison.scenario), indent=1, ensure_ascii=False)
    pieces = [
        ("Command", f"<code>{escape(command)}</code>") if command else None,
        ("Seeds", f"{escape(shown)}; drawn: {comparison.typical_seed}, the most typical"),
        ("Weights", f"<code>{escape(weights_text(comparison.weights))}</code>"),
        ("Version", f"Rebalance Lab {escape(lab_version())}"),
        *(("Note", escape(note)) for note in comparison.notes),
    ]
    listed = "".join(f"<dt>{piece[0]}</dt><dd>{piece[1]}</dd>" for piece in pieces if piece is not None)
    return (
        f"<dl>{listed}</dl><details><summary>The scenario as data</summary>"
        f'<pre class="source" tabindex="0">{escape(scenario)}</pre></details>'
    )

"""Write the advice at the head of the page: the answer, why, how sure, what to paste, how to get there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from rebalance_lab.harness.evaluate.recommend.advice import Advice
from rebalance_lab.harness.evaluate.recommend.properties_to_paste import as_lines


def advice_html(advice: Advice, sure: str, notes: Iterable[str] = ()) -> str:
    parts = [
        f'<p class="big"><b>{escape(advice.summary)}</b></p>',
        f"<p>{escape(advice.verdict.capitalize())}: {escape(sure)}</p>",
        *(f'<p class="hint">{escape(note)}</p>' for note in notes),
    ]
    if advice.reasons:
        parts.append(f"<h3>Why</h3><ul>{items(advice.reasons)}</ul>")
    if advice.cautions:
        parts.append("<h3>Know before</h3>" + "".join(f'<p class="warn">{escape(one)}</p>' for one in advice.cautions))
    paste = advice.properties
    blocks = "".join(
        block(title, settings)
        for title, settings in (("Java clients", paste.java), ("librdkafka clients", paste.librdkafka))
        if settings
    )
    parts.append(f'<div class="pair">{blocks}</div>')
    if paste.broker:
        parts.append(block("Brokers", paste.broker))
    parts.append(f'<ul class="hint">{items(paste.notes)}</ul>' if paste.notes else "")
    if advice.steps:
        title = f"From {advice.now} to {advice.strategy}" if advice.now else "To get there"
        steps = "".join(
            f"<li>{escape(step.do)}{f' <span class=hint>{escape(step.why)}</span>' if step.why else ''}</li>"
            for step in advice.steps
        )
        parts.append(f"<h3>{escape(title)}</h3><ol>{steps}</ol>")
    head = '<section class="verdict advice" aria-labelledby="advice"><h2 id="advice">Recommendation</h2>'
    return f"{head}{''.join(parts)}</section>"


def items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def block(title: str, settings: Mapping[str, str]) -> str:
    return f'<div><h3>{escape(title)}</h3><pre tabindex="0"><code>{escape(as_lines(settings))}</code></pre></div>'

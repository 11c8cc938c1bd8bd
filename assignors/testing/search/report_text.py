"""Print a report card and a counterexample as plain text: for a failing test, a file, or a terminal.

Start at   card, counterexample
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.testing.search.report_card import MEASURED, Finding, Report, Row, replay_command


def card(report: Report) -> str:
    rows = [("property", "promised", "examples", "verdict", "worst case")]
    rows += [(row.name, promised(row), f"{row.examples:,}", verdict(row), row.worst) for row in report.rows]
    return "\n".join([title(report), "", *aligned(rows), "", closing(report)])


def title(report: Report) -> str:
    promises = ", ".join(report.promises) or "nothing beyond what everybody is held to"
    return f"{report.target} promises {promises}"


def promised(row: Row) -> str:
    return ("always" if row.promise == "everybody" else "yes") if row.promised else "no"


def verdict(row: Row) -> str:
    """Print how often a measured property holds, rounded so that never and always mean what they say."""
    if row.verdict != MEASURED:
        return row.verdict
    if not row.broken:
        return "measured: holds in all"
    share = min(99.9, max(0.1, 100 * (1 - row.broken / row.examples))) if row.broken < row.examples else 0.0
    return f"measured: holds in {share:.1f}%" if share < 1 or share > 99 else f"measured: holds in {share:.0f}%"


def closing(report: Report) -> str:
    again = f"rebalance-lab check {report.target} --examples {report.examples} --seed {report.seed}"
    cost = f"{report.groups:,} groups, {report.calls:,} calls, {report.seconds:.1f} s"
    if report.findings:
        names = ", ".join(finding.property for finding in report.findings)
        return f"BROKEN: {names} ({cost})\nagain: {again}"
    return f"everything promised holds ({cost})\nagain: {again}"


def counterexample(report: Report, finding: Finding) -> str:
    lines = [f"{finding.property} is broken: {finding.message}", ""]
    lines += aligned(group_rows(finding))
    if finding.case.events:
        lines += ["", "after: " + json.dumps(finding.case.to_json()["events"], ensure_ascii=False)]
    if finding.case.before is not None:
        lines += ["", "asked about before it: " + json.dumps(finding.case.to_json()["before"], ensure_ascii=False)]
    lines += [
        "",
        "the group, as JSON for `rebalance-lab assign`:",
        "  " + json.dumps(finding.group, ensure_ascii=False),
        "the answer:",
        "  " + json.dumps(finding.answer, ensure_ascii=False),
        "see it again:",
        "  " + replay_command(report.target, finding, report.added),
    ]
    return "\n".join(lines)


def group_rows(finding: Finding) -> list[tuple[str, ...]]:
    """Return a row per member: what it reads, what it owns, what it was given. Columns that say nothing are left
    out.
    """
    group, answer = finding.group, finding.answer if isinstance(finding.answer, Mapping) else {}
    header = ("member", "reads", "owns", "since", "rack", "capacity", "instance", "is given")
    rows: list[tuple[str, ...]] = []
    for member_id, member in group["members"].items():
        rows.append(
            (
                member_id,
                " ".join(member["topics"]) or "nothing",
                share_text(member.get("owned", {})),
                str(member.get("generation", "")),
                member.get("rack", ""),
                str(member.get("capacity", "")),
                member.get("instance_id", ""),
                share_text(answer.get(member_id, {})) or "nothing" if answer else "",
            )
        )
    rows += [
        (str(other), "not a member", "", "", "", "", "", share_text(answer[other]))
        for other in answer
        if other not in group["members"]
    ]
    kept = [i for i in range(len(header)) if i < 2 or any(row[i] for row in rows)]
    table = [tuple(row[i] for i in kept) for row in (header, *rows)]
    return [*table, (), *topic_rows(group)]


def topic_rows(group: Mapping[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("topic", "partitions", "racks", "load")]
    for name, topic in group["topics"].items():
        racks = " ".join("+".join(one) or "-" for one in topic.get("racks", ()))
        rows.append((name, str(topic["partitions"]), racks, " ".join(f"{load:g}" for load in topic.get("load", ()))))
    kept = [i for i in range(4) if i < 2 or any(row[i] for row in rows[1:])]
    return [tuple(row[i] for i in kept) for row in rows]


def share_text(share: Any) -> str:
    if not isinstance(share, Mapping):
        return str(share)
    return ", ".join(
        f"{topic} {' '.join(map(str, ps)) if isinstance(ps, list) else ps}" for topic, ps in share.items() if ps
    )


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Set columns two spaces apart; an empty row ends one table and begins another."""
    lines: list[str] = []
    table: list[Sequence[str]] = []
    for row in [*rows, ()]:
        if row:
            table.append(row)
            continue
        if table:
            widths = [max(len(one[i]) for one in table) for i in range(len(table[0]) - 1)]
            for one in table:
                cells = [cell.ljust(width) for cell, width in zip(one, widths, strict=False)]
                lines.append("  ".join([*cells, one[-1]]).rstrip())
            lines.append("")
        table = []
    return lines[:-1]

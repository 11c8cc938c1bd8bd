"""Run `rebalance-lab group describe` and `group snapshot`: a live group as a table, or as JSON for other commands."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rebalance_lab.api.terminal import (
    BadInput,
    check_place,
    console,
    print_json,
    progress_bar,
    ranges,
    share_text,
    write_file,
)

WINDOW_S = 12.0
"""Two commits and more, at the auto.commit.interval.ms that consumers have by default."""
MOST_LOOKS = 600

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.groups import GroupDescription


def group_describe_command(
    group: str,
    bootstrap: str,
    *,
    config: str | None,
    timeout_s: float,
    apart_s: float,
    window_s: float | None,
    as_json: bool,
) -> None:
    if window_s is None:
        window_s = min(WINDOW_S, timeout_s / 2)
    found = read(group, bootstrap, config, timeout_s, apart_s, window_s)
    if as_json:
        print_json(found.to_json())
    else:
        show(found)


def group_snapshot_command(
    group: str, bootstrap: str, *, config: str | None, timeout_s: float, apart_s: float, load: str, out: str | None
) -> None:
    import json

    from rebalance_lab.harness.kafka.groups.snapshot import LOADS, snapshot

    if load not in LOADS:
        raise BadInput(f"--load: must be one of {', '.join(LOADS)}, got {load!r}")
    check_place(out)
    text = json.dumps(snapshot(read(group, bootstrap, config, timeout_s, apart_s), load=load), indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        write_file(out, text)


def read(
    group: str, bootstrap: str, config: str | None, timeout_s: float, apart_s: float, window_s: float = 0.0
) -> GroupDescription:
    from rebalance_lab.harness.kafka.groups import GroupError, describe
    from rebalance_lab.harness.kafka.groups.group_reader import looks_in
    from rebalance_lab.harness.kafka.groups.properties_file import read_settings

    if not 0 < timeout_s <= 600:
        raise BadInput(f"--timeout: must be over 0 and at most 600 seconds, got {timeout_s:g}")
    if not 0 <= apart_s < timeout_s:
        raise BadInput(f"--apart: must be 0 or more and less than --timeout, got {apart_s:g}")
    if not 0 <= window_s < timeout_s:
        raise BadInput(f"--window: must be 0 or more and less than --timeout, got {window_s:g}")
    looks = looks_in(window_s, apart_s)
    if looks > MOST_LOOKS:
        raise BadInput(
            f"--window: takes {looks:,} looks that are {apart_s:g} s apart, and at most {MOST_LOOKS} are made"
        )
    try:
        settings = read_settings(config) if config is not None else {}
        with progress_bar(f"{group}, looks at its offsets", looks) as progress:
            return describe(
                bootstrap,
                group,
                timeout_s=timeout_s,
                apart_s=apart_s,
                window_s=window_s,
                settings=settings,
                progress=progress,
            )
    except GroupError as error:
        raise BadInput(str(error)) from error


def show(found: GroupDescription) -> None:
    from rich.table import Table

    from rebalance_lab.harness.kafka.groups.offset_window import BLIND_SPOTS

    out = console()
    statuses = Counter(one.status for one in found.partitions)
    summary = ", ".join(f"{count} {status}" for status, count in statuses.most_common()) or "no partitions"
    assignor = f"/{found.assignor}" if found.assignor else ""
    out.print(f"{found.group}: {found.protocol}{assignor}, {found.state}, coordinator {found.coordinator}")
    out.print(f"{len(found.members)} members, lag {found.lag:,}; {summary}")
    if found.inferred:
        out.print("subscriptions are inferred from what members own", style="yellow")
    lags = {(one.topic, one.partition): one for one in found.partitions}
    table = Table(box=None, pad_edge=False)
    for title in ("member", "subscribed to", "owns", "lag"):
        table.add_column(title, justify="right" if title == "lag" else "left", overflow="fold")
    for member in found.members:
        lag = sum(lags[topic, n].lag for topic, all_ in member.owned.items() for n in all_ if (topic, n) in lags)
        name = f"{member.client_id} ({member.instance_id or member.member_id})"
        table.add_row(name, ", ".join(member.topics), share_text(dict(member.owned)), f"{lag:,}")
    if found.members:
        out.print(table)
    for line in trouble(found):
        out.print(line, style="yellow")
    window = found.window
    out.print(f"statuses are judged by {len(window.samples)} looks in {window.span_s:.1f} s", style="dim")
    if any(one.status == "unknown" for one in found.partitions):
        out.print(f"unknown: no commit was seen, and the looks are too few or too close together{hint(found)}")
    if trouble(found):
        for line in BLIND_SPOTS:
            out.print(line, style="dim")


def hint(found: GroupDescription) -> str:
    """Say how long a window would do, as far as commits were seen."""
    from rebalance_lab.harness.kafka.groups.lag_status import SHORTEST_WINDOW_S

    least_s = max(SHORTEST_WINDOW_S, found.window.commits_apart_s)
    return f"; --window {least_s:.0f} or more, with a longer --timeout, would tell more"


def trouble(found: GroupDescription) -> list[str]:
    """List by topic and status which partitions are not working."""
    places: dict[tuple[str, str], list[int]] = {}
    for one in found.partitions:
        if one.status != "working":
            places.setdefault((one.topic, one.status), []).append(one.partition)
    return [f"{status}: {topic} {ranges(numbers)}" for (topic, status), numbers in places.items()]

"""Run `rebalance-lab group describe` and `group snapshot`: a live group as a table, or as JSON for other commands."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rebalance_lab.api.terminal import BadInput, check_place, console, print_json, ranges, share_text, write_file

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.groups import GroupDescription


def group_describe_command(
    group: str, bootstrap: str, *, config: str | None, timeout_s: float, apart_s: float, as_json: bool
) -> None:
    found = read(group, bootstrap, config, timeout_s, apart_s)
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


def read(group: str, bootstrap: str, config: str | None, timeout_s: float, apart_s: float) -> GroupDescription:
    from rebalance_lab.harness.kafka.groups import GroupError, describe
    from rebalance_lab.harness.kafka.groups.properties_file import read_settings

    if not 0 < timeout_s <= 600:
        raise BadInput(f"--timeout: must be over 0 and at most 600 seconds, got {timeout_s:g}")
    if not 0 <= apart_s < timeout_s:
        raise BadInput(f"--apart: must be 0 or more and less than --timeout, got {apart_s:g}")
    try:
        settings = read_settings(config) if config is not None else {}
        return describe(bootstrap, group, timeout_s=timeout_s, apart_s=apart_s, settings=settings)
    except GroupError as error:
        raise BadInput(str(error)) from error


def show(found: GroupDescription) -> None:
    from rich.table import Table

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


def trouble(found: GroupDescription) -> list[str]:
    """List by topic and status which partitions are not working."""
    places: dict[tuple[str, str], list[int]] = {}
    for one in found.partitions:
        if one.status != "working":
            places.setdefault((one.topic, one.status), []).append(one.partition)
    return [f"{status}: {topic} {ranges(numbers)}" for (topic, status), numbers in places.items()]

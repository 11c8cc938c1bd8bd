"""Run `rebalance-lab size`: partitions and consumers for a throughput, from rates that the user measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rebalance_lab.api.answers.size_answer import SizeAsked, size_of
from rebalance_lab.api.terminal import aside, console, headline, print_json
from rebalance_lab.harness.evaluate.sizing import time_text
from rebalance_lab.harness.measure.cost_descriptions import number
from rebalance_lab.harness.scenario.units import duration_text

if TYPE_CHECKING:
    from rebalance_lab.api.answers.size_answer import Deploy
    from rebalance_lab.harness.evaluate.sizing import Needs, Plan, Sizing

SHORTEST_NAME = 12
"""A strategy's name is folded to so many characters before a column is left out."""
BYTE_NAMES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def size_command(
    *,
    target: str,
    per_consumer: str,
    per_partition: str | None,
    record_size: str | None,
    growth: str,
    horizon: str,
    headroom: str,
    outage: str,
    partitions: int | None,
    consumers: int | None,
    brokers: int | None,
    replication: int,
    broker_limit: int,
    strategies: str,
    deploys: int,
    downtime: str,
    as_json: bool,
) -> None:
    asked = SizeAsked(
        target=target,
        per_consumer=per_consumer,
        per_partition=per_partition,
        record_size=record_size,
        growth=growth,
        horizon=horizon,
        headroom=headroom,
        outage=outage,
        partitions=partitions,
        consumers=consumers,
        brokers=brokers,
        replication=replication,
        broker_limit=broker_limit,
        strategies=strategies,
        deploys=deploys,
        downtime=downtime,
    )
    with aside():
        sized = size_of(asked)
    if as_json:
        print_json(sized.to_json())
    else:
        show(sized.needs, sized.sizing, sized.unit, sized.deploy)


def show(needs: Needs, sizing: Sizing, unit: str, deploy: Deploy | None) -> None:
    from rich import box
    from rich.table import Table

    out = console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    plans = [sizing.now] if needs.horizon_years == 0 else [sizing.now, sizing.horizon]
    for title in ("now", f"in {needs.horizon_years:.3g} years")[: len(plans)]:
        table.add_column(title, justify="right")
    rows: list[tuple[str, Callable[[Plan], str]]] = [
        ("demand", lambda plan: rate_text(plan.demand, unit)),
        (f"with {needs.headroom:.0%} headroom", lambda plan: rate_text(plan.with_headroom, unit)),
        ("partitions needed", lambda plan: f"{plan.partitions:,}"),
        (f"consumers on {counted(sizing.partitions, 'partition')}", lambda plan: number_text(plan.consumers)),
        (
            "partitions of the fullest",
            lambda plan: "" if plan.most_partitions_a_consumer is None else f"{plan.most_partitions_a_consumer:,}",
        ),
        ("how busy it is", lambda plan: "" if plan.utilisation is None else f"{plan.utilisation:.0%}"),
    ]
    if needs.outage_s:
        outage = duration_text(round(needs.outage_s * 1_000))
        rows.append((f"caught up after {outage} down", lambda plan: caught_up_text(plan.catch_up_s)))
    for title, cell in rows:
        table.add_row(title, *(cell(plan) for plan in plans))
    out.print(headline(counted(sizing.partitions, "partition"), f", {why(needs, sizing, unit)}"), soft_wrap=True)
    out.print(table)
    out.print(brokers_text(needs, sizing), soft_wrap=True)
    if sizing.lasts_years is not None:
        suffice = f"{counted(sizing.partitions, 'partition')} suffice{'s' * (sizing.partitions == 1)}"
        out.print(f"{suffice} for {sizing.lasts_years:.1f} years", soft_wrap=True)
    if deploy is not None:
        show_deploy(deploy, sizing, unit)
    for note in sizing.notes:
        out.print(f"note: {note}", soft_wrap=True, style="yellow")


def show_deploy(deploy: Deploy, sizing: Sizing, unit: str) -> None:
    from rich import box
    from rich.table import Table

    out = console()
    count = counted(deploy.consumers, "consumer")
    out.print(headline(f"\nA rolling deploy of {count}", f", {deploy.assumed}"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("", overflow="fold")
    columns = deploy_columns(deploy, unit)
    left = out.width - SHORTEST_NAME
    for title, cells in list(columns.items()):
        left -= 2 + max(map(len, [*title.split("\n"), *cells]))
        if left < 0:
            del columns[title]
        else:
            table.add_column(title, justify="right", no_wrap=True)
    for i, one in enumerate(deploy.costs):
        table.add_row(one.strategy, *(cells[i] for cells in columns.values()))
    out.print(table)
    if any(one.estimated for one in deploy.costs):
        out.print("~ an estimate, from a smaller group that is as busy", style="dim")
    often = {0: "one after the other", 1: "once a day"}.get(deploy.a_day, f"{deploy.a_day} times a day")
    share = f"{sizing.standstill or 0:.2g} of their time"
    out.print(f"a deploy takes {time_text(deploy.takes_s)}", soft_wrap=True)
    out.print(f"{often} with {deploy.costs[0].strategy}: partitions stand still for {share}", soft_wrap=True)


def deploy_columns(deploy: Deploy, unit: str) -> dict[str, list[str]]:
    """Return the most telling columns first: on a narrow terminal the last are left out."""
    abouts = ["~" if one.estimated else "" for one in deploy.costs]
    both = list(zip(deploy.costs, abouts, strict=True))
    return {
        "without\nan owner": [f"{about}{number(one.unowned_s)} s" for one, about in both],
        "longest\ngap": [f"{number(one.unowned_longest_s)} s" for one in deploy.costs],
        "waiting\nat most": [f"{about}{amount_text(one.waiting, unit)}" for one, about in both],
        "caught\nup in": [caught_up_text(one.catch_up_s) for one in deploy.costs],
    }


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def why(needs: Needs, sizing: Sizing, unit: str) -> str:
    if needs.partitions is not None:
        return "as there are"
    if sizing.limited_by == "consumer":
        return f"because one consumer does {rate_text(needs.per_consumer, unit)}"
    return f"because one partition takes {rate_text(needs.per_partition, unit)}"


def brokers_text(needs: Needs, sizing: Sizing) -> str:
    text = f"{sizing.replicas:,} replicas ({needs.replication} of each partition)"
    if sizing.replicas_a_broker is not None:
        return (
            f"{text}, {sizing.replicas_a_broker:,} on each of {needs.brokers:,} brokers; at most {needs.broker_limit:,}"
        )
    return f"{text} need at least {sizing.brokers_needed:,} brokers at {needs.broker_limit:,} replicas each"


def rate_text(rate: float, unit: str) -> str:
    if unit == "records":
        return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.3g}/s"
    scale, name = next((one for one in BYTE_NAMES if rate >= one[0]), BYTE_NAMES[-1])
    return f"{rate / scale:.3g} {name}/s"


def amount_text(amount: float, unit: str) -> str:
    """Print what a rate adds up to."""
    return rate_text(amount, unit).removesuffix("/s")


def number_text(number: int | None) -> str:
    return "never enough" if number is None else f"{number:,}"


def caught_up_text(seconds: float | None) -> str:
    return "never" if seconds is None else time_text(seconds)

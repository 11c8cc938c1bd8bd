"""Run `rebalance-lab live`: a scenario with real consumers, or the lab's own members in a real group."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from rebalance_lab.api.options.shared_options import REAL_PROVIDERS
from rebalance_lab.api.terminal import BadInput, check_place, console, print_json, progress_bar, read_input, write_file
from rebalance_lab.assignors.json_contract import ContractError

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.live.end_signals import EndedBySignal
    from rebalance_lab.harness.kafka.live.live_run import LiveRun


def live_command(
    file: str | None,
    *,
    strategy: str | None,
    provider: str,
    bootstrap: str | None,
    trace: str | None,
    as_json: bool,
    assignor: str | None,
    group: str,
    topics: str | None,
    members: int,
) -> bool:
    """Run a scenario live, and return True when the oracle has found nothing."""
    if assignor is not None:
        from rebalance_lab.api.commands.live_assignor import live_assignor_command

        if file is not None:
            raise BadInput("--assignor joins a group with members of the lab; it takes no SCENARIO")
        if bootstrap is None or topics is None:
            raise BadInput("--assignor needs --bootstrap HOST:PORT and --topics A,B")
        live_assignor_command(assignor, bootstrap=bootstrap, group=group, topics=topics, members=members)
        return True
    if file is None:
        raise ContractError("SCENARIO", "is missing: name a file, or - for standard input")
    check_place(trace, file)
    run = run_live(file, strategy, provider, bootstrap)
    if trace is not None:
        from rebalance_lab.harness.measure.trace import lines

        write_file(trace, "".join(f"{line}\n" for line in lines(run.facts)))
    if as_json:
        print_json(
            {
                "scenario": run.scenario.name,
                "strategy": run.strategy,
                "provider": run.provider,
                "costs": run.costs.row(),
                "oracle": run.verdict.to_json(),
                "troubles": list(run.troubles),
            }
        )
    else:
        show(run)
    return run.verdict.good


def run_live(file: str, strategy: str | None, provider: str, bootstrap: str | None) -> LiveRun:
    import threading

    from rebalance_lab.harness.kafka.brokers import BrokerError, start
    from rebalance_lab.harness.kafka.live.end_signals import EndedBySignal, ended_by_signals
    from rebalance_lab.harness.kafka.live.librdkafka_settings import broker_config, check_live, nodes_for
    from rebalance_lab.harness.kafka.live.live_run import live
    from rebalance_lab.harness.scenario.documents import decode_document
    from rebalance_lab.harness.scenario.reader import parse_scenario
    from rebalance_lab.harness.scenario.strategy_lists import normal_strategy

    scenario = parse_scenario(decode_document(read_input(file)))
    chosen = normal_strategy(strategy or scenario.strategy or "classic/range")
    check_live(scenario, chosen)
    check_provider(provider)
    check_target(bootstrap)
    try:
        config = None if bootstrap or provider == "external" else broker_config(scenario)
        with (
            ended_by_signals(),
            start(provider, nodes=nodes_for(scenario), config=config, bootstrap=bootstrap) as cluster,
            progress_bar(f"{scenario.name}, live", scenario.duration_ms // 1_000) as progress,
        ):
            over = threading.Event()
            if progress is not None:
                seconds = range(1, scenario.duration_ms // 1_000 + 1)
                threading.Thread(
                    target=lambda: [progress(n) for n in seconds if not over.wait(1.0)], daemon=True
                ).start()
            try:
                return live(scenario, chosen, cluster)
            finally:
                over.set()
    except BrokerError as error:
        raise BadInput(str(error)) from error
    except EndedBySignal as ended:
        raise exit_of(ended) from None


def exit_of(ended: EndedBySignal) -> typer.Exit:
    sys.stderr.write(f"rebalance-lab: {ended}\n")
    return typer.Exit(ended.exit_code)


def check_provider(provider: str) -> None:
    """Refuse librdkafka's mock cluster, which creates no topics and keeps nothing of a group to read afterwards."""
    if provider == "mock":
        raise BadInput(f"--provider: mock is no cluster to run live on; there are {REAL_PROVIDERS}")


def check_target(bootstrap: str | None) -> None:
    """Refuse a cluster that is neither on this machine nor the test cluster: a run creates topics and a group there."""
    if bootstrap is None:
        return
    from rebalance_lab.harness.kafka.wire.addresses import WireError, parse_bootstrap

    try:
        parse_bootstrap(bootstrap)
    except WireError as error:
        raise BadInput(f"--bootstrap: {error}") from None


def show(run: LiveRun) -> None:
    from rich.table import Table

    from rebalance_lab.harness.measure.cost_descriptions import COST_DESCRIPTIONS

    out = console()
    out.print(f"{run.scenario.name}, {run.strategy}, live on {run.provider}")
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in run.costs.row().items():
        if name in COST_DESCRIPTIONS and name not in NOT_MEASURED:
            table.add_row(COST_DESCRIPTIONS[name].title, COST_DESCRIPTIONS[name].figure(value))
    out.print(table)
    verdict = run.verdict
    out.print(f"oracle: {verdict.records:,} records, {verdict.twice:,} twice")
    for kind in ("gaps", "ahead", "old", "broken"):
        for line in getattr(verdict, kind):
            out.print(f"{kind}: {line}", style="red")
    for trouble in run.troubles:
        out.print(f"trouble: {trouble}", style="yellow")


NOT_MEASURED = ("requests", "request_bytes", "fetch_sessions_lost", "load_skew")
"""Of real consumers."""

"""Run `rebalance-lab fidelity`: the simulated and the real run side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_lab.api.commands.live_command import check_provider, check_target, exit_of
from rebalance_lab.api.terminal import BadInput, check_place, console, print_json, progress_bar, read_input, write_file
from rebalance_lab.assignors.json_contract import ContractError

TITLES = {
    "rebalances": "rebal.",
    "moved": "moved",
    "unowned_s": "unowned s",
    "settle_mean_s": "settle s",
    "read_twice": "twice",
}

if TYPE_CHECKING:
    from rebalance_lab.harness.fidelity.side_by_side import Measure, Pair
    from rebalance_lab.harness.scenario.model import Scenario


def fidelity_command(
    files: Sequence[str],
    *,
    strategies: str,
    seeds: int,
    at_once: int,
    provider: str,
    bootstrap: str | None,
    out: str | None,
    as_json: bool,
) -> bool:
    """Compare runs, and return True when everything agrees or is explained."""
    from rebalance_lab.harness.fidelity.side_by_side import fidelity
    from rebalance_lab.harness.kafka.brokers import BrokerError, start
    from rebalance_lab.harness.kafka.live.end_signals import EndedBySignal, ended_by_signals
    from rebalance_lab.harness.kafka.live.librdkafka_settings import broker_config, check_live, nodes_for
    from rebalance_lab.harness.scenario.strategy_lists import normal_strategy

    check_place(out)
    if not 1 <= seeds <= 1_000 or not 1 <= at_once <= 16:
        raise BadInput("--seeds must be between 1 and 1,000, --at-once between 1 and 16")
    check_provider(provider)
    check_target(bootstrap)
    scenarios = read_scenarios(files)
    chosen = [normal_strategy(name.strip(), "--strategies") for name in strategies.split(",")]
    for scenario in scenarios:
        for strategy in chosen:
            check_live(scenario, strategy)
    try:
        nodes = max(nodes_for(scenario) for scenario in scenarios)
        config = None if bootstrap or provider == "external" else broker_config(one_cluster(scenarios))
        with (
            ended_by_signals(),
            start(provider, nodes=nodes, config=config, bootstrap=bootstrap) as cluster,
            progress_bar("live runs", len(scenarios) * len(chosen)) as progress,
        ):
            where = f"{cluster.provider}, Kafka {cluster.kafka_version or 'of an unknown version'}"
            pairs = fidelity(scenarios, chosen, cluster, seeds=seeds, at_once=at_once, progress=progress)
    except BrokerError as error:
        raise BadInput(str(error)) from error
    except EndedBySignal as ended:
        raise exit_of(ended) from None
    answer = {"cluster": where, "seeds": seeds, "pairs": [pair.to_json() for pair in pairs]}
    if out is not None:
        write_file(out, json.dumps(answer, indent=1) + "\n")
    if as_json:
        print_json(answer)
    else:
        show(pairs, where)
    return all(pair.good for pair in pairs)


def read_scenarios(paths: Sequence[str]) -> list[Scenario]:
    from importlib.resources import files

    from rebalance_lab.harness.scenario.documents import decode_document
    from rebalance_lab.harness.scenario.reader import parse_scenario

    own = sorted(Path(str(files("rebalance_lab.harness.fidelity") / "scenarios")).glob("*.yaml"))
    return [parse_scenario(decode_document(read_input(str(file)))) for file in paths or own]


def one_cluster(scenarios: Sequence[Scenario]) -> Scenario:
    """Check that the scenarios want the same of their brokers, because they share one cluster."""
    first = scenarios[0]
    for scenario in scenarios[1:]:
        if dict(scenario.broker) != dict(first.broker):
            raise ContractError(
                "broker", f"{scenario.name!r} and {first.name!r} want different settings: run them apart"
            )
    return first


def show(pairs: Sequence[Pair], where: str) -> None:
    from rich.table import Table

    out = console()
    out.print(f"live on {where}")
    out.print("each cell: simulated (median) | live; * is explained below, ! is not")
    table = Table(box=None, pad_edge=False)
    for title in ("scenario", "strategy", *(TITLES[measure.name] for measure in pairs[0].measures)):
        table.add_column(title, justify="left" if title in ("scenario", "strategy") else "right")
    for pair in pairs:
        cells = [cell(measure) for measure in pair.measures]
        table.add_row(pair.scenario, pair.strategy, *cells, style=None if pair.good else "red")
    out.print(table)
    for why in dict.fromkeys(line for pair in pairs for line in whys(pair)):
        out.print(why)
    good = sum(pair.good for pair in pairs)
    out.print(f"{good} of {len(pairs)} agree or are explained")
    for pair in pairs:
        for line in (*pair.troubles, *oracle_lines(pair.verdict)):
            out.print(f"{pair.scenario}, {pair.strategy}: {line}", style="red")


def cell(measure: Measure) -> str:
    mark = "" if not measure.why else "*" if measure.explained else "!"
    return f"{measure.simulated:.4g} | {measure.live:.4g}{mark}"


def whys(pair: Pair) -> list[str]:
    return [
        f"{'*' if one.explained else '!'} {pair.scenario}, {pair.strategy}, {TITLES[one.name]}: {one.why}"
        for one in pair.measures
        if one.why
    ]


def oracle_lines(verdict: Any) -> list[str]:
    return [f"{kind}: {line}" for kind in ("gaps", "ahead", "old", "broken") for line in verdict[kind]]

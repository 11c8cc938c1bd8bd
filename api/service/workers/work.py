"""Answer the questions that the processes can be asked: bytes as they came in, checked options, bytes to send back.

Limits     are checked here, before the work: the size of a request's group is known once it has been read
Start at   OPERATIONS
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from rebalance_lab.api.answers.assign_answer import Asked, answer_document, answer_side_by_side, as_requests
from rebalance_lab.api.answers.recommend_answer import AdviceAsked, advise, scenario_from
from rebalance_lab.api.answers.simulate_answer import checked_options, simulate_once
from rebalance_lab.api.answers.size_answer import SizeAsked, size_of
from rebalance_lab.api.service.service_settings import Limits, TooMuch
from rebalance_lab.assignors.json_contract import (
    ContractError,
    at,
    decode,
    expect_list,
    expect_object,
    group_from_json,
    refuse_unknown,
    shown,
)
from rebalance_lab.assignors.model import Group
from rebalance_lab.assignors.strategies import BUILT_IN, parse_strategy
from rebalance_lab.harness.evaluate.comparison import (
    Comparison,
    checked_strategies,
    compare,
    split_strategies,
    usual_strategies,
)
from rebalance_lab.harness.evaluate.report.drawings import drawing_of
from rebalance_lab.harness.measure.trace import Fact
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.model import AddPartitions, Autoscale, CreateTopic, Scale, Scenario
from rebalance_lab.harness.scenario.units import duration_text

Options: TypeAlias = Mapping[str, Any]
Tell: TypeAlias = Callable[..., None]
DAY_MS = 86_400_000
STEPS = 100
"""How often at most a run says how far it is."""


def encoded(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair in a client's text: legal as an escape only
        return json.dumps(value).encode()


def assign(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    value = as_requests(decode(body))
    if isinstance(value.get("requests"), list) and len(value["requests"]) > limits.requests:
        raise TooMuch("requests", "requests", f"there are more than {limits.requests:,} in one batch")
    asked = Asked(**options, check=partial(check_group, limits))
    return encoded(answer_document(value, asked))


def compare_assignments(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    value = as_requests(decode(body))
    refuse_unknown(value, ("group", "strategies"), "")
    names = expect_list(value.get("strategies", list(BUILT_IN)), "strategies")
    if not 1 <= len(names) <= len(BUILT_IN):
        raise ContractError("strategies", f"name 1 to {len(BUILT_IN)} of them, got {len(names)}")
    strategies = []
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise ContractError(at("strategies", i), f"expected a string, got {shown(name)}")
        strategies.append(parse_strategy(name, at("strategies", i)))
        if strategies[-1] in strategies[:-1]:
            raise ContractError(at("strategies", i), f"{strategies[-1]} stands twice")
    if "group" not in value:
        raise ContractError("group", "is missing")
    group = group_from_json(value["group"])
    check_group(limits, group, "group")
    return encoded(answer_side_by_side(group, strategies, **options))


def check_group(limits: Limits, group: Group, path: str) -> None:
    if len(group.members) > limits.members:
        raise TooMuch("members", at(path, "members"), f"there are more than {limits.members:,}")
    if sum(topic.partitions for topic in group.topics.values()) > limits.partitions:
        raise TooMuch("partitions", at(path, "topics"), f"there are more than {limits.partitions:,} partitions in all")


def document(body: bytes, options: dict[str, Any]) -> Any:
    """Read a document as its content type says: JSON is read strictly, without YAML's liberties."""
    return decode_document(body) if options.pop("media") == "yaml" else decode(body)


def recommend(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    given = dict(options)
    data = document(body, given)
    advised = advise(data, AdviceAsked(**given), partial(run_comparison, limits, tell))
    return encoded(advised.to_json())


def run_comparison(
    limits: Limits, tell: Tell, scenario: Scenario, *, strategies: str | None, seeds: int, weights: Mapping[str, float]
) -> Comparison:
    check_scenario(limits, scenario)
    chosen = checked_strategies(
        usual_strategies(scenario)[0] if strategies is None else split_strategies(strategies), "strategies"
    )
    runs = len(chosen) * seeds
    return compare(
        scenario,
        None if strategies is None else chosen,
        range(1, seeds + 1),
        weights=weights,
        jobs=1,
        progress=lambda done: tell(done / runs, runs=done),
    )


def check_scenario(limits: Limits, scenario: Scenario) -> None:
    """Check limits also for what is yet to come: a timeline may scale a group of three to ten thousand."""
    members, partitions = len(scenario.members), sum(topic.partitions for topic in scenario.topics)
    for event in scenario.timeline:
        match event:
            case Scale():
                members += event.to
            case Autoscale():
                members += event.most
            case AddPartitions():
                partitions += event.to
            case CreateTopic():
                partitions += event.topic.partitions
    if members > limits.members:
        raise TooMuch("members", "members", f"there would be more than {limits.members:,}")
    if partitions > limits.partitions:
        raise TooMuch("partitions", "topics", f"there would be more than {limits.partitions:,} partitions in all")
    if scenario.duration_ms > limits.simulated_days * DAY_MS:
        longest = duration_text(limits.simulated_days * DAY_MS)
        raise TooMuch("simulated_days", "duration", f"is longer than {longest}")


def simulate(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    given = dict(options)
    scenario, assumed = scenario_from(document(body, given))
    check_scenario(limits, scenario)
    done = simulate_once(scenario, **given, watch=watcher(scenario, limits, tell))
    drawn = drawing_of(done.strategy, done.run, done.drawn)
    return encoded({**done.to_json(), "notes": list(assumed), "drawing": drawn})


def check_simulation(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    """Check all that can be known to be wrong before the run."""
    given = dict(options)
    scenario, _ = scenario_from(document(body, given))
    check_scenario(limits, scenario)
    checked_options(scenario, **given)
    return b"{}"


def watcher(scenario: Scenario, limits: Limits, tell: Tell) -> Callable[[Fact], None]:
    step_ms = max(1, scenario.duration_ms // STEPS)
    facts, next_ms = 0, 0

    def watch(fact: Fact) -> None:
        nonlocal facts, next_ms
        facts += 1
        if facts > limits.simulated_events:
            raise TooMuch("simulated_events", "", f"the run has more than {limits.simulated_events:,} events")
        if fact["t"] >= next_ms:
            next_ms = fact["t"] + step_ms
            tell(min(1.0, fact["t"] / scenario.duration_ms), at_ms=fact["t"], events=facts)

    return watch


SIZE_COUNTS = ("partitions", "consumers", "brokers", "replication", "broker_limit", "deploys")
SIZE_SHARES = ("growth", "headroom")
SIZE_COUNT = ((int,), "a whole number")
SIZE_SHARE = ((str, int, float), "a percentage such as 30%")
SIZE_TEXT = ((str,), "text such as 5k/s or 2y")


def size(body: bytes, options: Options, limits: Limits, tell: Tell) -> bytes:
    value = expect_object(decode(body), "request")
    refuse_unknown(value, tuple(SizeAsked.__dataclass_fields__), "")
    for name, one in value.items():
        types, words = SIZE_COUNT if name in SIZE_COUNTS else SIZE_SHARE if name in SIZE_SHARES else SIZE_TEXT
        if type(one) not in types:
            raise ContractError(name, f"expected {words}, got {shown(one)}")
    for name in ("target", "per_consumer"):
        if name not in value:
            raise ContractError(name, "is missing")
    return encoded(size_of(SizeAsked(**value)).to_json())


OPERATIONS = {
    "assign": assign,
    "compare-assignments": compare_assignments,
    "recommend": recommend,
    "simulate": simulate,
    "check-simulation": check_simulation,
    "size": size,
}

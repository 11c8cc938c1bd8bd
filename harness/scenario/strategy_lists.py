"""Read what a group runs from one text: `consumer/uniform`, or every assignor that a classic member offers.

`classic/range,cooperative-sticky` is the middle of a migration and Kafka's own default: a member offers both, and the
group takes the first that all members offer. Java writes this as three properties, which this module reads too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.interface import Assignor
from rebalance_lab.assignors.json_contract import ContractError, at, shown
from rebalance_lab.assignors.strategies import PROTOCOLS, Strategy, load_named, parse_strategy
from rebalance_lab.protocol_v1.member.member import rebalance_protocol
from rebalance_lab.protocol_v2.coordinator.config import ASSIGNORS as BROKER_ASSIGNORS
from rebalance_lab.protocol_v2.coordinator.config import REBALANCE_PROTOCOLS, CoordinatorConfig

PROTOCOL = "group.protocol"
ASSIGNORS = "partition.assignment.strategy"
REMOTE = "group.remote.assignor"
STRATEGY_SETTINGS = (PROTOCOL, ASSIGNORS, REMOTE)

JAVA_DEFAULT = ("range", "cooperative-sticky")
JAVA_CLASSES = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def parse_strategies(text: str, path: str = "strategy") -> tuple[Strategy, ...]:
    """Parse strategies in the order in which a member offers them; `+static` holds for all."""
    static = text.endswith("+static")
    if "+static" in text.removesuffix("+static"):
        raise ContractError(path, f"+static stands once, at the end, and holds for all assignors: {shown(text)}")
    first, *others = (name.strip() for name in text.removesuffix("+static").split(","))
    strategies = [parse_strategy(first, path)]
    protocol = strategies[0].protocol
    if others and protocol != "classic":
        raise ContractError(path, f"only classic members offer several assignors, got {shown(text)}")
    strategies += (parse_strategy(f"{protocol}/{name.removeprefix(protocol + '/')}", path) for name in others)
    if len(set(strategies)) != len(strategies):
        raise ContractError(path, f"an assignor stands twice in {shown(text)}")
    return tuple(Strategy(one.protocol, one.assignor, static) for one in strategies)


def load_strategies(text: str, path: str = "strategy") -> list[Assignor]:
    """Load what one member offers: neither Java's consumers nor the lab's start with assignors that do not go
    together.
    """
    strategies = parse_strategies(text, path)
    assignors = load_all(strategies, path)
    if strategies[0].protocol == "classic":
        try:
            rebalance_protocol(assignors)
        except ValueError as error:
            raise ContractError(path, f"{listed(strategies)}: {error}") from None
    return assignors


def load_all(strategies: Sequence[Strategy], path: str = "strategy") -> list[Assignor]:
    """Load the assignors of one member, or of one broker."""
    assignors = [load_named(one, path) for one in strategies]
    names = [assignor.name for assignor in assignors]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ContractError(
            path, f"{listed(strategies)}: two assignors are called {twice}, and Kafka tells them by their names"
        )
    return assignors


def broker_assignors(broker: Mapping[str, Any]) -> tuple[str, ...]:
    """The assignors that a scenario's broker offers to KIP-848 groups, best first."""
    found: tuple[str, ...] = broker.get(BROKER_ASSIGNORS, CoordinatorConfig().group_consumer_assignors)
    return found


def is_served(strategy: Strategy, broker: Mapping[str, Any]) -> bool:
    """Whether the broker serves the protocol, and knows the assignor that the members ask for."""
    if strategy.protocol == "classic":
        return True
    protocols = broker.get(REBALANCE_PROTOCOLS, CoordinatorConfig().group_coordinator_rebalance_protocols)
    return "consumer" in protocols and (strategy.is_custom or strategy.assignor in broker_assignors(broker))


def check_broker_lists(text: str, broker: Mapping[str, Any]) -> None:
    """Refuse a strategy that the broker would refuse to every member."""
    for one in parse_strategies(text):
        if not is_served(one, broker):
            name = BROKER_ASSIGNORS if one.assignor not in broker_assignors(broker) else REBALANCE_PROTOCOLS
            message = f"lists {', '.join(broker[name])}: no member of {one} could join"
            raise ContractError(at("broker", name), message)


def listed(strategies: Sequence[Strategy]) -> str:
    return ",".join(one.assignor for one in strategies)


def strategies_text(strategies: tuple[Strategy, ...]) -> str:
    """Return what parse_strategies reads back."""
    return f"{strategies[0].protocol}/{listed(strategies)}{'+static' if strategies[0].static else ''}"


def normal_strategy(text: str, path: str = "strategy") -> str:
    return strategies_text(parse_strategies(text, path))


def strategy_from_settings(
    client: Mapping[str, Any], path: str = "client", broker: Mapping[str, Any] | None = None
) -> str | None:
    """The strategy that Kafka's three properties say together; None when none of them is set."""
    if not any(name in client for name in STRATEGY_SETTINGS):
        return None
    protocol = str(client.get(PROTOCOL, "classic")).lower()
    if protocol not in PROTOCOLS:
        raise ContractError(
            at(path, PROTOCOL), f"expected one of {', '.join(PROTOCOLS)}, got {shown(client[PROTOCOL])}"
        )
    other = ASSIGNORS if protocol == "consumer" else REMOTE
    if other in client:
        raise ContractError(at(path, other), f"means nothing with {PROTOCOL}={protocol}, and Kafka refuses it")
    if protocol == "consumer":
        return normal_strategy(f"consumer/{client.get(REMOTE, broker_assignors(broker or {})[0])}", at(path, REMOTE))
    names = assignor_names(client.get(ASSIGNORS, JAVA_DEFAULT), at(path, ASSIGNORS))
    return normal_strategy(f"classic/{','.join(names)}", at(path, ASSIGNORS))


def assignor_names(value: Any, path: str) -> list[str]:
    """A list or a text with commas, of Java's classes or librdkafka's names."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, str) for one in listed):
        raise ContractError(path, f"expected assignors such as range,cooperative-sticky, got {shown(value)}")
    return [JAVA_CLASSES.get(one.strip().rpartition(".")[2], one.strip()) for one in listed]


def agreed_strategy(said: str | None, client: Mapping[str, Any], broker: Mapping[str, Any]) -> str | None:
    """`strategy` and the client's properties may both say it, if they say the same."""
    from_settings = strategy_from_settings(client, broker=broker)
    if said is None or from_settings is None:
        return said or from_settings
    if said.removesuffix("+static") != from_settings:
        raise ContractError("strategy", f"is {said}, but the client's settings say {from_settings}")
    return said

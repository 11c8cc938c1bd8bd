"""List the settings of clients and brokers under their Kafka names, and read their values.

Given      a mapping as it stands in a scenario
Returns    the same with its values as the machines want them (milliseconds, numbers, booleans), or ContractError
Kinds      "ms" also reads 45s; "ms+" must not be 0; "count" is at least 1; the rest is what it says ("protocol" and
           "text or list" are looked at as a strategy, in strategy_lists.py)
Start at   client_settings, broker_settings
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from rebalance_lab.assignors.json_contract import INT32_MAX, ContractError, at, expect_object, shown
from rebalance_lab.assignors.strategies import PROTOCOLS
from rebalance_lab.harness.scenario.forms import value_schemas as schemas
from rebalance_lab.harness.scenario.units import setting_ms
from rebalance_lab.protocol_v1.coordinator import config as v1
from rebalance_lab.protocol_v2.coordinator import config as v2

CLIENT: Mapping[str, str] = {
    "session.timeout.ms": "ms+",
    "heartbeat.interval.ms": "ms+",
    "max.poll.interval.ms": "ms+",
    "max.poll.records": "count",
    "enable.auto.commit": "yes or no",
    "auto.commit.interval.ms": "ms",
    "request.timeout.ms": "ms",
    "default.api.timeout.ms": "ms",
    "retry.backoff.ms": "ms",
    "retry.backoff.max.ms": "ms",
    "exclude.internal.topics": "yes or no",
    "client.id": "text",
}
WHOLE_GROUP: Mapping[str, str] = {
    "group.id": "text",
    "metadata.max.age.ms": "ms",
    "group.protocol": "protocol",
    "partition.assignment.strategy": "text or list",
    "group.remote.assignor": "text",
}
"""In the scenario's `client` only."""

ONE_MEMBER: Mapping[str, str] = {"group.instance.id": "text", "client.rack": "text"}
"""In a member's `client` only."""

MAY_BE_ZERO = ("group.consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms")
POLICY = "group.consumer.migration.policy"
LEAST_SESSION, MOST_SESSION = "group.min.session.timeout.ms", "group.max.session.timeout.ms"


def broker_kind(name: str) -> str:
    if name == POLICY:
        return "policy"
    if name in v2.LISTS:
        return name
    if name == "offsets.commit.timeout.ms":
        return "ms+"
    if name.endswith("interval.ms") and name not in MAY_BE_ZERO:
        return "ms+"
    return "ms" if name.endswith(".ms") else "count" if name.endswith(".size") else "number"


BROKER: Mapping[str, str] = {name: broker_kind(name) for name in dict.fromkeys((*v1.PROPERTIES, *v2.PROPERTIES))}

LIBRDKAFKA: Mapping[str, str] = {
    "topic.metadata.refresh.interval.ms": "Kafka's name for it is metadata.max.age.ms",
    "socket.timeout.ms": "Kafka's name for it is request.timeout.ms",
    "coordinator.query.interval.ms": "the lab's members ask as Java's do",
    "enable.auto.offset.store": "the lab stores an offset once its record is processed",
    "auto.commit.enable": "Kafka's name for it is enable.auto.commit",
    "consume.callback.max.messages": "Kafka's name for it is max.poll.records",
    "group.protocol.type": "it is always consumer here",
    "max.in.flight.requests.per.connection": "the lab's members ask as Java's do",
    "queued.min.messages": "the lab does not model prefetching",
    "queued.max.messages.kbytes": "the lab does not model prefetching",
    "fetch.wait.max.ms": "the lab does not model fetching",
    "fetch.queue.backoff.ms": "the lab does not model fetching",
    "reconnect.backoff.jitter.ms": "the lab does not model connections",
    "statistics.interval.ms": "the lab keeps its own statistics",
}
NOT_MODELLED = (
    *("bootstrap.servers", "key.deserializer", "value.deserializer", "auto.offset.reset", "isolation.level"),
    *("fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "security.protocol"),
    *("allow.auto.create.topics", "interceptor.classes", "receive.buffer.bytes", "send.buffer.bytes", "check.crcs"),
    *("connections.max.idle.ms", "client.dns.lookup", "reconnect.backoff.ms", "reconnect.backoff.max.ms"),
)


def client_settings(value: Any, path: str, *, of_member: bool = False) -> dict[str, Any]:
    known = {**CLIENT, **(ONE_MEMBER if of_member else WHOLE_GROUP)}
    settings = expect_object(value, path)
    for name in settings:
        if name not in known:
            raise ContractError(at(path, str(name)), why_unknown(str(name), known, of_member=of_member))
    return {name: setting_value(setting, known[name], at(path, name)) for name, setting in settings.items()}


def broker_settings(value: Any, path: str = "broker") -> dict[str, Any]:
    settings = expect_object(value, path)
    for name in settings:
        if name not in BROKER:
            raise ContractError(
                at(path, str(name)), f"is no broker setting that the lab knows{close(str(name), BROKER)}"
            )
    values = {name: setting_value(setting, BROKER[name], at(path, name)) for name, setting in settings.items()}
    check_limits(values, path)
    return values


def why_unknown(name: str, known: Mapping[str, str], *, of_member: bool) -> str:
    if name in LIBRDKAFKA:
        return f"is librdkafka's own setting: {LIBRDKAFKA[name]}"
    if name in NOT_MODELLED:
        return "means nothing to the lab: leave it out"
    if name in WHOLE_GROUP:
        return "is set for the whole group: in the scenario's `client`"
    if name in ONE_MEMBER:
        return "is one member's own: write it in that member's `client`, or as rack or instance_id"
    if name in BROKER and not of_member:
        return "is a broker's setting: write it in `broker`"
    return f"is no consumer setting that the lab knows{close(name, known)}"


def close(name: str, known: Mapping[str, str]) -> str:
    found = get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else f"; known: {', '.join(known)}"


def setting_value(value: Any, kind: str, path: str) -> Any:
    if kind in ("ms", "ms+"):
        try:
            number = setting_ms(value)
        except ValueError as error:
            raise ContractError(path, str(error)) from None
        return whole(number, path, low=1 if kind == "ms+" else 0)
    if kind in ("count", "number"):
        return whole(value, path, low=1 if kind == "count" else 0)
    if kind == "yes or no":
        return expect_boolean(value, path)
    if kind == "policy" and value not in (words := [policy.value for policy in v2.MigrationPolicy]):
        raise ContractError(path, f"expected one of {', '.join(words)}, got {shown(value)}")
    if kind == "text or list":
        return value
    if kind in v2.LISTS:
        try:
            return v2.LISTS[kind].read(value)
        except ValueError as error:
            raise ContractError(path, f"{error}, got {shown(value)}") from None
    if not isinstance(value, str) or not value:
        raise ContractError(path, f"expected text, got {shown(value)}")
    return value


def whole(value: Any, path: str, *, low: int) -> int:
    if type(value) is not int:
        raise ContractError(path, f"expected a whole number, got {shown(value)}")
    if not low <= value <= INT32_MAX:
        raise ContractError(path, f"must be between {low} and {INT32_MAX}, got {value}")
    return value


def expect_boolean(value: Any, path: str) -> bool:
    """Read a boolean. Properties files write `true` as text, and so may a scenario that was pasted from one."""
    if value in ("true", "false"):
        return bool(value == "true")
    if not isinstance(value, bool):
        raise ContractError(path, f"expected true or false, got {shown(value)}")
    return value


def check_limits(settings: Mapping[str, Any], path: str) -> None:
    """Check what a broker checks when it starts: each default lies between its own minimum and maximum. Of two that do
    not go together the error names one that is set.
    """
    classic = v1.CoordinatorConfig()
    low = settings.get(LEAST_SESSION, classic.group_min_session_timeout_ms)
    high = settings.get(MOST_SESSION, classic.group_max_session_timeout_ms)
    if low > high:
        if LEAST_SESSION in settings:
            raise ContractError(at(path, LEAST_SESSION), f"is {low}, above {MOST_SESSION} ({high})")
        raise ContractError(at(path, MOST_SESSION), f"is {high}, below {LEAST_SESSION} ({low})")
    config = v2.CoordinatorConfig.from_properties({k: x for k, x in settings.items() if k in v2.PROPERTIES})
    for name in v2.GROUP_SETTINGS:
        least, most = v2.limits(config, name)
        value, full = v2.default_of(config, name), f"group.{name}"
        if not least <= value <= most:
            which, limit = ("min", least) if value < least else ("max", most)
            bound = full.replace("consumer.", f"consumer.{which}.")
            if full not in settings and bound in settings:
                raise ContractError(at(path, bound), f"is {limit}, and {full} {value}")
            message = f"must be between its own minimum {least} and maximum {most}, got {value}"
            raise ContractError(at(path, full), message)
    session, heartbeat = (f"group.{name}" for name in (v2.SESSION_TIMEOUT, v2.HEARTBEAT_INTERVAL))
    session_ms, beat_ms = config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms
    if beat_ms >= session_ms:
        if heartbeat in settings:
            raise ContractError(at(path, heartbeat), f"is {beat_ms}, and must be lower than {session} ({session_ms})")
        raise ContractError(at(path, session), f"is {session_ms}, and must be above {heartbeat} ({beat_ms})")


def settings_schema(known: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings as JSON Schema, so that an editor completes the names."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: KIND_SCHEMAS[kind] for name, kind in known.items()},
    }


KIND_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "ms": schemas.milliseconds(0),
    "ms+": schemas.milliseconds(1),
    "count": {"type": "integer", "minimum": 1, "maximum": INT32_MAX},
    "number": {"type": "integer", "minimum": 0, "maximum": INT32_MAX},
    "yes or no": {"enum": [True, False, "true", "false"]},
    "protocol": schemas.text("^([cC][lL][aA][sS][sS][iI][cC]|[cC][oO][nN][sS][uU][mM][eE][rR])$", *PROTOCOLS),
    "policy": {"enum": [policy.value for policy in v2.MigrationPolicy]},
    **{
        name: {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "items": {"enum": list(setting.names)}, "minItems": 1, "uniqueItems": True},
            ]
        }
        for name, setting in v2.LISTS.items()
    },
    "text": {"type": "string", "minLength": 1},
    "text or list": {"anyOf": [schemas.NAME, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
}

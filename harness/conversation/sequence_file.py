"""Read a sequence file: a timed list of requests as JSON, one format for recorded brokers and failing tests.

Given      decoded JSON, and the protocols that can be played
Returns    a SequenceFile, or ContractError with the path of the first bad field
Not here   bodies: they may refer to earlier answers, so they are read when their turn comes
Start at   parse_sequence

    {"protocol": "classic", "config": {"group.max.size": 2}, "topics": {"orders": 6}, "until_ms": 20000,
     "member_ids": ["x-1", "x-2"],
     "steps": [{"at_ms": 0, "as": "a1", "request": "JoinGroup", "version": 9, "client_id": "app", "body": {...}},
               {"at_ms": 5, "topics": {"orders": 9}},
               {"at_ms": 6, "appends": "hold"},
               {"at_ms": 8, "transaction": {"producer_id": 7, "committed": true}},
               {"at_ms": 9, "coordinator": "crash"}]}

`$a1.members[0].member_id` is a field of an earlier answer (`$$` begins a text with one dollar). `member_ids` are the
ids to hand out, in order, so that a recording of a broker and its random ids can be played; others are numbered. A
topic may be `{"partitions": 6, "id": "<Kafka's base64 id>"}`. `answered` is what a broker answered (`rebalance-lab
record`), for comparisons; it is not read here.
`appends` says what the log does from now on: "ok", "hold" (until "ok"; 5 s without it count as timed out), or the name
of the error that every append gets. `coordinator` is "crash" (connections drop) or "move" (parked requests are
answered); either way the next one is given what was durable. `transaction` is the marker that ends one: what that
producer's TxnOffsetCommit left pending counts from then on, or is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_lab.assignors.json_contract import (
    INT32_MAX,
    ContractError,
    at,
    expect_list,
    expect_object,
    refuse_unknown,
    shown,
)
from rebalance_lab.assignors.model import Topic
from rebalance_lab.harness.hosts.coordinator_host import ServedProtocol, Topics
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import Request

SEQUENCE_KEYS = ("protocol", "config", "topics", "steps", "until_ms", "member_ids", "answered")
COMMIT_TIMEOUT = "offsets.commit.timeout.ms"
STEP_KEYS = ("at_ms", "as", "request", "version", "client_id", "body")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    at_ms: int
    path: str
    name: str = ""
    request: type[Request] | None = None
    version: int = 0
    client_id: str = "client"
    body: Any = None
    topics: Topics | None = None
    appends: str | None = None
    coordinator: str | None = None
    transaction: tuple[int, bool] | None = None
    """Whose, and whether it is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceFile:
    served: ServedProtocol
    config: Mapping[str, Any]
    topics: Topics | None
    steps: Sequence[Step]
    until_ms: int
    member_ids: Sequence[str]


def parse_sequence(value: Any, protocols: Mapping[str, ServedProtocol]) -> SequenceFile:
    sequence = expect_object(value, "sequence")
    refuse_unknown(sequence, SEQUENCE_KEYS, "")
    protocol = sequence.get("protocol", "classic")
    if not isinstance(protocol, str) or protocol not in protocols:
        raise ContractError("protocol", f"expected one of {', '.join(protocols)}, got {shown(protocol)}")
    served = protocols[protocol]
    if "steps" not in sequence:
        raise ContractError("steps", "is missing")
    steps = parse_steps(sequence["steps"], served)
    last_ms = steps[-1].at_ms if steps else 0
    topics = sequence.get("topics")
    member_ids = expect_list(sequence.get("member_ids", []), "member_ids")
    return SequenceFile(
        served=served,
        config=parse_config(sequence.get("config", {}), served),
        topics=None if topics is None else parse_topics(topics, "topics"),
        steps=steps,
        until_ms=whole_number(sequence.get("until_ms", last_ms), "until_ms", low=last_ms),
        member_ids=[text(item, at("member_ids", i)) for i, item in enumerate(member_ids)],
    )


def parse_config(value: Any, served: ServedProtocol) -> dict[str, Any]:
    config = expect_object(value, "config")
    refuse_unknown(config, served.properties, "config")
    return {name: parse_setting(setting, name, served) for name, setting in config.items()}


def parse_setting(value: Any, name: str, served: ServedProtocol) -> Any:
    path = at("config", name)
    if name in served.words:
        if value not in served.words[name]:
            raise ContractError(path, f"expected one of {', '.join(served.words[name])}, got {shown(value)}")
        return value
    if name in served.lists:
        try:
            return list(served.lists[name].read(value))
        except ValueError as error:
            raise ContractError(path, f"{error}, got {shown(value)}") from None
    is_positive = name.endswith("interval.ms") and name not in served.may_be_zero
    return whole_number(value, path, low=1 if is_positive or name == COMMIT_TIMEOUT else 0)


def parse_topics(value: Any, path: str) -> dict[str, int | Topic]:
    return {name: parse_topic(described, at(path, name)) for name, described in expect_object(value, path).items()}


def parse_topic(value: Any, path: str) -> int | Topic:
    if not isinstance(value, dict):
        return whole_number(value, path)
    refuse_unknown(value, ("partitions", "id"), path)
    return Topic(
        whole_number(value.get("partitions"), at(path, "partitions")), id=text(value.get("id"), at(path, "id"))
    )


def parse_steps(value: Any, served: ServedProtocol) -> list[Step]:
    steps: list[Step] = []
    names: set[str] = set()
    for i, described in enumerate(expect_list(value, "steps")):
        step = parse_step(described, at("steps", i), served)
        if steps and step.at_ms < steps[-1].at_ms:
            raise ContractError(at(step.path, "at_ms"), f"{step.at_ms} comes after {steps[-1].at_ms}: steps go by time")
        if step.name in names:
            raise ContractError(at(step.path, "as"), f"{shown(step.name)} is the name of an earlier step")
        names.add(step.name)
        steps.append(step)
    return steps


def parse_step(value: Any, path: str, served: ServedProtocol) -> Step:
    step = expect_object(value, path)
    if "at_ms" not in step:
        raise ContractError(at(path, "at_ms"), "is missing")
    at_ms = whole_number(step["at_ms"], at(path, "at_ms"))
    for key, parse in OTHER_STEPS.items():
        if key in step:
            refuse_unknown(step, ("at_ms", "as", key), path)
            name = text(step.get("as", path), at(path, "as"))
            return Step(at_ms=at_ms, path=path, name=name, **{key: parse(step[key], at(path, key))})
    refuse_unknown(step, STEP_KEYS, path)
    for key in ("request", "body"):
        if key not in step:
            raise ContractError(at(path, key), "is missing")
    name = text(step["request"], at(path, "request"))
    if name not in served.requests:
        raise ContractError(at(path, "request"), f"expected one of {', '.join(served.requests)}, got {shown(name)}")
    kind = served.requests[name]
    version = step.get("version", kind.latest)
    if type(version) is not int or version not in kind.versions:
        first, last = kind.versions[0], kind.versions[-1]
        raise ContractError(at(path, "version"), f"{name} is served in versions {first}-{last}, not {shown(version)}")
    return Step(
        at_ms=at_ms,
        path=path,
        name=text(step.get("as", path), at(path, "as")),
        request=kind,
        version=version,
        client_id=text(step.get("client_id", "client"), at(path, "client_id")),
        body=step["body"],
    )


def parse_appends(value: Any, path: str) -> str:
    if value in ("ok", "hold") or value in Error.__members__:
        return str(value)
    raise ContractError(path, f'expected "ok", "hold" or the name of an error, got {shown(value)}')


def parse_coordinator(value: Any, path: str) -> str:
    if value in ("crash", "move"):
        return str(value)
    raise ContractError(path, f'expected "crash" or "move", got {shown(value)}')


def parse_transaction(value: Any, path: str) -> tuple[int, bool]:
    described = expect_object(value, path)
    refuse_unknown(described, ("producer_id", "committed"), path)
    for key, kind, expected in (("producer_id", int, "a whole number"), ("committed", bool, "true or false")):
        if type(described.get(key)) is not kind:
            raise ContractError(at(path, key), f"expected {expected}, got {shown(described.get(key))}")
    return described["producer_id"], described["committed"]


OTHER_STEPS: dict[str, Callable[[Any, str], Any]] = {
    "topics": parse_topics,
    "appends": parse_appends,
    "coordinator": parse_coordinator,
    "transaction": parse_transaction,
}


def whole_number(value: Any, path: str, *, low: int = 0) -> int:
    if type(value) is not int:
        raise ContractError(path, f"expected a whole number, got {shown(value)}")
    if not low <= value <= INT32_MAX:
        raise ContractError(path, f"must be between {low} and {INT32_MAX}, got {shown(value)}")
    return value


def text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ContractError(path, f"expected a string, got {shown(value)}")
    return value

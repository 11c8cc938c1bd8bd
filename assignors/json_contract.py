"""Read the JSON contract: a group and a strategy in, an assignment out, the same on the command line and over HTTP.

Given      text or decoded JSON from outside
Returns    model values, or ContractError with the path of the first bad field and one line on what is wrong
Strict     unknown keys are refused: a misspelt `instance_id` would otherwise change the answer in silence
Start at   parse_request, group_from_json, assignment_to_json
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rebalance_lab.assignors.java.string_order import in_java_order
from rebalance_lab.assignors.model import EMPTY, Group, Member, Topic

MAX_PARTITIONS = 10_000_000
"""A group's partitions in all. Kafka clusters stay far below; a typo of three zeros should not eat the machine."""

INT32_MAX = 2**31 - 1
PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
LONGEST_KEY = 249
"""In a path, so that a complaint stays a line: as long as a topic's name may be."""


class ContractError(ValueError):
    """Tell that an input is wrong: `path` says where, the message says what."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

    def to_json(self) -> dict[str, Any]:
        return {"error": {"path": self.path, "message": self.message}}


def at(path: str, key: str | int) -> str:
    """Return the path one step down: `.name`, `[0]`, or `["a.b"]` for names that a dot would make ambiguous."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if len(key) > LONGEST_KEY:
        key = key[: LONGEST_KEY - 1] + "…"
    if PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


class SpoiltJson(ContractError):
    """Stand for JSON by its grammar that has a key twice in one object, or a number that is none."""


class _Spoilt(Exception):
    pass


class _Pairs(list[tuple[str, Any]]):
    """Hold an object as it is written."""


class _Constant(str):
    """Stand for NaN or an infinity, which are not JSON."""

    __slots__ = ()


def decode(text: str | bytes) -> Any:
    """Decode JSON without what Python's reader lets pass: duplicate keys, NaN, nesting without end."""
    try:
        try:
            return json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
        except _Spoilt:  # rare enough to be read again for the place
            _refuse_spoilt(json.loads(text, object_pairs_hook=_Pairs, parse_constant=_Constant), "")
    except RecursionError:
        raise ContractError("", "the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ContractError("", f"not UTF-8 text: byte {error.start} cannot be read") from None
    except json.JSONDecodeError as error:
        raise ContractError("", f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except ContractError:
        raise
    except ValueError:  # an integer of more digits than Python converts
        raise ContractError("", f"a number has more than {sys.get_int_max_str_digits():,} digits") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Spoilt
    return result


def _no_constant(name: str) -> Any:
    raise _Spoilt


def _refuse_spoilt(value: object, path: str) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, one in value:
            if key in seen:
                raise SpoiltJson(at(path, key), "the key stands twice in one object")
            seen.add(key)
            _refuse_spoilt(one, at(path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            _refuse_spoilt(one, at(path, index))
    elif isinstance(value, _Constant):
        raise SpoiltJson(path, f"{value} is not a JSON number")


def shown(value: object) -> str:
    """Return a value as part of a one-line message: JSON, and short."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except (TypeError, ValueError):
        text = repr(value)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= 60 else text[:57] + "..."


def parse_request(value: Any, path: str = "") -> tuple[str | None, Group]:
    """Parse one request: its strategy (None when it names none) and its group."""
    request = expect_object(value, path or "request")
    refuse_unknown(request, ("strategy", "group"), path)
    strategy = request.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        raise ContractError(at(path, "strategy"), f"expected a string, got {shown(strategy)}")
    if "group" not in request:
        raise ContractError(at(path, "group"), "is missing")
    return strategy, group_from_json(request["group"], at(path, "group"))


def group_from_json(value: Any, path: str = "group") -> Group:
    group = expect_object(value, path)
    refuse_unknown(group, ("topics", "members"), path)
    for key in ("topics", "members"):
        if key not in group:
            raise ContractError(at(path, key), "is missing")
    topics_path, members_path = at(path, "topics"), at(path, "members")
    topics: dict[str, Topic] = {}
    total = 0
    for name, described in expect_object(group["topics"], topics_path).items():
        topics[name] = topic = _topic(name, described, at(topics_path, name), room=MAX_PARTITIONS - total)
        total += topic.partitions
    _refuse_shared_ids(topics, topics_path)
    members: dict[str, Member] = {}
    subscriptions: dict[tuple[str, ...], tuple[str, ...]] = {}
    for member_id, described in expect_object(group["members"], members_path).items():
        members[member_id] = _member(member_id, described, at(members_path, member_id), subscriptions)
    return Group(topics, members)


def _topic(name: str, value: Any, path: str, room: int) -> Topic:
    _check_name(name, path)
    topic = expect_object(value, path)
    refuse_unknown(topic, ("partitions", "racks", "load", "id"), path)
    if "partitions" not in topic:
        raise ContractError(at(path, "partitions"), "is missing")
    partitions = _integer(topic["partitions"], at(path, "partitions"), low=0, high=INT32_MAX)
    if partitions > room:
        raise ContractError(at(path, "partitions"), f"the group has more than {MAX_PARTITIONS:,} partitions in all")
    racks = topic.get("racks")
    load = topic.get("load")
    return Topic(
        partitions,
        racks=None if racks is None else _racks(racks, partitions, at(path, "racks")),
        load=None if load is None else _loads(load, partitions, at(path, "load")),
        id=None if topic.get("id") is None else _topic_id(topic["id"], at(path, "id")),
    )


def _racks(value: Any, partitions: int, path: str) -> tuple[tuple[str, ...], ...]:
    lists = _list_of_length(value, partitions, path)
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    result = []
    for i, racks in enumerate(lists):
        one = tuple(_strings(racks, at(path, i)))
        result.append(known.setdefault(one, one))
    return tuple(result)


def _loads(value: Any, partitions: int, path: str) -> tuple[float, ...]:
    return tuple(
        _number(load, at(path, i), least=0.0) for i, load in enumerate(_list_of_length(value, partitions, path))
    )


def _list_of_length(value: Any, partitions: int, path: str) -> list[Any]:
    items = expect_list(value, path)
    if len(items) != partitions:
        raise ContractError(path, f"has {len(items)} entries for {partitions} partitions; it needs one each")
    return items


def _topic_id(value: Any, path: str) -> str:
    if isinstance(value, str):
        try:
            if len(value) == 22 and len(base64.b64decode(value + "==", altchars=b"-_", validate=True)) == 16:
                return value
        except (binascii.Error, ValueError):
            pass
    raise ContractError(path, f"expected a topic id as Kafka prints it (22 characters of base64), got {shown(value)}")


def _refuse_shared_ids(topics: Mapping[str, Topic], path: str) -> None:
    owner: dict[str, str] = {}
    for name, topic in topics.items():
        if topic.id is not None and owner.setdefault(topic.id, name) != name:
            raise ContractError(at(at(path, name), "id"), f"is the id of topic {shown(owner[topic.id])} too")


MEMBER_KEYS = ("topics", "owned", "generation", "instance_id", "rack", "capacity")


def _member(member_id: str, value: Any, path: str, subscriptions: dict[tuple[str, ...], tuple[str, ...]]) -> Member:
    _check_name(member_id, path)
    member = expect_object(value, path)
    refuse_unknown(member, MEMBER_KEYS, path)
    if "topics" not in member:
        raise ContractError(at(path, "topics"), "is missing")
    topics = tuple(_strings(member["topics"], at(path, "topics")))
    owned = member.get("owned")
    generation = member.get("generation")
    if generation is not None:
        generation = _integer(generation, at(path, "generation"), low=-1, high=INT32_MAX)
    capacity = member.get("capacity")
    return Member(
        # Equal subscriptions become one object: an assignor then tells by identity that a group is homogeneous.
        topics=subscriptions.setdefault(topics, topics),
        owned=EMPTY if not owned and isinstance(owned, dict | None) else _owned(owned, at(path, "owned")),
        generation=None if generation == -1 else generation,
        instance_id=_optional_string(member.get("instance_id"), at(path, "instance_id")),
        rack=_optional_string(member.get("rack"), at(path, "rack")),
        capacity=1.0 if capacity is None else _number(capacity, at(path, "capacity"), above=0.0),
    )


def _owned(value: Any, path: str) -> Mapping[str, Sequence[int]]:
    owned: dict[str, list[int]] = {}
    for topic, partitions in expect_object(value, path).items():
        here = at(path, topic)
        _check_name(topic, here)
        listed = expect_list(partitions, here)
        for i, partition in enumerate(listed):
            if type(partition) is not int or not 0 <= partition <= INT32_MAX:
                raise ContractError(at(here, i), f"expected a partition number, got {shown(partition)}")
        if len(set(listed)) != len(listed):
            first = next(p for i, p in enumerate(listed) if p in listed[:i])
            raise ContractError(at(here, listed.index(first, listed.index(first) + 1)), f"partition {first} twice")
        if listed:
            owned[topic] = listed
    return owned


def _check_name(name: str, path: str) -> None:
    if not name:
        raise ContractError(path, "a name must not be empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ContractError(path, "a name must be valid unicode (it holds half a surrogate pair)") from None


def expect_object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ContractError(path, f"expected an object, got {shown(value)}")
    return value


def expect_list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise ContractError(path, f"expected a list, got {shown(value)}")
    return value


def refuse_unknown(value: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    for key in value:
        if key not in known:
            raise ContractError(at(path, key), f"unknown key; known here: {', '.join(known)}")


def _strings(value: Any, path: str) -> list[str]:
    strings = expect_list(value, path)
    for i, text in enumerate(strings):
        if not isinstance(text, str):
            raise ContractError(at(path, i), f"expected a string, got {shown(text)}")
        _check_name(text, at(path, i))
    return strings


def _optional_string(value: Any, path: str) -> str | None:
    """Read a string; Kafka reads an empty rack or instance id as none."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ContractError(path, f"expected a string, got {shown(value)}")
    _check_name(value, path)
    return value


def _integer(value: Any, path: str, *, low: int, high: int) -> int:
    if type(value) is not int:  # bool is an int in Python and not in JSON
        raise ContractError(path, f"expected a whole number, got {shown(value)}")
    if not low <= value <= high:
        raise ContractError(path, f"must be between {low} and {high}, got {shown(value)}")
    return value


def _number(value: Any, path: str, *, least: float | None = None, above: float | None = None) -> float:
    if type(value) not in (int, float):
        raise ContractError(path, f"expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ContractError(path, f"must be finite, got {shown(value)}")
    if least is not None and number < least:
        raise ContractError(path, f"must not be below {least:g}, got {shown(value)}")
    if above is not None and number <= above:
        raise ContractError(path, f"must be above {above:g}, got {shown(value)}")
    return number


def assignment_to_json(
    assignment: Mapping[str, Mapping[str, Sequence[int]]], group: Group
) -> dict[str, dict[str, list[int]]]:
    """List members in the group's order, topics by name, partitions ascending, empty topics left out."""
    known = {member: assignment.get(member, {}) for member in group.members}
    return {
        member: {topic: sorted(share[topic]) for topic in in_java_order(share) if share[topic]}
        for member, share in (known | {member: assignment[member] for member in assignment}).items()
    }


def group_to_json(group: Group) -> dict[str, Any]:
    """Return what group_from_json reads back to an equal group."""
    topics: dict[str, Any] = {}
    for name, topic in group.topics.items():
        topics[name] = {"partitions": topic.partitions}
        if topic.racks is not None:
            topics[name]["racks"] = [list(racks) for racks in topic.racks]
        if topic.load is not None:
            topics[name]["load"] = list(topic.load)
        if topic.id is not None:
            topics[name]["id"] = topic.id
    members: dict[str, Any] = {}
    for member_id, member in group.members.items():
        described: dict[str, Any] = {"topics": list(member.topics)}
        members[member_id] = described
        if member.owned:
            described["owned"] = {topic: list(partitions) for topic, partitions in member.owned.items()}
        for key in ("generation", "instance_id", "rack"):
            if getattr(member, key) is not None:
                described[key] = getattr(member, key)
        if member.capacity != 1.0:
            described["capacity"] = member.capacity
    return {"topics": topics, "members": members}

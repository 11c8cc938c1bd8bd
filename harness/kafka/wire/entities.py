"""Build kio's entities from plain dicts, in any version: fields that a version lacks are left out, missing ones are
zero.

build(load_response_schema(3, 12), {"brokers": [{"node_id": 1, "host": "127.0.0.1", "port": 9092}]})
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from kio.schema.errors import ErrorCode


def build(kind: type[Any], values: Mapping[str, Any]) -> Any:
    hints = hints_of(cast(Hashable, kind))
    given: dict[str, Any] = {}
    for each in fields(kind):
        if each.name in values:
            given[each.name] = converted(hints[each.name], values[each.name])
        elif each.default is MISSING:
            given[each.name] = zero_of(hints[each.name])
    return kind(**given)


@cache
def hints_of(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def converted(hint: Any, value: Any) -> Any:
    bare = next((choice for choice in get_args(hint) if choice is not NoneType), hint) if is_union(hint) else hint
    if isinstance(value, list):
        return tuple(converted(get_args(bare)[0], item) for item in value)
    return build(bare, value) if isinstance(value, dict) else value


def zero_of(hint: Any) -> Any:
    if is_union(hint):
        return None
    if get_origin(hint) is tuple:
        return ()
    if issubclass(hint, timedelta):
        return timedelta()
    if issubclass(hint, ErrorCode):
        return ErrorCode.none
    if is_dataclass(hint):
        return build(cast(type, hint), {})
    return "" if issubclass(hint, str) else b"" if issubclass(hint, bytes) else 0


def is_union(hint: Any) -> bool:
    return get_origin(hint) is UnionType

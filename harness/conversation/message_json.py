"""Convert protocol messages to JSON and back for sequence files: Kafka's names in snake case, bytes in base64.

Given      a request class, its version and a decoded body, or a response and the version of its request
Returns    the message, or ContractError with the path of the bad field; a body with every field that version has
Driven by  the dataclasses themselves and their `wire` metadata, so that a new message needs no code here
Start at   request_from_json, response_to_json
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from rebalance_lab.assignors.json_contract import ContractError, at, expect_list, expect_object, refuse_unknown, shown
from rebalance_lab.protocol_v1.common.messages import Request

HEADER = ("version", "correlation_id", "client_id", "client_host")
INT64_FIELDS = ("committed_offset", "retention_time_ms", "producer_id")
"""Every other number of these messages is an int32 on the wire."""

AnyRequest = TypeVar("AnyRequest", bound=Request)


def request_from_json(
    kind: type[AnyRequest], version: int, body: Any, path: str, header: Mapping[str, Any]
) -> AnyRequest:
    return kind(version=version, **header, **_fields_from_json(kind, version, body, path))


def response_to_json(message: Any, version: int) -> dict[str, Any]:
    return {
        wire_name(field, version): _to_json(_null_as_text(getattr(message, field.name), field, version), version)
        for field in fields(message)
        if on_wire(field, version)
    }


def _to_json(value: Any, version: int) -> Any:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, tuple):
        return [_to_json(item, version) for item in value]
    if is_dataclass(value):
        return response_to_json(value, version)
    return value


def _null_as_text(value: Any, field: Field[Any], version: int) -> Any:
    """Write null as the empty string, as Kafka does where a version has no way to write null."""
    return "" if value is None and version < field.metadata.get("nullable_since", 0) else value


def on_wire(field: Field[Any], version: int) -> bool:
    return bool(field.metadata.get("since", 0) <= version <= field.metadata.get("until", version))


def wire_name(field: Field[Any], version: int) -> str:
    since, name = field.metadata.get("renamed_since") or (version + 1, field.name)
    return str(name) if version >= since else field.name


@cache
def _known(kind: Hashable, version: int) -> dict[str, tuple[Field[Any], Any, bool]]:
    """Return the fields by their names in that version: a field, its type, and whether the version has it."""
    assert isinstance(kind, type)
    hints = get_type_hints(kind)
    return {
        wire_name(field, version): (field, hints[field.name], on_wire(field, version))
        for field in fields(kind)
        if field.name not in HEADER
    }


def _fields_from_json(kind: type[Any], version: int, body: Any, path: str) -> dict[str, Any]:
    given = expect_object(body, path)
    known = _known(cast(Hashable, kind), version)
    refuse_unknown(given, tuple(known), path)
    values: dict[str, Any] = {}
    for name, (field, hint, is_there) in known.items():
        if not is_there:
            _refuse_other_version(given.get(name), field, version, at(path, name))
        elif name in given:
            values[field.name] = _from_json(hint, given[name], version, at(path, name))
        elif field.default is MISSING:
            raise ContractError(at(path, name), "is missing")
    return values


def _refuse_other_version(value: Any, field: Field[Any], version: int, path: str) -> None:
    """Refuse a field of another version. Kafka's clients drop some fields in silence where a version lacks them; the
    others would change the meaning.
    """
    if value is not None and not field.metadata["ignorable"]:
        raise ContractError(path, f"version {version} has no such field")


def _from_json(hint: Any, value: Any, version: int, path: str) -> Any:
    if get_origin(hint) is UnionType:
        if value is None:
            return None
        hint = next(choice for choice in get_args(hint) if choice is not NoneType)
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        listed = expect_list(value, path)
        return tuple(_from_json(item, entry, version, at(path, i)) for i, entry in enumerate(listed))
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return hint(**_fields_from_json(hint, version, value, path))
    return _scalar(hint, value, path)


def _scalar(hint: Any, value: Any, path: str) -> Any:
    if hint is bytes:
        return _bytes(value, path)
    if type(value) is not hint:  # bool is an int in Python and not in JSON
        expected = {str: "a string", int: "a whole number", bool: "true or false"}[hint]
        raise ContractError(path, f"expected {expected}, got {shown(value)}")
    if hint is int:
        bits = 63 if path.endswith(INT64_FIELDS) else 31
        if not -(2**bits) <= value < 2**bits:
            raise ContractError(path, f"does not fit into {bits + 1} bits: {shown(value)}")
    if hint is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ContractError(path, "must be valid unicode (it holds half a surrogate pair)") from None
    return value


def _bytes(value: Any, path: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ContractError(path, f"expected base64, got {shown(value)}") from None

"""Resolve references such as `$a1.members[0].member_id`: a step of a sequence names a field of an earlier answer.

Given      a body, and the answers so far by the names of their steps
Returns    the body with every reference replaced (`$$` begins a text with one dollar), or ContractError with the path
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, at, shown


def resolve(value: Any, answers: Mapping[str, Any], path: str, now_ms: int) -> Any:
    if isinstance(value, dict):
        return {key: resolve(item, answers, at(path, key), now_ms) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, answers, at(path, i), now_ms) for i, item in enumerate(value)]
    if not is_reference(value):
        return value[1:] if isinstance(value, str) and value.startswith("$") else value
    return look_up(value[1:], answers, path, now_ms)


def referred(value: Any) -> Iterator[str]:
    """Return the names of the steps that a body refers to."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from referred(item)
    elif is_reference(value):
        yield parts(value[1:])[0]


def is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$") and not value.startswith("$$")


def parts(reference: str) -> list[str]:
    return re.findall(r"[^.\[\]]+", reference) or [""]


def look_up(reference: str, answers: Mapping[str, Any], path: str, now_ms: int) -> Any:
    name, *keys = parts(reference)
    if name not in answers:
        raise ContractError(path, f"refers to {shown(name)}, which has no answer at {now_ms} ms")
    found: Any = answers[name]
    for key in keys:
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ContractError(path, f"${reference}: the answer has no {shown(key)} there") from None
    return found

"""Convert an event between its line in a file and its class in model.py, with one table of names for both ways.

{at: 1m, restart: {members: [a], downtime: 20s}}   <->   Restart(at_ms=60_000, members=("a",), downtime_ms=20_000)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, get_args

from rebalance_lab.assignors.json_contract import ContractError, at
from rebalance_lab.harness.scenario.forms.event_forms import EventForm
from rebalance_lab.harness.scenario.model import Autoscale, CreateTopic, DeleteTopic, Event, Restart
from rebalance_lab.harness.scenario.topics import TOO_LATE, read_topic
from rebalance_lab.harness.scenario.units import duration_text

CLASSES: Mapping[str, Any] = {kind.KIND: kind for kind in get_args(Event)}
FORM_NAMES = {"for_ms": "lasts", "template": "members"}
KEYS = {"for_ms": "for", "template": "members", "lag_per_member": "lag per member"}
"""Where a field's name in a form, or in a file, is not the class's own without `_ms`."""

Kinds = Mapping[str, Sequence[str]]


def read_event(form: EventForm, path: str, duration_ms: int, kinds: Kinds) -> Event:
    """Read an event. `kinds` are the members of each kind: a kind's name stands for all of them, and as a template for
    the first.
    """
    if form.at > duration_ms:
        raise ContractError(f"{path.partition(']')[0]}].at", TOO_LATE)
    part = getattr(form, form.kind.replace(" ", "_"))
    if form.kind == CreateTopic.KIND:
        return CreateTopic(at_ms=form.at, topic=read_topic(part.name, part, path, duration_ms))
    if form.kind == DeleteTopic.KIND:
        return DeleteTopic(at_ms=form.at, topic=part)
    values: dict[str, Any] = {"at_ms": form.at}
    for field in own_fields(CLASSES[form.kind]):
        value = getattr(part, form_name(field.name))
        if field.name == "template":
            value = kinds.get(value, (value,))[0]
        elif field.name == "members":
            value = tuple(dict.fromkeys(name for given in value or () for name in kinds.get(given, (given,))))
        elif field.name == "topics":
            value = tuple(value or ())
        values[field.name] = value
    event: Event = CLASSES[form.kind](**values)
    check_event(event, path)
    return event


def check_event(event: Event, path: str) -> None:
    if isinstance(event, Restart) and event.times > 1 and event.every_ms == 0:
        raise ContractError(at(path, "every"), f"is missing: {event.times} restarts, one every how long?")
    if isinstance(event, Restart) and event.times == 1 and event.every_ms:
        every = duration_text(event.every_ms)
        raise ContractError(at(path, "times"), f"is missing: one every {every}, and how often? Say 2 or more")
    if isinstance(event, Autoscale) and event.most < event.least:
        raise ContractError(at(path, "most"), f"is {event.most}, below least ({event.least})")


def event_json(event: Event, topic_json: Any) -> dict[str, Any]:
    """Return what read_event reads back to an equal event; fields with their default are left out."""
    line: dict[str, Any] = {"at": duration_text(event.at_ms)}
    if isinstance(event, CreateTopic):
        return line | {event.KIND: {"name": event.topic.name} | topic_json(event.topic)}
    if isinstance(event, DeleteTopic):
        return line | {event.KIND: event.topic}
    part: dict[str, Any] = {}
    for field in own_fields(type(event)):
        value = getattr(event, field.name)
        if field.default is MISSING or value != field.default:
            key = KEYS.get(field.name, field.name.removesuffix("_ms"))
            part[key] = duration_text(value) if field.name.endswith("_ms") else as_json(value)
    return line | {event.KIND: part}


def own_fields(kind: Any) -> list[Field[Any]]:
    return [field for field in fields(kind) if field.name != "at_ms"]


def form_name(name: str) -> str:
    return FORM_NAMES.get(name, name.removesuffix("_ms"))


def as_json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

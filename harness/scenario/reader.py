"""Read a scenario file: decode it, hold it against its form, build the Scenario, check it.

Given      a path, `-` for standard input, or decoded data
Returns    a Scenario; ContractError with the path of the first bad field and one line on what to write
Start at   load_scenario, parse_scenario
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rebalance_lab.assignors.json_contract import LONGEST_KEY, ContractError, at
from rebalance_lab.harness.scenario.checks import EventPaths, Paths, check_scenario, told
from rebalance_lab.harness.scenario.documents import MAX_BYTES, decode_document
from rebalance_lab.harness.scenario.events import read_event
from rebalance_lab.harness.scenario.forms.scenario_form import MAX_MEMBERS, MemberForm, ScenarioForm
from rebalance_lab.harness.scenario.model import Callbacks, Event, MemberSpec, Network, Poison, Scenario
from rebalance_lab.harness.scenario.settings import broker_settings, client_settings
from rebalance_lab.harness.scenario.strategy_lists import STRATEGY_SETTINGS, agreed_strategy
from rebalance_lab.harness.scenario.topics import read_topic
from rebalance_lab.harness.scenario.units import quoted

METADATA_MAX_AGE = "metadata.max.age.ms"
INSTANCE_ID = "group.instance.id"
MAX_MENTIONS = 2_000_000
"""A kind's name stands for all its members, and so a short file for a timeline without end."""


def load_scenario(file: str | Path) -> Scenario:
    """Load a scenario; `-` is standard input."""
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ContractError(str(file), error.strerror or str(error)) from None
    return parse_scenario(decode_document(data))


def parse_scenario(data: object) -> Scenario:
    if data is None:
        raise ContractError("", "the scenario is empty: it needs duration, topics and members")
    if not isinstance(data, Mapping):
        raise ContractError("", f"a scenario is a mapping with duration, topics and members, got {quoted(data)}")
    try:
        form = ScenarioForm.model_validate(data)
    except ValidationError as error:
        raise as_contract_error(error.errors(include_url=False)[0], data) from None
    return build(form, data)


def build(form: ScenarioForm, data: Mapping[str, Any]) -> Scenario:
    """Build a scenario; `data` is as it is written, of which a form keeps the meaning only."""
    client = client_settings(form.client, "client")
    broker = broker_settings(form.broker)
    strategy = agreed_strategy(form.strategy, client, broker)
    metadata_max_age_ms = client.pop(METADATA_MAX_AGE, Scenario.__dataclass_fields__["metadata_max_age_ms"].default)
    kinds = read_members(form.members)
    listed = {kind: [member.name for member in members] for kind, members in kinds.items()}
    events: list[tuple[Event, EventPaths]] = []
    mentioned = 0
    for i, event in enumerate(form.timeline):
        path = f"timeline[{i}].{event.kind}"
        alone = not isinstance(data["timeline"][i][event.kind], Mapping)
        place = EventPaths(path, path if alone else at(path, "members"))
        events.append((read_event(event, path, form.duration, listed), place))
        mentioned += len(getattr(events[-1][0], "members", ()))
        if mentioned > MAX_MENTIONS:
            raise ContractError(path, f"up to here the timeline names members more than {MAX_MENTIONS:,} times")
    events.sort(key=lambda pair: pair[0].at_ms)
    scenario = Scenario(
        name=form.name,
        description=form.description.strip(),
        duration_ms=form.duration,
        topics=tuple(read_topic(name, topic, at("topics", name), form.duration) for name, topic in form.topics.items()),
        members=tuple(member for members in kinds.values() for member in members),
        client={name: value for name, value in client.items() if name not in STRATEGY_SETTINGS},
        broker=broker,
        network=Network(
            latency_ms=form.network.latency,
            jitter_ms=form.network.jitter,
            loss=form.network.loss,
            duplication=form.network.duplication,
        ),
        callbacks=Callbacks(
            revoked_ms=form.callbacks.revoked,
            assigned_ms=form.callbacks.assigned,
            revoked_ms_per_partition=form.callbacks.revoked_per_partition,
            assigned_ms_per_partition=form.callbacks.assigned_per_partition,
        ),
        poison=tuple(
            Poison(topic=one.topic, partition=one.partition, offset=one.offset, stall_ms=one.stall)
            for one in form.poison
        ),
        timeline=tuple(event for event, _ in events),
        strategy=strategy,
        metadata_max_age_ms=metadata_max_age_ms,
    )
    check_scenario(
        scenario,
        Paths(
            members={name: at("members", kind) for kind in listed for name in listed[kind]},
            instance_ids={name: instance_path(kind, form.members[kind]) for kind in listed for name in listed[kind]},
            events=[place for _, place in events],
        ),
    )
    return scenario


def read_members(forms: Mapping[str, MemberForm]) -> dict[str, list[MemberSpec]]:
    """Return each kind with its members, under the name it has in the file."""
    kinds: dict[str, list[MemberSpec]] = {}
    taken: dict[str, str] = {}
    total = 0
    for kind, form in forms.items():
        path = at("members", kind)
        total += form.count or 1
        if total > MAX_MEMBERS:
            raise ContractError(path, f"the scenario has more than {MAX_MEMBERS:,} members")
        kinds[kind] = read_kind(kind, form, path)
        for member in kinds[kind]:
            if taken.setdefault(member.name, kind) != kind or (member.name != kind and member.name in forms):
                raise ContractError(path, f"two members would be called {quoted(member.name)}")
    return kinds


def read_kind(kind: str, form: MemberForm, path: str) -> list[MemberSpec]:
    if (form.topics is None) == (form.pattern is None):
        raise ContractError(path, "a member has either topics or a pattern")
    if form.record is not None and form.capacity is not None:
        raise ContractError(at(path, "capacity"), "says the same as record: give one of them")
    if form.rack is not None and form.racks is not None:
        raise ContractError(at(path, "racks"), "give rack or racks, not both")
    if form.racks is not None and not all(form.racks):
        raise ContractError(at(path, "racks"), "a rack's name must not be empty")
    if form.racks is not None and form.count is None:
        raise ContractError(at(path, "racks"), "is for a count of members: one member stands in one rack")
    client = client_settings(form.client, at(path, "client"), of_member=True)
    rack = agreed(form.rack, client.pop("client.rack", None), path, "rack", "client.rack")
    instance = agreed(form.instance_id, client.pop(INSTANCE_ID, None), path, "instance_id", INSTANCE_ID)
    if instance is not None and (form.count or 1) > 1 and "{n}" not in instance:
        raise ContractError(instance_path(kind, form), f"{form.count} members cannot share one: put {{n}} in it")
    record_ms = form.record or (1_000 / form.capacity if form.capacity else 1.0)
    return [
        MemberSpec(
            name=kind if form.count is None else f"{kind}-{n}",
            topics=tuple(form.topics or ()),
            pattern=form.pattern,
            record_ms=record_ms,
            rack=form.racks[(n - 1) % len(form.racks)] if form.racks else rack,
            instance_id=instance if instance is None or form.count is None else instance.replace("{n}", str(n)),
            client=client,
        )
        for n in range(1, (form.count or 1) + 1)
    ]


def instance_path(kind: str, form: MemberForm) -> str:
    """Return the path of the instance id, which may stand under Kafka's name."""
    path = at("members", kind)
    return at(path, "instance_id") if form.instance_id is not None else at(at(path, "client"), INSTANCE_ID)


def agreed(field: str | None, setting: str | None, path: str, name: str, kafka_name: str) -> str | None:
    if field is not None and setting is not None and field != setting:
        raise ContractError(at(path, name), f"is {told(field)}, but {kafka_name} is {told(setting)}")
    return field or setting


def as_contract_error(error: ErrorDetails, data: object) -> ContractError:
    """Put pydantic's first finding into our words."""
    context = error.get("ctx", {})
    location = error["loc"]
    last = context.get("key")
    if error["type"] == "missing":
        location, last = location[:-1], location[-1]
    steps = as_written(location, data)
    if last is not None:
        steps.append(last)
    path = ""
    for step in steps:
        # Keys with spaces read well as they are: `timeline[2].rolling restart.downtime`.
        plain = isinstance(step, str) and path and len(step) < LONGEST_KEY and step.replace(" ", "").isalnum()
        path = f"{path}.{step}" if plain else at(path, step)
    return ContractError(path, in_words(error, context))


def as_written(location: Sequence[str | int], data: object) -> list[str | int]:
    """Return the path without the field that a short form stands for: `rate: 5/s` has no `base`, `stop: [a]` no
    `members`.
    """
    steps: list[str | int] = []
    for step in location:
        if step == "[key]" or (isinstance(step, str) and not isinstance(data, Mapping)):
            continue
        steps.append(step)
        if isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
    return steps


def in_words(error: ErrorDetails, context: Mapping[str, Any]) -> str:
    got = quoted(error["input"])
    match error["type"]:
        case "scenario":
            return str(context["message"])
        case "missing":
            return "is missing"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case "too_long":
            return f"has {context['actual_length']:,} entries, more than {context['max_length']:,}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, got {got}"
        case "greater_than":
            return f"must be above {context['gt']:g}, got {got}"
        case "less_than_equal":
            return f"must be at most {context['le']:,}, got {got}"
        case kind:
            return f"expected {EXPECTED.get(kind, error['msg'])}, got {got}"


EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}

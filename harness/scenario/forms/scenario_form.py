"""Define the scenario file's shape: topics, members, settings, and the timeline of event_forms.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from rebalance_lab.harness.scenario.forms.event_forms import EventForm
from rebalance_lab.harness.scenario.forms.form_base import (
    Chance,
    Duration,
    FineDuration,
    Form,
    LongDuration,
    Names,
    RealPerSecond,
    StrategyText,
    complaint,
    mapping,
    member_name,
    topic_name,
    words,
)
from rebalance_lab.harness.scenario.forms.topic_form import TopicForm
from rebalance_lab.harness.scenario.forms.value_schemas import (
    MEMBER_NAME,
    NAME,
    TOPIC_NAME,
    given,
    needs,
    not_both,
    one_of,
    text,
)
from rebalance_lab.harness.scenario.settings import BROKER, CLIENT, ONE_MEMBER, WHOLE_GROUP, settings_schema

MAX_MEMBERS = 20_000
MAX_EVENTS = 100_000


class MemberForm(Form):
    """A member, or `count` of them: consumer-1, consumer-2 and so on."""

    rules = (
        one_of("topics", "pattern"),
        not_both("record", "capacity"),
        not_both("rack", "racks"),
        needs(given("racks"), given("count")),
        needs(
            {"allOf": [given("count", {"type": "integer", "minimum": 2}), given("instance_id")]},
            given("instance_id", text(r"\{n\}")),
        ),
    )
    count: int | None = Field(None, ge=1, le=MAX_MEMBERS)
    topics: Annotated[Names, Field(description="What it subscribes to: a topic or a list of them.")] | None = None
    pattern: str | None = Field(None, min_length=1, description="A regular expression instead of topics.")
    record: FineDuration | None = Field(None, description="How long one record takes; 1ms without it.")
    capacity: RealPerSecond | None = Field(None, description="The same as a rate: records it can do in a second.")
    rack: str | None = Field(None, min_length=1)
    racks: list[Annotated[str, WithJsonSchema(NAME)]] | None = Field(
        None, min_length=1, description="Spread round the members of a count."
    )
    instance_id: str | None = Field(None, min_length=1, description="With a count, {n} in it is the number.")
    client: Annotated[
        dict[str, Any], BeforeValidator(mapping), WithJsonSchema(settings_schema({**CLIENT, **ONE_MEMBER}))
    ] = Field(default_factory=dict)


class NetworkForm(Form):
    latency: Duration = Field(1, description="One way.")
    jitter: Duration = Field(0, description="Up to this much more for each message.")
    loss: Chance = 0.0
    duplication: Chance = 0.0


class CallbacksForm(Form):
    """How long the application spends in onPartitionsRevoked and onPartitionsAssigned."""

    revoked: Duration = 0
    assigned: Duration = 0
    revoked_per_partition: Duration = words("revoked per partition", 0)
    assigned_per_partition: Duration = words("assigned per partition", 0)


class PoisonForm(Form):
    """A record that holds up whoever reads it."""

    topic: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0, le=2**63 - 1)
    stall: LongDuration


def named(check: Callable[[object], str]) -> BeforeValidator:
    """A mapping whose keys are names that `check` lets pass."""

    def reader(value: object) -> dict[str, Any]:
        given = mapping(value)
        for name in given:
            try:
                check(name)
            except ValueError as error:
                raise complaint(str(error)) from None
        return given

    return BeforeValidator(reader)


class ScenarioForm(Form):
    """A group, its workload and what happens to it, for `rebalance-lab simulate` and `compare`."""

    name: str = Field("scenario", min_length=1)
    description: str = ""
    duration: LongDuration
    strategy: StrategyText | None = Field(None, description="What runs now, such as classic/range.")
    topics: Annotated[dict[str, TopicForm], named(topic_name)] = Field(
        min_length=1, json_schema_extra={"propertyNames": TOPIC_NAME}
    )
    members: Annotated[dict[str, MemberForm], named(member_name)] = Field(
        min_length=1, json_schema_extra={"propertyNames": MEMBER_NAME}
    )
    client: Annotated[
        dict[str, Any], BeforeValidator(mapping), WithJsonSchema(settings_schema({**CLIENT, **WHOLE_GROUP}))
    ] = Field(default_factory=dict)
    broker: Annotated[dict[str, Any], BeforeValidator(mapping), WithJsonSchema(settings_schema(BROKER))] = Field(
        default_factory=dict
    )
    network: NetworkForm = Field(default_factory=lambda: NetworkForm.model_validate({}))
    callbacks: CallbacksForm = Field(default_factory=lambda: CallbacksForm.model_validate({}))
    poison: list[PoisonForm] = Field(default_factory=list)
    timeline: list[EventForm] = Field(default_factory=list, max_length=MAX_EVENTS)

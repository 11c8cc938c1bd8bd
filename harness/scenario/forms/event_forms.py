"""Define the timeline's shape: an event is one line such as `{at: 1m, crash: consumer-3}`, and its kind is the key.

The keys are the KINDs of ../model.py's event classes; a test holds the two lists together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from rebalance_lab.harness.scenario.forms.form_base import (
    Duration,
    Form,
    LongDuration,
    Names,
    StrategyText,
    complaint,
    words,
)
from rebalance_lab.harness.scenario.forms.topic_form import CreateTopicForm
from rebalance_lab.harness.scenario.forms.value_schemas import SOME_DIGIT, given, needs, one_of, text


class MembersForm(Form):
    short = "members"
    members: Names


class StartForm(MembersForm):
    """These begin now instead of at the beginning, or again after they stopped."""


class StopForm(MembersForm):
    """SIGTERM: the consumer closes and says so."""


class CrashForm(MembersForm):
    """SIGKILL: nobody is told."""


class RestartForm(MembersForm):
    """Down and up again; with `times` a crash loop."""

    downtime: Duration
    rules = (
        needs(given("times", {"type": "integer", "minimum": 2}), given("every", text(SOME_DIGIT))),
        needs(given("every", text(SOME_DIGIT)), given("times", {"type": "integer", "minimum": 2})),
    )
    kill: bool = False
    times: int = Field(1, ge=1, le=1_000_000)
    every: Duration = 0


class RollingRestartForm(Form):
    """`parallelism` members at a time: down, up again after `downtime`, and `gap` later the next ones."""

    members: Names | None = Field(None, description="All that run then, unless named.")
    downtime: Duration
    gap: Duration = 0
    parallelism: int = Field(1, ge=1)
    kill: bool = Field(False, description="SIGKILL instead of SIGTERM.")
    strategy: StrategyText | None = Field(None, description="What the members come back with: a migration's step.")
    surge: bool = Field(False, description="The new process starts before the old one stops.")


class ScaleForm(Form):
    """More members of this kind, or the youngest of them stop."""

    members: str = Field(min_length=1)
    to: int = Field(ge=0)
    every: Duration = 0


class AutoscaleForm(Form):
    """Follow the lag between `least` and `most` members."""

    members: str = Field(min_length=1)
    least: int = Field(1, ge=0)
    most: int = Field(ge=1)
    lag_per_member: float = words("lag per member", gt=0)
    every: LongDuration = 15_000
    cooldown: Duration = 300_000


class SlowForm(MembersForm):
    """Records take `factor` times as long."""

    factor: float = Field(gt=0, le=1e6)
    lasts: LongDuration | None = words("for", None)


class PauseForm(MembersForm):
    """A long garbage collection: the process stands still, its connections stay."""

    lasts: LongDuration = words("for")


class IsolateForm(MembersForm):
    """The network between these members and the brokers is cut."""

    lasts: LongDuration = words("for")


class FailOverForm(Form):
    """The coordinator's broker dies; another has loaded the group after `down`."""

    down: Duration


class AddPartitionsForm(Form):
    topic: str
    to: int = Field(ge=1)


class SubscribeForm(MembersForm):
    rules = (one_of("topics", "pattern"),)
    topics: Names | None = None
    pattern: str | None = Field(None, min_length=1)

    @classmethod
    def schema_alone(cls, schema: Mapping[str, Any]) -> None:
        """Members alone do not say to what."""


class EventForm(Form):
    """What happens `at` a time: exactly one kind of event."""

    meant = {  # noqa: RUF012 - a ClassVar, said in Form
        **dict.fromkeys(("network partition", "partition", "cut", "disconnect"), "isolate"),
        **dict.fromkeys(("kill", "sigkill"), "crash"),
        **dict.fromkeys(("sigterm", "shutdown", "leave"), "stop"),
        **dict.fromkeys(("gc", "gc pause", "sigstop"), "pause"),
        **dict.fromkeys(("deploy", "rolling deploy"), "rolling restart"),
        "join": "start",
        "resubscribe": "subscribe",
        "coordinator failover": "fail over",
    }
    at: Duration
    start: StartForm | None = None
    stop: StopForm | None = None
    crash: CrashForm | None = None
    restart: RestartForm | None = None
    rolling_restart: RollingRestartForm | None = words("rolling restart", None)
    scale: ScaleForm | None = None
    autoscale: AutoscaleForm | None = None
    slow: SlowForm | None = None
    pause: PauseForm | None = None
    isolate: IsolateForm | None = None
    fail_over: FailOverForm | None = words("fail over", None)
    add_partitions: AddPartitionsForm | None = words("add partitions", None)
    create_topic: CreateTopicForm | None = words("create topic", None)
    delete_topic: str | None = words("delete topic", None, min_length=1)
    subscribe: SubscribeForm | None = None

    @model_validator(mode="after")
    def one_kind(self) -> EventForm:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if not kinds:
            raise complaint(f"says no event: one of {', '.join(alias(kind) for kind in KINDS)}")
        if len(kinds) > 1:
            raise complaint(f"has {' and '.join(alias(kind) for kind in kinds)}: one event a line")
        return self

    @property
    def kind(self) -> str:
        return next(alias(kind) for kind in KINDS if getattr(self, kind) is not None)


def alias(field: str) -> str:
    return field.replace("_", " ")


KINDS = tuple(name for name in EventForm.model_fields if name != "at")

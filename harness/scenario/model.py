"""Define a scenario: a group, its workload and a timeline of events, in whole milliseconds and records per second.

Topics     how many records come in, and how they spread over the partitions
Members    processes: what they subscribe to, how fast they work, which rack they are on
Settings   clients' and brokers' by their Kafka names
Timeline   what happens when; each kind of event is a class of its own
Start at   Scenario
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Rate:
    """Hold records per second over time, in steps: a curve is cut into them where a scenario is read."""

    steps: tuple[tuple[int, float], ...] = ((0, 0.0),)
    """From which millisecond on, which rate. The first begins at 0."""

    def at(self, now_ms: int) -> float:
        return next(value for at_ms, value in reversed(self.steps) if at_ms <= now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    name: str
    partitions: int
    rate: Rate = Rate()
    weights: tuple[float, ...] | None = None
    """Each partition's part of the rate, adding up to 1; None: equal parts."""
    racks: tuple[tuple[str, ...], ...] | None = None
    """The racks of each partition's replicas."""

    def rate_of(self, index: int, partitions: int, total: float) -> float:
        """Return a partition's rate once there are so many: added ones get an equal part, the others divide the rest as
        before.
        """
        if self.weights is None or index >= len(self.weights):
            return total / partitions
        return total * self.weights[index] * (len(self.weights) / partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """Describe one process with one consumer."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    """A regular expression instead of a list of topics."""
    record_ms: float = 1.0
    """How long one record takes; a member works on one at a time."""
    rack: str | None = None
    instance_id: str | None = None
    """A strategy with +static gives one to those who have none: their name."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """This member's own settings, over the scenario's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """Describe a record that holds up the poll in which it is processed, each time it is read."""

    topic: str
    partition: int
    offset: int
    stall_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    latency_ms: int = 1
    """One way."""
    jitter_ms: int = 0
    """Up to this much more, drawn for each message."""
    loss: float = 0.0
    """The probability that a message never arrives: a request then waits for its timeout."""
    duplication: float = 0.0
    """The probability that a request arrives twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Describe what the application does inside onPartitionsRevoked (and Lost) and onPartitionsAssigned."""

    revoked_ms: int = 0
    assigned_ms: int = 0
    revoked_ms_per_partition: int = 0
    assigned_ms_per_partition: int = 0
    """Stateful consumers restore here what a partition needs."""


# The timeline. `members` are names; each event tells what happens from `at_ms` on.


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    KIND: ClassVar[str] = "start"
    at_ms: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop members by SIGTERM: the consumer closes, and leaves the group if it is dynamic."""

    KIND: ClassVar[str] = "stop"
    at_ms: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Kill members by SIGKILL: the coordinator hears nothing."""

    KIND: ClassVar[str] = "crash"
    at_ms: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    KIND: ClassVar[str] = "restart"
    at_ms: int
    members: tuple[str, ...]
    downtime_ms: int
    kill: bool = False
    times: int = 1
    """A crash loop: again after `every_ms`."""
    every_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestart:
    """Restart `parallelism` members at a time: down, up again after `downtime_ms`, and `gap_ms` later the next ones."""

    KIND: ClassVar[str] = "rolling restart"
    at_ms: int
    members: tuple[str, ...] = ()
    """Empty: all that run then."""
    downtime_ms: int
    gap_ms: int
    parallelism: int = 1
    kill: bool = False
    strategy: str | None = None
    """What the members come back with: one step of a migration. `classic/range,cooperative-sticky` lists assignors."""
    surge: bool = False
    """The new process starts first and the old one stops when it is up, as a Deployment with maxSurge does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scale up with more members like `template`, or down by stopping the youngest."""

    KIND: ClassVar[str] = "scale"
    at_ms: int
    to: int
    template: str
    """The name of a member (or of the first of a counted kind) whose description new ones take."""
    every_ms: int = 0
    """Time between two starts or stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscale:
    """Scale by the lag: every `every_ms` from `at_ms` on, compare it with `lag_per_member` for each member."""

    KIND: ClassVar[str] = "autoscale"
    at_ms: int
    template: str
    least: int
    most: int
    lag_per_member: float
    every_ms: int = 15_000
    cooldown_ms: int = 300_000
    """How long it stays before it goes down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Make members slow: records take `factor` times as long."""

    KIND: ClassVar[str] = "slow"
    at_ms: int
    members: tuple[str, ...]
    factor: float
    for_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause members by SIGSTOP or a long garbage collection: the process stands still, its connections stay."""

    KIND: ClassVar[str] = "pause"
    at_ms: int
    members: tuple[str, ...]
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolate:
    """Cut the network between these members and the brokers; both sides live on."""

    KIND: ClassVar[str] = "isolate"
    at_ms: int
    members: tuple[str, ...]
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOver:
    """Stop the coordinator's broker; another one has loaded the group after `down_ms`."""

    KIND: ClassVar[str] = "fail over"
    at_ms: int
    down_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    KIND: ClassVar[str] = "add partitions"
    at_ms: int
    topic: str
    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    KIND: ClassVar[str] = "create topic"
    at_ms: int
    topic: TopicSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopic:
    KIND: ClassVar[str] = "delete topic"
    at_ms: int
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resubscribe:
    KIND: ClassVar[str] = "subscribe"
    at_ms: int
    members: tuple[str, ...]
    topics: tuple[str, ...] = ()
    pattern: str | None = None


Event: TypeAlias = (
    Start
    | Stop
    | Crash
    | Restart
    | RollingRestart
    | Scale
    | Autoscale
    | Slow
    | Pause
    | Isolate
    | FailOver
    | AddPartitions
    | CreateTopic
    | DeleteTopic
    | Resubscribe
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    description: str = ""
    duration_ms: int
    topics: tuple[TopicSpec, ...]
    members: tuple[MemberSpec, ...]
    """Those who run from the beginning, unless a Start in the timeline names them."""
    client: Mapping[str, Any] = field(default_factory=dict)
    broker: Mapping[str, Any] = field(default_factory=dict)
    network: Network = Network()
    callbacks: Callbacks = Callbacks()
    poison: tuple[Poison, ...] = ()
    timeline: tuple[Event, ...] = ()
    """In order of time."""
    strategy: str | None = None
    """What runs now: where a migration starts from, and what `recommend` compares with."""
    metadata_max_age_ms: int = 300_000
    """How long it takes at most until clients notice new partitions by themselves (`metadata.max.age.ms`)."""

"""What a process is made of, and what it needs around it, as types.

Machine       what the members of both protocols have
World         what a process asks of its surroundings
Application   how it consumes, beyond what the machine is configured with
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from rebalance_lab.harness.scenario.model import Callbacks, Poison
from rebalance_lab.harness.sim.kernel import Kernel
from rebalance_lab.harness.sim.records import Records
from rebalance_lab.harness.sim.trace import Trace
from rebalance_lab.protocol_v1.effects.member import MemberEffect, Offsets, Told, TopicPartition
from rebalance_lab.protocol_v1.messages import Request

if TYPE_CHECKING:
    from rebalance_lab.harness.sim.catalogue import Catalogue
    from rebalance_lab.harness.sim.process import Process

GROUP = "g"
"""There is one in a run."""


class Machine(Protocol):
    """What the members of both protocols have."""

    @property
    def owned(self) -> frozenset[TopicPartition]: ...
    @property
    def fetchable(self) -> frozenset[TopicPartition]: ...
    @property
    def settled(self) -> bool: ...
    @property
    def searches(self) -> bool: ...
    @property
    def subscribed_topics(self) -> frozenset[str]: ...
    @property
    def asked_topics(self) -> frozenset[str]: ...
    @property
    def in_poll(self) -> bool: ...
    @property
    def prepares(self) -> bool: ...
    @property
    def sends_commits(self) -> bool: ...
    @property
    def waits_for_an_answer(self) -> bool: ...
    @property
    def member_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def heartbeat_interval_ms(self) -> int: ...
    @property
    def heartbeat_at_ms(self) -> int: ...
    @property
    def auto_commit_at_ms(self) -> int | None: ...
    def commits_in_poll(self, now_ms: int) -> bool: ...
    def handle(self, event: Told, now_ms: int) -> list[MemberEffect]: ...
    def note(self, positions: Offsets) -> None: ...
    def leap(self, beats_ms: int, commits_ms: int) -> None: ...
    def search_later(self, by_ms: int) -> None: ...


class World(Protocol):
    """What a process needs around it."""

    kernel: Kernel
    trace: Trace
    random: Random
    records: Records
    callbacks: Callbacks
    poison: Mapping[TopicPartition, Sequence[Poison]]
    catalogue: Catalogue
    held_up_until_ms: int

    def send(self, process: Process, request: Request) -> None: ...
    def fetch_ms(self) -> int: ...
    def round_trip_ms(self) -> int: ...
    def out_of_reach(self, process: Process) -> bool: ...
    def disturbed(self) -> None: ...
    def sample_bend(self) -> None: ...
    def about_to_read(self, process: Process, partitions: Sequence[TopicPartition]) -> bool: ...
    def ended(self, process: Process) -> None: ...
    def failed(self, process: Process) -> None: ...
    def commit_late(self, process: Process, offsets: Offsets, at_ms: int) -> bool: ...
    def will_accept(self, process: Process) -> bool: ...
    def committed_at_rest(self, process: Process, offsets: Offsets, at_ms: int, times: int = 1) -> None: ...
    def routine(self, request: Request, times: int) -> None: ...


def up_to(most: int, random: Random) -> int:
    """random.randint(0, most), draw for draw, without what it looks at on the way: every message asks for one."""
    size = most + 1
    bits = size.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= size:
        drawn = random.getrandbits(bits)
    return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """How it consumes, beyond what the machine is configured with."""

    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    commits_after_processing: bool = False
    """After every batch, instead of the auto-commit."""
    auto_commit_interval_ms: int = 5_000
    retry_backoff_ms: int = 100


def options(settings: Mapping[str, Any]) -> Application:
    auto = settings.get("enable.auto.commit", True)
    return Application(
        max_poll_records=int(settings.get("max.poll.records", 500)),
        max_poll_interval_ms=int(settings.get("max.poll.interval.ms", 300_000)),
        session_timeout_ms=int(settings.get("session.timeout.ms", 45_000)),
        heartbeat_interval_ms=int(settings.get("heartbeat.interval.ms", 3_000)),
        commits_after_processing=not auto,
        auto_commit_interval_ms=int(settings.get("auto.commit.interval.ms", 5_000)),
        retry_backoff_ms=max(1, int(settings.get("retry.backoff.ms", 100))),
    )

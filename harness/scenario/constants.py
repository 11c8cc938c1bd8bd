"""Hold how long brokers and clients take for what they do, which no scenario says.

The simulator and live runs use the same defaults. harness/fidelity/calibration.py has those of a real machine.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Hold durations that no scenario states."""

    append_ms: int = 2
    """Until a record of the coordinator is durable."""
    heartbeat_look_ms: int = 15
    """How late a classic Java consumer's heartbeats are at the most, so that members that began together drift apart.
    Its heartbeat thread looks at the clock only every retry.backoff.ms, but counts from the last heartbeat, and poll()
    wakes it. `python -m tests.harness.kafka.live.java_heartbeats` measures how late they are and how they drift."""
    start_ms: int = 0
    """From when a process is started until its consumer polls for the first time, at the least."""
    start_spread_ms: int = 1_000
    """And up to so much longer, drawn for each."""
    restart_failed_ms: int = 10_000
    """A process that ended with an exception is started again after so long, as by a supervisor."""
    metadata_ms: int = 2
    """Beyond the network, until a client has fresh metadata."""
    head_start_ms: int = 86_400_000
    """Less than so much longer, drawn for each run, a group has been at rest than it is seen to be, and has drifted
    apart meanwhile: when heartbeats and commits are due as the first event comes is chance."""

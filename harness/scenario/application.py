"""Describe how an application consumes, beyond the settings of its member machine.

Given      a client's settings under their Kafka names
Start at   Application.from_settings
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """Describe how an application consumes: batches, deadlines, commits."""

    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    commits_after_processing: bool = False
    """After every batch, instead of the auto-commit."""
    auto_commit_interval_ms: int = 5_000
    retry_backoff_ms: int = 100

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Application:
        """Read the client's settings, with the Java client's defaults."""
        auto = settings.get("enable.auto.commit", True)
        return cls(
            max_poll_records=int(settings.get("max.poll.records", 500)),
            max_poll_interval_ms=int(settings.get("max.poll.interval.ms", 300_000)),
            session_timeout_ms=int(settings.get("session.timeout.ms", 45_000)),
            heartbeat_interval_ms=int(settings.get("heartbeat.interval.ms", 3_000)),
            commits_after_processing=not auto,
            auto_commit_interval_ms=int(settings.get("auto.commit.interval.ms", 5_000)),
            retry_backoff_ms=max(1, int(settings.get("retry.backoff.ms", 100))),
        )

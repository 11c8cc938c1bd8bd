"""Hold the consumer's settings that a classic member obeys, with the Java client 4.3.1's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass

JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
"""A constant of the client: how much longer than the rebalance timeout it waits for its JoinGroup's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """Hold the settings by their names with underscores: session_timeout_ms is `session.timeout.ms`."""

    group_id: str = "g"
    group_instance_id: str | None = None
    client_id: str = "client"
    client_rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    """Also the rebalance timeout that JoinGroup carries."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    exclude_internal_topics: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be lower than "
                f"session.timeout.ms ({self.session_timeout_ms})"
            )

    @property
    def join_group_timeout_ms(self) -> int:
        return max(self.request_timeout_ms, self.max_poll_interval_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS)

    @property
    def pause_ms(self) -> int:
        """Return `retry.backoff.ms`, and where it is 0 a moment: retries within the same millisecond would never
        end.
        """
        return max(1, self.retry_backoff_ms)

    def backoff_ms(self, attempts: int, jitter: float) -> int:
        """Return Kafka's exponential back-off: doubling up to the maximum, which the jitter does not exceed either."""
        initial, longest = self.retry_backoff_ms, self.retry_backoff_max_ms
        base = min(initial << min(attempts, 30), longest)
        return max(1, min(round(base * jitter), longest))

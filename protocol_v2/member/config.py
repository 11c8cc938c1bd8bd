"""Hold the consumer's settings that a KIP-848 member obeys, with the Java client 4.3.1's names and defaults.

Session and heartbeat interval are not among them: the broker decides both, and tells the interval in every answer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """Hold the settings by their names with underscores: max_poll_interval_ms is `max.poll.interval.ms`."""

    group_id: str = "g"
    group_instance_id: str | None = None
    group_remote_assignor: str | None = None
    client_id: str = "client"
    client_rack: str | None = None
    max_poll_interval_ms: int = 300_000
    """Also the rebalance timeout that a full heartbeat carries."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    exclude_internal_topics: bool = True

    quirks_of_java: bool = True
    """Not a setting of Kafka: do also what looks like slips of the Java client 4.3.1. Without them
    - a heartbeat that says what is owned also lists what was given and may yet be started, so that no other member
      is given it meanwhile; Java leaves it out, and after a lost answer two members may read one partition
    - back-offs count in Joining and Acknowledging too, and what was acknowledged already is not acknowledged again;
      Java sends the next heartbeat as soon as the last one is answered
    - a dynamic member that is closed with REMAIN_IN_GROUP sends nothing; Java leaves all the same
    - an expression that the coordinator may still hold is cleared; Java forgets about it when the heartbeat that clears
      it gets lost, and knows nothing of one that an earlier process of a static member has left behind"""

    def backoff_ms(self, attempts: int, jitter: float) -> int:
        """Return Kafka's exponential back-off: doubling up to the maximum, which the jitter does not exceed either."""
        initial, longest = self.retry_backoff_ms, self.retry_backoff_max_ms
        base = min(initial << min(attempts, 30), longest)
        return max(1, min(round(base * jitter), longest))

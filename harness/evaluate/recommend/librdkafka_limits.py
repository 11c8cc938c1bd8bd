"""Limit settings to what librdkafka accepts: it has limits of its own and does not start with other values.

Reference  CONFIGURATION.md and rd_kafka_conf_finalize in librdkafka 2.16
Start at   for_librdkafka
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.assignors.json_contract import INT32_MAX
from rebalance_lab.protocol_v1.member.config import MemberConfig

IN_LIBRDKAFKA = ("range", "roundrobin", "cooperative-sticky")
JAVA_ONLY = ("max.poll.records",)
SESSION, POLL = "session.timeout.ms", "max.poll.interval.ms"
LIMITS = {
    SESSION: (1, 3_600_000),
    "heartbeat.interval.ms": (1, 3_600_000),
    POLL: (1, 86_400_000),
    "auto.commit.interval.ms": (1, 86_400_000),  # it takes 0, as no auto-commit at all; to Java that is every poll
}


def for_librdkafka(settings: Mapping[str, str], *, classic: bool) -> tuple[dict[str, str], list[str]]:
    """Return the nearest values that it takes, and a line on each value that differs then."""
    found, notes = {name: value for name, value in settings.items() if name not in JAVA_ONLY}, []
    for name, value in settings.items():
        low, high = LIMITS.get(name, (0, INT32_MAX))
        if name in LIMITS and not low <= int(value) <= high:
            found[name] = str(min(max(int(value), low), high))
            notes.append(f"librdkafka: {name}={found[name]}, the nearest to {value} that it takes as Java does")
    session = int(found.get(SESSION, MemberConfig().session_timeout_ms))
    poll = int(found.get(POLL, MemberConfig().max_poll_interval_ms))
    if classic and poll < session:
        found[POLL] = str(session)
        notes.append(
            f"librdkafka: {POLL}={session}, because it refuses one below {SESSION}; its slow members stay in the group "
            f"longer than in these runs, which had {poll}: a {SESSION} of at most {poll} would do without"
        )
    return found, notes

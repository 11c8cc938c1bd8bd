"""Read a client's properties file (security.protocol, sasl.*, ssl.*), as Kafka's own tools do with --command-config."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.harness.kafka.groups.live_group import GroupError

OURS = ("bootstrap.servers", "log_level")


def read_settings(file: str) -> dict[str, str]:
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GroupError("refused", f"{file}: {getattr(error, 'strerror', None) or error}") from error
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise GroupError("refused", f"{file}: line {number} is not name=value")
        if name.strip() not in OURS:
            settings[name.strip()] = value.strip()
    return settings

"""Report what this computer has, and what stays off without the rest: one line for each thing that is missing.

`python -m rebalance_lab.harness.kafka.environment` prints them; `make demo` and `make test` do so.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.processes.java import find_java
from rebalance_lab.harness.kafka.brokers.processes.local_engine import missing as no_engine_of_our_own


@dataclass(frozen=True, slots=True)
class Missing:
    what: str
    turns_off: str

    def __str__(self) -> str:
        return f"missing here: {self.what}. Off without it: {self.turns_off}"


def missing() -> list[Missing]:
    return [one for one in (no_java(), no_maven(), no_docker()) if one is not None]


def no_java() -> Missing | None:
    try:
        find_java()
    except BrokerError as error:
        return Missing(str(error), "brokers as processes, the check against Kafka's own classes, Spark")
    return None


def no_maven() -> Missing | None:
    if shutil.which("mvn") is None:
        return Missing("Maven (mvn)", "brokers as processes and the check against Kafka's own classes")
    return None


def no_docker() -> Missing | None:
    if docker_answers():
        return None
    reason = no_engine_of_our_own()
    return Missing(f"a Docker engine that answers; {reason}", "brokers in containers") if reason else None


def docker_answers() -> bool:
    if shutil.which("docker") is None:
        return False
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


if __name__ == "__main__":
    for one in missing():
        print(one)

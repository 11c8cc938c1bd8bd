"""What this computer has, and what stays off without the rest: one line for each thing that is missing.

`python -m harness.machine` prints them; the test command does so before it starts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass

OLDEST_JAVA = 17


@dataclass(frozen=True, slots=True)
class Missing:
    what: str
    turns_off: str

    def __str__(self) -> str:
        return f"missing: {self.what} (off without it: {self.turns_off})"


def missing() -> list[Missing]:
    found = (no_java(), no_maven(), no_docker())
    return [one for one in found if one is not None]


def java_version() -> int | None:
    """The major version of the `java` on the path: 17 for 17.0.15, 8 for 1.8.0; None without one that answers."""
    if shutil.which("java") is None:
        return None
    try:
        told = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match.group(1)) if match else None


def no_java() -> Missing | None:
    version = java_version()
    turns_off = "brokers as processes, the check against Kafka's own classes, Spark"
    if version is None:
        return Missing(f"Java {OLDEST_JAVA} or newer", turns_off)
    if version < OLDEST_JAVA:
        return Missing(f"Java {OLDEST_JAVA} or newer; the one here is {version}", turns_off)
    return None


def no_maven() -> Missing | None:
    if shutil.which("mvn") is None:
        return Missing("Maven (mvn)", "brokers as processes and the check against Kafka's own classes")
    return None


def no_docker() -> Missing | None:
    if shutil.which("dockerd") is None and not docker_answers():
        return Missing("a Docker engine", "brokers in containers")
    return None


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

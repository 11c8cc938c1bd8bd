"""Find the Java runtime of this machine, and check that Kafka's brokers can run on it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError

OLDEST_JAVA = 17
"""What Kafka 4's brokers are compiled for."""


def find_java() -> str:
    """Return the `java` to run, as Kafka's own scripts choose it: JAVA_HOME first, then the PATH."""
    java = _candidate()
    if java is None:
        raise BrokerError(f"no java on the PATH: install Java {OLDEST_JAVA} or later (Debian: openjdk-17-jre-headless)")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BrokerError(f"{java} does not run: {error}") from error
    # `"17.0.15"`, and `"1.8.0_412"` for what is called Java 8.
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode != 0 or version is None:
        raise BrokerError(f"{java} does not tell its version: {(said.stderr + said.stdout)[:200] or 'it said nothing'}")
    if int(version[1]) < OLDEST_JAVA:
        raise BrokerError(f"Java {version[1]} at {java} is too old: Kafka's brokers need Java {OLDEST_JAVA} or later")
    return java


def _candidate() -> str | None:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if java.is_file():
            return str(java)
    return shutil.which("java")

"""Fetch Apache Kafka's own jars, once per version, by Maven into the user's cache folder.

Given      a Kafka version
Returns    the jars a broker runs from; kafka-clients and kafka-group-coordinator, with Java's assignors, are among them
Invariant  a version's folder is complete or absent: it is filled under another name and renamed in one step
Start at   kafka_jars; `python -m rebalance_lab.harness.kafka.brokers.processes.artifacts` fetches and prints the folder
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.versions import kafka_version

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_VARIABLE = "REBALANCE_LAB_CACHE"
POM = Path(__file__).with_name("pom.xml")


def kafka_jars(version: str | None = None) -> list[Path]:
    """Return all jars of a broker, sorted by name; they are downloaded on the first call for this version."""
    return sorted(jar_folder(version).glob("*.jar"))


def jar_folder(version: str | None = None) -> Path:
    wanted = kafka_version(version)
    folder = cached_folder(wanted)
    if not folder.is_dir():
        with _one_at_a_time(folder.parent):
            if not folder.is_dir():  # another process may have fetched it while we waited
                _fetch(wanted, folder)
    return folder


def cached_folder(version: str) -> Path:
    """Return where this version's jars are, or would be."""
    return cache_home() / "kafka" / version


def cache_home() -> Path:
    if asked := os.environ.get(CACHE_VARIABLE):
        return Path(asked).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("rebalance-lab"))


@contextmanager
def _one_at_a_time(shelf: Path) -> Iterator[None]:
    """Hold a lock that the kernel drops when its holder dies, so a killed download never blocks the next one."""
    try:
        shelf.mkdir(parents=True, exist_ok=True)
        lock = (shelf / "fetch.lock").open("w")
    except OSError as error:
        raise BrokerError(f"cannot write to the cache folder {shelf}: {error.strerror}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(version: str, folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise BrokerError(
            "no mvn on the PATH: install Maven to fetch Kafka's artifacts (Debian: apt-get install maven)"
        )
    unfinished = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=folder.parent))
    try:
        jars = unfinished / "jars"
        # --update-snapshots: or else Maven remembers for a day that a version was not out yet.
        command = [mvn, "--batch-mode", "--no-transfer-progress", "--update-snapshots", "--file", str(POM)]
        command += [f"-Dkafka.version={version}", f"-DoutputDirectory={jars}", "dependency:copy-dependencies"]
        # In a folder of its own, so that no .mvn settings of the caller's directory take part.
        done = subprocess.run(command, cwd=unfinished, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise BrokerError(_why_maven_failed(version, done.stdout + done.stderr))
        jars.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _why_maven_failed(version: str, output: str) -> str:
    """Put in one line what Maven says in some twenty."""
    if re.search(rf"ould not find artifact org\.apache\.kafka:kafka_2\.13:(jar|pom):{re.escape(version)}\s", output):
        return f"unknown Kafka version {version}: Maven knows no org.apache.kafka:kafka_2.13:{version}"
    errors = [line.removeprefix("[ERROR]").strip() for line in output.splitlines() if line.startswith("[ERROR]")]
    first = next(filter(None, errors), output.strip()[-300:] or "it said nothing")
    return f"mvn could not fetch Kafka {version}: {first}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m rebalance_lab.harness.kafka.brokers.processes.artifacts", description="Fetch Kafka's jars."
    )
    parser.add_argument("--kafka-version", help="instead of the pinned one")
    asked = parser.parse_args(arguments)
    try:
        print(jar_folder(asked.kafka_version))
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

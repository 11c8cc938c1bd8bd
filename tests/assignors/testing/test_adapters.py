"""Assignors from elsewhere, tested as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.assignors.testing.search.checking import check
from rebalance_lab.assignors.testing.subject.targets import load_target
from tests.conformance.java_oracle import why_not
from tests.paths import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the clients, not of ours
COMMAND = """
import json, sys
group = json.load(sys.stdin)["group"]
shares = {member: {} for member in group["members"]}
for name, topic in group["topics"].items():
    readers = sorted(m for m, described in group["members"].items() if name in described["topics"])
    for partition in range(topic["partitions"] if readers else 0):
        shares[readers[partition % len(readers)]].setdefault(name, []).append(partition)
print(json.dumps({"assignment": shares}))
"""


def test_a_command_in_any_language_speaks_json(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(COMMAND)
    bad.write_text(COMMAND.replace('range(topic["partitions"] if', 'range(topic["partitions"] - 1 if'))
    report = check(load_target(f"command:{sys.executable} {good}"), 25)
    assert report.holds, report.findings
    found = check(load_target(f"command:{sys.executable} {bad}"), 10).finding("valid")
    assert found is not None
    assert "is given to nobody" in found.message


@pytest.mark.parametrize("client", ["kafka-python:kafka", "aiokafka:aiokafka"])
def test_a_python_clients_assignor_is_called_as_the_client_calls_it(client: str) -> None:
    target = load_target(f"{client}.coordinator.assignors.sticky.sticky_assignor:StickyPartitionAssignor")
    group = Group(
        {"t": Topic(4)},
        {"A": Member(("t",), {"t": [0, 3]}, 4), "B": Member(("t",), {"t": [1, 2]}, 4), "C": Member(("t",))},
    )
    placed = target.subject().ask(group)
    shares = placed.shares()
    assert sorted(map(len, (share.get("t", []) for share in shares.values()))) == [1, 1, 2]
    assert set(shares["A"]["t"]) <= {0, 3}, "it was told what A owns"
    assert set(shares["B"]["t"]) <= {1, 2}


def test_the_kit_finds_that_kafka_pythons_range_loses_static_members() -> None:
    """Grouped by static or not without being sorted first: where the two alternate, the last run wins."""
    target = load_target(
        "kafka-python:kafka.coordinator.assignors.range:RangePartitionAssignor", ["per-topic-balanced"]
    )
    report = check(target, 600)
    found = report.finding("per-topic-balanced")
    assert found is not None
    instances = [member.instance_id for member in found.case.group.members.values()]
    assert None in instances
    assert len(set(instances)) > 1


RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"
CONSUMER = "org/apache/kafka/clients/consumer"
PARTS = {
    "kafka-clients": [f"{CONSUMER}/RangeAssignor", f"{CONSUMER}/ConsumerPartitionAssignor"],
    "slf4j-api": ["org/slf4j/LoggerFactory"],
}


def java_target(folder: Path, *jars: str, name: str = RANGE) -> str:
    """A target whose jars have the classes' names alone: nothing of it is run."""
    for jar in jars:
        with ZipFile(folder / f"{jar}.jar", "w") as made:
            for entry in PARTS[jar]:
                made.writestr(f"{entry}.class", b"")
    return f"java:{os.pathsep.join(str(folder / f'{jar}.jar') for jar in jars)}:{name}"


@pytest.mark.parametrize(
    ("jars", "name", "said"),
    [
        (["kafka-clients"], RANGE, "add slf4j-api to the class path: its classes are in none of them; Maven has it as"),
        (["kafka-clients", "slf4j-api"], "com.acme.Mine", "com.acme.Mine is in none of these jars and folders"),
        (["slf4j-api"], "org.slf4j.LoggerFactory", "add kafka-clients to the class path"),
    ],
)
def test_what_a_java_class_needs_is_asked_for_in_a_line(tmp_path: Path, jars: list[str], name: str, said: str) -> None:
    """A missing jar is no finding about the class."""
    pytest.importorskip("jpype", reason="jpype1 is not installed")
    done = lab_check(java_target(tmp_path, *jars, name=name))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert said in done.stderr


def test_without_jpype_a_java_class_is_not_called_broken(tmp_path: Path) -> None:
    (tmp_path / "jpype.py").write_text("raise ModuleNotFoundError(\"No module named 'jpype'\", name='jpype')\n")
    done = lab_check(java_target(tmp_path, "kafka-clients", "slf4j-api"), before=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "jpype is not installed: pip install jpype1" in done.stderr


def lab_check(target: str, before: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Check a target; modules in the folder `before` hide installed ones."""
    return subprocess.run(
        [sys.executable, "-m", "rebalance_lab", "check", target, "--examples", "20"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(before), str(ROOT)))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_java_class_from_its_jar(tmp_path: Path) -> None:
    """In a process of its own: a JVM cannot be started in one that already has, or will be forked with, another."""
    from rebalance_lab.harness.kafka.brokers.processes.artifacts import kafka_jars

    jars = os.pathsep.join(str(jar) for jar in kafka_jars() if jar.name.startswith(("kafka-clients", "slf4j-api")))
    command = [
        sys.executable,
        "-m",
        "rebalance_lab.api.cli",
        "check",
        f"java:{jars}:org.apache.kafka.clients.consumer.RangeAssignor",
    ]
    command += ["--promise", "per-topic-balanced", "--promise", "rack-aware", "--examples", "150", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["counterexamples"] == []
    assert done.returncode == 0

"""Kafka's own assignors in this process, through JPype: the answer to "what would Java do?".

Given      groups
Returns    for each, member id to a sorted list of (topic, partition), or the name of the exception that Java threw
Speed      groups cross the border in batches, as ints and one table of strings; Oracle.java (compiled once into the
           cache) builds Kafka's objects on the other side
Start at   why_not to know whether it can run, start_jvm, then java_answers
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_lab.assignors.model import Group, Member
from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.processes.artifacts import cache_home, kafka_jars

SOURCES = (Path(__file__).with_name("Oracle.java"), Path(__file__).with_name("ServerOracle.java"))
KINDS = {"classic/range": 0, "classic/roundrobin": 1, "classic/sticky": 2, "classic/cooperative-sticky": 3}

Answer = Mapping[str, Sequence[tuple[str, int]]] | str
"""Java's exceptions are answers too: their names stand in place of an assignment."""


def why_not() -> str | None:
    """One line on why Kafka's classes cannot be called here, or None."""
    for tool in ("java", "javac"):
        if shutil.which(tool) is None:
            return f"no {tool} on the PATH, so Kafka's own assignors cannot be asked"
    try:
        import jpype  # noqa: F401

        class_path()
    except (ImportError, BrokerError) as error:
        return f"Kafka's own assignors cannot be asked: {error}"
    return None


def class_path() -> list[Path]:
    """Kafka's jars without any binding for slf4j: with one, assignors log every collision of claims."""
    return [jar for jar in kafka_jars() if not jar.name.startswith(("log4j", "logback"))]


def compiled(source: Path) -> Path:
    """A folder with the classes of one Java file, compiled when the file is new or has changed."""
    folder = cache_home() / "oracle" / hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    if not folder.is_dir():
        unfinished = folder.with_name(f"{folder.name}.{id(source)}.unfinished")
        jars = ":".join(map(str, class_path()))
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", str(unfinished), str(source)], check=True)
        if not folder.is_dir():
            unfinished.rename(folder)
    return folder


def start_jvm(sources: Sequence[Path] = SOURCES) -> Any:
    """jpype with a running JVM. A process can start only one, so a second call changes nothing."""
    import jpype

    if not jpype.isJVMStarted():
        folders = [compiled(source) for source in sources]
        options = ["-Xmx2g", "-Xss4m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4"]
        jpype.startJVM(*options, classpath=[str(path) for path in (*folders, *class_path())])
    return jpype


def java_answers(cases: Iterable[tuple[str, Group, bool]]) -> list[Answer]:
    """Each case is a strategy, a group, and whether a new assignor is made for it or the one before goes on."""
    jpype = start_jvm()
    batch = Batch()
    for strategy, group, fresh in cases:
        batch.add(strategy, group, fresh)
    oracle = jpype.JClass("Oracle")(*batch.arguments(jpype))
    numbers = array("i", bytes(memoryview(oracle.answers())))
    exceptions = [str(name) for name in oracle.exceptions()]
    return batch.read(numbers, exceptions)


def java_times(strategy: str, group: Group, warm_up_ms: int, repetitions: int) -> list[int]:
    """CPU nanoseconds of Java's assign, conversion excluded, one warmed repetition after the other."""
    jpype = start_jvm()
    batch = Batch()
    batch.add(strategy, group, True)
    times = jpype.JClass("Oracle")(*batch.arguments(jpype)).times(warm_up_ms, repetitions)
    return array("q", bytes(memoryview(times))).tolist()


class Batch:
    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self.ints: list[int] = []
        self.groups = 0

    def text(self, text: str | None) -> int:
        return -1 if text is None else self.strings.setdefault(text, len(self.strings))

    def add(self, strategy: str, group: Group, fresh: bool) -> None:
        self.groups += 1
        ints, text = self.ints, self.text
        ints += (KINDS[strategy], fresh, len(group.topics))
        for name, topic in group.topics.items():
            ints += (text(name), topic.partitions, topic.racks is not None)
            for racks in topic.racks or ():
                ints.append(len(racks))
                ints += map(text, racks)
        ints.append(len(group.members))
        for member_id, member in group.members.items():
            self._add_member(member_id, member)

    def _add_member(self, member_id: str, member: Member) -> None:
        ints, text = self.ints, self.text
        ints += (text(member_id), text(member.instance_id), text(member.rack), len(member.topics))
        ints += map(text, member.topics)
        ints.append(-1 if member.generation is None else member.generation)
        ints += (0, 0) if member.claim_generation is None else (1, member.claim_generation)
        ints.append(len(member.owned))
        for name, partitions in member.owned.items():
            ints += (text(name), len(partitions))
            ints += partitions

    def arguments(self, jpype: Any) -> tuple[Any, Any]:
        encoded = [text.encode() for text in self.strings]
        ints = array("i", [len(encoded), *map(len, encoded), self.groups, *self.ints])
        return jpype.JArray(jpype.JByte)(b"".join(encoded)), jpype.JArray(jpype.JInt)(ints)

    def read(self, numbers: Sequence[int], exceptions: Sequence[str]) -> list[Answer]:
        names = list(self.strings)
        answers: list[Answer] = []
        at = 0
        for _ in range(self.groups):
            members = numbers[at]
            at += 1
            if members < 0:
                answers.append(exceptions[numbers[at]])
                at += 1
                continue
            answer = {}
            for _ in range(members):
                count = numbers[at + 1]
                end = at + 2 + 2 * count
                topics = [names[number] for number in numbers[at + 2 : end : 2]]
                answer[names[numbers[at]]] = sorted(zip(topics, numbers[at + 3 : end : 2], strict=True))
                at = end
            answers.append(answer)
        return answers

"""The report cards in this folder: assignors of other clients, and Java's from its jar, held to what they are for.

`python examples/report_cards/make.py [NAME ...]` writes NAME.txt beside it. Java's need a JDK and Kafka's jars, which
`rebalance_lab.harness.kafka.brokers` fetches once.
"""

import os
import sys
from pathlib import Path

from rebalance_lab.assignors.testing.search.checking import check
from rebalance_lab.assignors.testing.search.report_text import card, counterexample
from rebalance_lab.assignors.testing.subject.targets import load_target
from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn

HERE = Path(__file__).parent
KAFKA_PYTHON = "kafka-python:kafka.coordinator.assignors"
AIOKAFKA = "aiokafka:aiokafka.coordinator.assignors"
JAVA = "java:$JARS:org.apache.kafka.clients.consumer"
CARDS = {
    "kafka-python-range": (f"{KAFKA_PYTHON}.range:RangePartitionAssignor", ("per-topic-balanced",)),
    "kafka-python-roundrobin": (f"{KAFKA_PYTHON}.roundrobin:RoundRobinPartitionAssignor", ()),
    "kafka-python-sticky": (f"{KAFKA_PYTHON}.sticky.sticky_assignor:StickyPartitionAssignor", ("balanced", "sticky")),
    "kafka-python-cooperative-sticky": (
        f"{KAFKA_PYTHON}.cooperative_sticky:CooperativeStickyAssignor",
        ("balanced", "sticky", "cooperative"),
    ),
    "aiokafka-range": (f"{AIOKAFKA}.range:RangePartitionAssignor", ("per-topic-balanced",)),
    "aiokafka-roundrobin": (f"{AIOKAFKA}.roundrobin:RoundRobinPartitionAssignor", ()),
    "aiokafka-sticky": (f"{AIOKAFKA}.sticky.sticky_assignor:StickyPartitionAssignor", ("balanced", "sticky")),
    "java-sticky": (f"{JAVA}.StickyAssignor", ("balanced", "sticky", "rack-aware")),
    "java-cooperative-sticky": (
        f"{JAVA}.CooperativeStickyAssignor",
        ("balanced", "sticky", "cooperative", "rack-aware"),
    ),
}


def jars() -> str:
    from rebalance_lab.harness.kafka.brokers.processes.artifacts import kafka_jars

    return os.pathsep.join(str(jar) for jar in kafka_jars() if jar.name.startswith(("kafka-clients", "slf4j-api")))


def make(name: str) -> None:
    text, promises = CARDS[name]
    where = jars() if text.startswith("java:") else "$JARS"
    report = check(load_target(text.replace("$JARS", where), promises), machines=ProtocolChurn)
    parts = [card(report), *(counterexample(report, finding) for finding in report.findings)]
    (HERE / f"{name}.txt").write_text("\n\n\n".join(parts).replace(where, "$JARS") + "\n")
    print(f"{name}: {'all promised holds' if report.holds else ', '.join(f.property for f in report.findings)}")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or CARDS:
        make(chosen)

"""Call Java's ConsumerPartitionAssignor classes from jars on disk, in this process, through JPype.

Given      `CLASSPATH:CLASS`: jars and folders separated as Java separates them, then the class. Kafka's clients and
           slf4j-api have to be among the jars, unless the assignor's own jar holds them
Claims     as a client sends them: owned partitions, generation and rack in the subscription, and, unless the class has
           Cooperative in its name, the same as user data in the layout of Kafka's StickyAssignor
JVM        started at the first question, which the property kit asks in a child process: one JVM per process, and a
           process with a JVM cannot be forked
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from rebalance_lab.assignors.classic.sticky.user_data import encode_sticky
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.model import Group, Member, Topic

PACKAGE = "org.apache.kafka"
NEEDED = {
    f"{PACKAGE}.clients.consumer.ConsumerPartitionAssignor": ("kafka-clients", "org.apache.kafka:kafka-clients"),
    "org.slf4j.LoggerFactory": ("slf4j-api", "org.slf4j:slf4j-api"),
}
"""A class of each jar that an assignor cannot do without, and where to get it."""


class JavaAssignor:
    limit_memory = False  # a JVM reserves far more than it uses
    call_limit_s = 10.0

    def __init__(self, text: str) -> None:
        self.text = text
        paths, _, self.class_name = text.rpartition(":")
        self.class_path = [path for one in paths.split(os.pathsep) for path in glob.glob(one) or [one]]
        missing = [path for path in self.class_path if not Path(path).exists()]
        if not paths or missing:
            what = f"{missing[0]} does not exist" if missing else "expected java:CLASSPATH:CLASS"
            raise ContractError("assignor", f"java:{text}: {what}")
        check_jpype(text)
        check_classes(text, self.class_path, self.class_name)
        self.name = self.class_name.rpartition(".")[2]
        self.cooperative = "Cooperative" in self.name
        self._theirs: Any = None

    @property
    def supported_protocols(self) -> tuple[str, ...]:
        """Decide by the class's name: asking the class would start a JVM in a process that is going to be forked."""
        return ("cooperative", "eager") if self.cooperative else ("eager",)

    def fresh(self) -> JavaAssignor:
        """Return another one of the same class, without looking into the jars again: that takes as long as a call."""
        made = copy(self)
        made._theirs = None
        return made

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        if not group.members:
            return {}
        jpype = start_jvm(self.class_path)
        if self._theirs is None:
            self._theirs = jpype.JClass(self.class_name)()
        subscriptions = jpype.JClass("java.util.HashMap")()
        for member_id, member in group.members.items():
            subscriptions.put(member_id, subscription_of(jpype, member, with_user_data=not self.cooperative))
        whole = jpype.JClass(f"{PACKAGE}.clients.consumer.ConsumerPartitionAssignor$GroupSubscription")(subscriptions)
        try:
            answer = self._theirs.assign(cluster_of(jpype, group), whole).groupAssignment()
        except jpype.JClass("java.lang.Throwable") as error:
            raise RuntimeError(str(error.toString())) from None
        return {str(entry.getKey()): shares_of(entry.getValue()) for entry in answer.entrySet()}


def check_jpype(text: str) -> None:
    """Refuse to begin without JPype and Java: a missing dependency is no finding about the class."""
    try:
        import jpype
    except ModuleNotFoundError as error:
        install = "pip install jpype1"
        raise ContractError("assignor", f"java:{text}: {error.name} is not installed: {install}") from None
    try:
        jpype.getDefaultJVMPath()
    except (jpype.JVMNotFoundException, jpype.JVMNotSupportedException) as error:
        why = " ".join(str(error).split())
        install = "install Java 17 or later, and let JAVA_HOME name it"
        raise ContractError("assignor", f"java:{text}: no Java to run it: {install} ({why})") from None


def check_classes(text: str, class_path: list[str], class_name: str) -> None:
    """Check that the class path has the class and what each assignor needs."""
    if not has_class(class_path, class_name):
        raise ContractError("assignor", f"java:{text}: {class_name} is in none of these jars and folders")
    for name, (jar, artifact) in NEEDED.items():
        if not has_class(class_path, name):
            where = f"its classes are in none of them; Maven has it as {artifact}"
            raise ContractError("assignor", f"java:{text}: add {jar} to the class path: {where}")


def has_class(class_path: list[str], name: str) -> bool:
    """Tell whether a jar or a folder has this class. A nested one is written as `Outer$Inner`, as Java does."""
    file = f"{name.replace('.', '/')}.class"
    return any(Path(place, file).is_file() if Path(place).is_dir() else in_jar(place, file) for place in class_path)


def in_jar(jar: str, file: str) -> bool:
    try:
        with ZipFile(jar) as opened:
            return file in opened.NameToInfo
    except (BadZipFile, OSError):
        return False


def start_jvm(class_path: list[str]) -> Any:
    import jpype

    if not jpype.isJVMStarted():
        jpype.startJVM("-Xmx1g", "-Xss4m", "-XX:+UseSerialGC", classpath=class_path)
    return jpype


def cluster_of(jpype: Any, group: Group) -> Any:
    """Build a cluster in which every rack is a broker; a partition's replicas are the brokers of its racks."""
    node_class = jpype.JClass(f"{PACKAGE}.common.Node")
    info_class = jpype.JClass(f"{PACKAGE}.common.PartitionInfo")
    racks = sorted({rack for topic in group.topics.values() for racks in topic.racks or () for rack in racks})
    nodes = {rack: node_class(number, "host", 9092, rack) for number, rack in enumerate(racks)}
    infos = jpype.JClass("java.util.ArrayList")()
    for name, topic in group.topics.items():
        for partition in range(topic.partitions):
            replicas = jpype.JArray(node_class)([nodes[rack] for rack in racks_of(topic, partition)])
            infos.add(info_class(name, partition, node_class.noNode(), replicas, replicas))
    all_nodes = jpype.JClass("java.util.ArrayList")(list(nodes.values()))
    nothing = jpype.JClass("java.util.HashSet")()
    return jpype.JClass(f"{PACKAGE}.common.Cluster")("lab", all_nodes, infos, nothing, nothing)


def racks_of(topic: Topic, partition: int) -> tuple[str, ...]:
    return topic.racks[partition] if topic.racks else ()


def subscription_of(jpype: Any, member: Member, *, with_user_data: bool) -> Any:
    partition_class = jpype.JClass(f"{PACKAGE}.common.TopicPartition")
    optional = jpype.JClass("java.util.Optional")
    array_list: Callable[[], Any] = jpype.JClass("java.util.ArrayList")
    topics, owned = array_list(), array_list()
    for name in member.topics:
        topics.add(name)
    for name, partitions in member.owned.items():
        for partition in partitions:
            owned.add(partition_class(name, partition))
    generation = -1 if member.generation is None else member.generation
    data = None
    if with_user_data and (member.owned or member.generation is not None):
        data = jpype.JClass("java.nio.ByteBuffer").wrap(
            jpype.JArray(jpype.JByte)(encode_sticky(member.owned, generation))
        )
    subscription = jpype.JClass(f"{PACKAGE}.clients.consumer.ConsumerPartitionAssignor$Subscription")(
        topics, data, owned, generation, optional.ofNullable(member.rack)
    )
    subscription.setGroupInstanceId(optional.ofNullable(member.instance_id))
    return subscription


def shares_of(assignment: Any) -> dict[str, list[int]]:
    shares: dict[str, list[int]] = {}
    for partition in assignment.partitions():
        shares.setdefault(str(partition.topic()), []).append(int(partition.partition()))
    return shares

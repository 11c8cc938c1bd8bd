"""The short language of the vectors in vectors.txt, played through the sequence player one step at a time.

One step is `request -> answer`; ` | ` separates steps on a line, `#` begins a remark. Every vector has a fresh group
`g`, the uniform assignor and assignment interval 0 unless its title says otherwise. Partitions without a topic are of
t4 or of the topic in the title; `~` is a prefix that no other topic has.

    A 2 [t4] own {0,1} rto 5 i i1 rack r by range re 'x' v 0     a heartbeat; what is not written is unchanged. Epoch 0
                                                                 adds own {} and rto 60000; `full` adds rto and names
    -> 3 {0,1}    -> 3 ·    -> 3 {}                              epoch and assignment; none; an empty one
    group, member A, assignor, list, classic_group               what the views show
    log                                                          records since the last `log`; -X is a tombstone
    commit A 2 {0}, fetch A 2                                    offsets
    join c own {2}, sync c 3, beat c 3, leave A B/i1 /i2         classic members, in small letters
    set session 2000, wait 1.1, topic x 4, grow x 6, drop x      settings, time, topics
    gone C 1.7..2.4 C 99                                         C leaves within that many seconds while `C 99` goes on
"""

from __future__ import annotations

import base64
import re
import shlex
from typing import Any

from rebalance_lab.harness.conversation.sequence_file import parse_sequence, parse_step
from rebalance_lab.harness.conversation.sequence_player import Player
from rebalance_lab.harness.hosts.served_protocols import PROTOCOLS
from rebalance_lab.protocol_v1.common.consumer_protocol import Assignment as ClassicAssignment
from rebalance_lab.protocol_v1.common.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from tests.protocol_v2.coordinator.shown import from_listed, partitions, shown, shown_record, sort_neighbours

TOPICS = {"t4": 4, "u2": 2, "t6": 6, "p3": 3, "q3": 3}
CREATED_LAST = "p3"
"""Uniform's choice between whole topics follows their ids: on the broker p3's came after q3's, here ids are numbers."""
PREFIX = "run-"
CONFIG: dict[str, Any] = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.session.timeout.ms": 1,
    "group.consumer.session.timeout.ms": 45_000,
    "group.consumer.min.heartbeat.interval.ms": 1,
    "group.consumer.heartbeat.interval.ms": 1_000,
    "group.min.session.timeout.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
}
STEP_MS = 1


class Script:
    def __init__(self, title: str, lines: list[str], config: dict[str, Any] | None = None) -> None:
        topic = re.search(r"\(topic (\S+)\)", title)
        self.topic = (topic.group(1) if topic else "t4").replace("~", PREFIX)
        settings = dict(CONFIG) | (config or {})
        if "default interval" in title:
            settings["group.consumer.assignment.interval.ms"] = 1_000
        for name, value in re.findall(r"needs (\S+?)=(\w+)", title):
            settings[name] = int(value) if value.isdigit() else value
        self.topics = dict(TOPICS)
        first = {name: size for name, size in TOPICS.items() if name != CREATED_LAST}
        sequence = {"protocol": "consumer", "config": settings, "topics": first, "steps": []}
        self.player = Player(parse_sequence(sequence, PROTOCOLS))
        self.served = self.player.sequence.served
        self.now = 0
        self.number = 0
        self.logged = 0
        self.ids: dict[str, str] = {"-": "", "_": " ", "null": ""}
        self.names: dict[str, list[str]] = {}
        self.protocols: dict[str, str] = {}
        self.lines = lines
        self.change_topics()

    def run(self) -> None:
        for line in self.lines:
            for step in line.split("#")[0].replace("~", PREFIX).split(" | "):
                if step.strip():
                    self.step(step.strip())

    def step(self, text: str) -> None:
        asked, _, expected = (part.strip() for part in text.partition("->"))
        try:
            words = shlex.split(keep_sets(asked))
            found = getattr(self, f"do_{words[0]}", None)
            if found is None or len(words[0]) == 1:
                answer = self.heartbeat(words)
            else:
                answer = found(words[1:])
            if expected:
                wanted = self.canonical(words[0], expected)
                assert answer == wanted, f"answered {answer}, not {wanted}"
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from None

    def canonical(self, kind: str, expected: str) -> Any:
        if kind == "log":
            return sort_neighbours([self.canonical_record(part) for part in expected.split(";")])
        if kind == "leave":
            return expected.split()
        parts = re.findall(r"\S*\{[^}]*\}|\S+", expected)
        return [canonical_part(self.topic, part) for part in parts]

    def canonical_record(self, text: str) -> str:
        parts = re.findall(r"[−-]?\{[^}]*\}|\S+", text)
        return " ".join(
            ("-" if part[0] in "−-" else "") + shown(partitions(self.topic, part.lstrip("−-")))
            if "{" in part and parts[0] != "Regex"
            else part.replace("−", "-")
            for part in parts
            if part not in ("−", "-")
        )

    # What a step does

    def send(self, request: str, body: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        self.now += STEP_MS
        self.number += 1
        name = f"s{self.number}"
        described = {"at_ms": self.now, "as": name, "request": request, "body": body}
        if version is not None:
            described["version"] = version
        self.player.feed(parse_step(described, name, self.served))
        return dict(self.player.answers.get(name) or {})

    def heartbeat(self, words: list[str]) -> list[Any]:
        who, epoch, *rest = words
        body: dict[str, Any] = {"group_id": "g", "member_id": self.ids.get(who, who), "member_epoch": int(epoch)}
        options = options_of(rest)
        if epoch == "0":
            body |= {"topic_partitions": [], "rebalance_timeout_ms": 60_000}
        if "full" in options:
            body |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.names[who]}
        if "names" in options:
            self.names[who] = body["subscribed_topic_names"] = options["names"].split()
        if "own" in options:
            body["topic_partitions"] = None if options["own"] == "null" else self.listed(options["own"])
        for word, field in HEARTBEAT_FIELDS.items():
            if word in options:
                body[field] = int(options[word]) if word == "rto" else options[word]
        version = int(options.get("v", 1))
        found = self.send("ConsumerGroupHeartbeat", body, version)
        if found["error_code"] != "NONE":
            assert (found["member_id"], found["member_epoch"], found["assignment"]) == (None, 0, None)
            return [found["error_code"]]
        assignment = found["assignment"]
        told = "·" if assignment is None else shown(from_listed(assignment["topic_partitions"]))
        return [str(found["member_epoch"]), told]

    def listed(self, text: str) -> list[dict[str, Any]]:
        found: dict[str, list[int]] = {}
        for topic, partition, _ in partitions(self.topic, text):
            found.setdefault(topic, []).append(partition)
        return [{"topic_name": topic, "partitions": numbers} for topic, numbers in found.items()]

    def describe(self) -> dict[str, Any]:
        return dict(self.send("ConsumerGroupDescribe", {"group_ids": ["g"]})["groups"][0])

    def do_group(self, words: list[str]) -> list[str]:
        found = self.describe()
        if found["error_code"] != "NONE":
            return [found["error_code"]]
        return [found["group_state"], f"G={found['group_epoch']}", f"A={found['assignment_epoch']}"]

    def do_assignor(self, words: list[str]) -> list[str]:
        return [self.describe()["assignor_name"]]

    def do_member(self, words: list[str]) -> list[str]:
        member_id = self.ids.get(words[0], words[0])
        member = next(member for member in self.describe()["members"] if member["member_id"] == member_id)
        held = shown(from_listed(member["assignment"]["topic_partitions"]))
        target = shown(from_listed(member["target_assignment"]["topic_partitions"]))
        return [f"e={member['member_epoch']}", held, f"T={target}", ["classic", "consumer"][member["member_type"]]]

    def do_list(self, words: list[str]) -> list[str]:
        group = next(group for group in self.send("ListGroups", {})["groups"] if group["group_id"] == "g")
        return [group["group_type"], group["group_state"]]

    def do_classic_group(self, words: list[str]) -> list[str]:
        return [self.send("DescribeGroups", {"groups": ["g"]})["groups"][0]["group_state"]]

    def do_delete_group(self, words: list[str]) -> list[str]:
        return [self.send("DeleteGroups", {"groups_names": ["g"]})["results"][0]["error_code"]]

    def do_log(self, words: list[str]) -> list[str]:
        records = self.player.log.durable[self.logged :]
        self.logged = len(self.player.log.durable)
        return sort_neighbours([shown_record(record) for record in records] or ["nothing"])

    def do_wait(self, words: list[str]) -> None:
        self.now += int(float(words[0]) * 1_000)
        self.player.fire_timers(self.now)

    def do_set(self, words: list[str]) -> None:
        name = {"session": "consumer.session.timeout.ms", "interval": "consumer.assignment.interval.ms"}[words[0]]
        resource = {"resource_name": "g", "configs": [{"name": name, "value": words[1]}]}
        found = self.send("IncrementalAlterConfigs", {"resources": [resource]})
        assert found["responses"][0]["error_code"] == "NONE", found

    def do_topic(self, words: list[str]) -> None:
        self.topics = {**self.topics, words[0]: int(words[1])}
        self.change_topics()

    do_grow = do_topic

    def do_drop(self, words: list[str]) -> None:
        self.topics = {name: size for name, size in self.topics.items() if name != words[0]}
        self.change_topics()

    def change_topics(self) -> None:
        self.now += STEP_MS
        self.player.feed(parse_step({"at_ms": self.now, "topics": self.topics}, "topics", self.served))

    def do_gone(self, words: list[str]) -> None:
        who, span, *repeated = words
        earliest, latest = (float(part) * 1_000 for part in span.split(".."))
        member_id = self.ids.get(who, who)
        started = self.now
        while any(member["member_id"] == member_id for member in self.describe()["members"]):
            assert self.now - started <= latest, f"{who} is still there after {latest} ms"
            self.do_wait(["0.05"])
            if repeated:
                self.step(" ".join(repeated))
        assert self.now - started >= earliest, f"{who} was gone after {self.now - started} ms"

    def do_commit(self, words: list[str]) -> list[str]:
        who, epoch, named, *rest = words
        topics = [
            {
                "name": entry["topic_name"],
                "partitions": [{"partition_index": number, "committed_offset": 5} for number in entry["partitions"]],
            }
            for entry in self.listed(named)
        ]
        version = int(options_of(rest).get("v", 9))
        if version >= 10:
            topics = [{"topic_name": topic["name"], "partitions": topic["partitions"]} for topic in topics]
        body = {
            "group_id": "g",
            "member_id": self.ids.get(who, who),
            "generation_id_or_member_epoch": int(epoch),
            "topics": topics,
        }
        found = self.send("OffsetCommit", body, version)
        errors = {partition["error_code"] for topic in found["topics"] for partition in topic["partitions"]}
        assert len(errors) == 1
        return list(errors)

    def do_fetch(self, words: list[str]) -> list[str]:
        member_id = None if words[0] == "null" else self.ids.get(words[0], words[0])
        group = {"group_id": "g", "member_id": member_id, "member_epoch": int(words[1]), "topics": None}
        return [self.send("OffsetFetch", {"groups": [group]}, 9)["groups"][0]["error_code"]]

    def do_join(self, words: list[str]) -> list[str]:
        who, *rest = words
        options = options_of(rest)
        owned: dict[str, tuple[int, ...]] = {}
        for topic, partition, _ in partitions(self.topic, options.get("own", "{}")):
            owned[topic] = (*owned.get(topic, ()), partition)
        topics = tuple(options.get("names", self.topic).split())
        data = encode_subscription(Subscription(topics=topics, owned_partitions=owned))
        name = options.get("protocols", "range")
        self.protocols[who] = name
        body = {
            "group_id": "g",
            "member_id": "" if "new" in options else self.ids.get(who, who),
            "group_instance_id": options.get("i"),
            "session_timeout_ms": int(options.get("session", 10_000)),
            "rebalance_timeout_ms": int(options.get("rto", 60_000)),
            "protocol_type": options.get("type", "consumer"),
            "protocols": [{"name": name, "metadata": base64.b64encode(data).decode()}],
        }
        found = self.send("JoinGroup", body, 9)
        if not found:  # parked: in a classic group the join phase is closed by its timer
            self.do_wait(["0.005"])
            found = dict(self.player.answers[f"s{self.number}"])
        if "new" in options and found["member_id"]:
            self.ids[who] = found["member_id"]
        if found["error_code"] != "NONE":
            return [found["error_code"]]
        leads = found["leader"] == found["member_id"]
        return [str(found["generation_id"]), *(["leader"] if leads else [])]

    def do_sync(self, words: list[str]) -> list[str]:
        who, generation, *rest = words
        options = options_of(rest)
        member_id = self.ids.get(who, who)
        given = []
        if "give" in options:
            listed = {entry["topic_name"]: tuple(entry["partitions"]) for entry in self.listed(options["give"])}
            data = encode_assignment(ClassicAssignment(assigned_partitions=listed))
            given = [{"member_id": member_id, "assignment": base64.b64encode(data).decode()}]
        body = {
            "group_id": "g",
            "member_id": member_id,
            "generation_id": int(generation),
            "group_instance_id": options.get("i"),
            "protocol_type": "consumer",
            "protocol_name": options.get("protocol", self.protocols.get(who, "range")),
            "assignments": given,
        }
        found = self.send("SyncGroup", body, 5)
        if found["error_code"] != "NONE":
            return [found["error_code"]]
        assigned = decode_assignment(base64.b64decode(found["assignment"])).assigned_partitions
        return [shown([(topic, partition, None) for topic in assigned for partition in assigned[topic]])]

    def do_beat(self, words: list[str]) -> list[str]:
        who, generation, *rest = words
        body = {
            "group_id": "g",
            "member_id": self.ids.get(who, who),
            "generation_id": int(generation),
            "group_instance_id": options_of(rest).get("i"),
        }
        return [self.send("Heartbeat", body, 4)["error_code"]]

    def do_leave(self, words: list[str]) -> list[str]:
        entries = []
        for word in words:
            who, _, instance = word.partition("/")
            entries.append({"member_id": self.ids.get(who, who), "group_instance_id": instance or None})
        found = self.send("LeaveGroup", {"group_id": "g", "members": entries}, 5)
        return [member["error_code"] for member in found["members"]]


HEARTBEAT_FIELDS = {
    "rto": "rebalance_timeout_ms",
    "i": "instance_id",
    "rack": "rack_id",
    "by": "server_assignor",
    "re": "subscribed_topic_regex",
    "g": "group_id",
}
FLAGS = ("full", "new", "leader")


def keep_sets(text: str) -> str:
    """Braces and brackets as one word each."""
    text = re.sub(r"\{([^}]*)\}", lambda found: "'{" + found.group(1) + "}'", text)
    return re.sub(r"(?<!')\[([^\]']*)\]", lambda found: f"names '{found.group(1)}'", text)


def options_of(words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        if words[at] in FLAGS:
            options[words[at]] = ""
            at += 1
        else:
            options[words[at]] = words[at + 1]
            at += 2
    return options


def canonical_part(default: str, part: str) -> str:
    prefix, brace, rest = part.partition("{")
    return prefix + shown(partitions(default, brace + rest)) if brace else part


def read_vectors(text: str) -> dict[str, list[str]]:
    vectors: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith(" "):
            vectors[line] = []
        elif line.strip():
            vectors[next(reversed(vectors))].append(line)
    return vectors

"""The short language of these tests: one line per message, compiled to a sequence file and played.

    config group.max.size=2             a broker setting; the defaults of a script are in CONFIG
    G a* b s/pod R=2500                 a Stable group, a leading; s is static as `pod`. `Gj` stops before SyncGroup
    J x new                             JoinGroup without an id; x is from then on who that answer names
    J x park as=x2                      JoinGroup with x's id, not answered at once; the step is called x2
    <- x2 0 gen=2 leader listed=3       x2 is answered now (at this line's time), so
    H a -> 27                           answered at once
    J a => 1500 0 gen=2                 answered 1500 ms after it was sent
    H a gen=7 i=pod v=3 -> 22           arguments; a generation is by default that of the member's last JoinGroup
    L a /pod b/pod -> 0 entries=0,25,82 LeaveGroup entries as member/instance
    D -> Stable                         DescribeGroups; C OffsetCommit, F OffsetFetch, S SyncGroup, List, Delete
    T a offset=50 producer=7 -> codes=0 TxnOffsetCommit; `end commit 7` or `end abort 7` ends that transaction
    +500    @1000    @done+2000         later by 500; at 1000; 2000 after G's join phase ended
    never x2                            x2 has no answer until the end
    ids m-1 m-2 ...                     the ids to hand out; `know x=m-2`: what x is called

Codes are Kafka's numbers. A name that nobody has joined under is sent as it is: a stranger.
"""

from __future__ import annotations

import base64
import shlex
from dataclasses import dataclass, field
from typing import Any

from rebalance_lab.harness.conversation.sequence_player import Transcript, play
from rebalance_lab.protocol_v1.common.consumer_protocol import Subscription, encode_subscription
from rebalance_lab.protocol_v1.common.errors import Error

CONFIG = {"group.initial.rebalance.delay.ms": 10, "group.min.session.timeout.ms": 100}
GROUP = "g"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@dataclass
class Expected:
    line: str
    step: str
    at_ms: int | None = None
    words: list[str] = field(default_factory=list)
    parked: bool = False
    never: bool = False


class Script:
    def __init__(self, text: str) -> None:
        self.config: dict[str, int] = dict(CONFIG)
        self.topics: dict[str, int] = {"orders": 6, "payments": 3}
        self.steps: list[dict[str, Any]] = []
        self.expected: list[Expected] = []
        self.ids: dict[str, str] = {}
        self.generations: dict[str, str] = {}
        self.instances: dict[str, str] = {}
        self.lists: dict[str, Any] = {}
        self.timeouts: dict[str, tuple[int, int]] = {}
        self.now = 0
        self.done = 0
        self.member_ids: list[str] = []
        self.group = GROUP
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#", 1)[0].strip()
            if line:
                self.line = f"line {number}: {line}"
                self.read(line)

    def read(self, line: str) -> None:
        words = shlex.split(line)
        if words[0][0] in "+@":
            self.advance(words.pop(0))
        if words:
            getattr(self, "do_" + {"<-": "answered"}.get(words[0], words[0]).lower())(words[1:])

    def advance(self, word: str) -> None:
        if word[0] == "+":
            self.now += int(word[1:])
        else:
            base, _, offset = word[1:].partition("+")
            self.now = self.done + int(offset) if base == "done" else int(base)

    # What a line does

    def do_config(self, words: list[str]) -> None:
        for word in words:
            key, value = word.split("=")
            self.config[key] = int(value)

    def do_topics(self, words: list[str]) -> None:
        topics = {name: int(size) for name, size in (word.split("=") for word in words)}
        self.steps.append({"at_ms": self.now, "topics": topics})

    def do_ids(self, words: list[str]) -> None:
        self.member_ids = words

    def do_know(self, words: list[str]) -> None:
        """An id that was seen elsewhere than in an answer to its owner."""
        self.ids |= dict(word.split("=") for word in words)

    def do_group(self, words: list[str]) -> None:
        self.group = words[0]

    def do_coordinator(self, words: list[str]) -> None:
        self.steps.append({"at_ms": self.now, "coordinator": words[0]})

    def do_appends(self, words: list[str]) -> None:
        self.steps.append({"at_ms": self.now, "appends": words[0]})

    def do_never(self, words: list[str]) -> None:
        self.expected.append(Expected(line=self.line, step=words[0], never=True))

    def do_answered(self, words: list[str]) -> None:
        self.expected.append(Expected(line=self.line, step=words[0], at_ms=self.now, words=words[1:]))

    def do_g(self, words: list[str]) -> None:
        self.do_gj(words)
        self.now += 10
        names = [word.rstrip("*").split("/")[0] for word in words if "=" not in word]
        plan = "plan=" + ",".join(f"{name}:{name.upper()}" for name in names)
        for name in names[1:]:
            self.do_s([name, "park"])
        self.do_s([names[0], plan, "->", "0"])

    def do_gj(self, words: list[str]) -> None:
        options = [word for word in words if "=" in word]
        members = [word.rstrip("*") for word in words if "=" not in word]
        joins = []
        for member in members:
            name, _, instance = member.partition("/")
            if instance:
                joins.append(self.do_j([name, "new", f"i={instance}", "park", *options]))
            elif "v=0" in options:
                joins.append(self.do_j([name, "new", "park", *options]))
            else:
                self.do_j([name, "new", *options, "->", "79"])
                joins.append(self.do_j([name, "park", *options]))
        self.now += self.config["group.initial.rebalance.delay.ms"] * min(len(members), 2)
        self.done = self.now
        for member, join in zip(members, joins, strict=True):
            self.ids[member.partition("/")[0]] = f"${join}.member_id"
            self.do_answered([join, "0"])

    def do_j(self, words: list[str]) -> str:
        who, words, options, expectation = self.parse(words)
        new = "new" in words
        old_t, old_r = self.timeouts.get(who, (10_000, 30_000))
        timeouts = int(options.get("T", old_t)), int(options.get("R", old_r))
        self.timeouts[who] = timeouts
        if "list" in options:
            self.lists[who] = protocols(options["list"])
        listed = self.lists.setdefault(who, protocols("range"))
        instance = options.get("i", None if new else self.instances.get(who))
        body = {
            "group_id": self.group,
            "member_id": "" if new else self.id_of(who),
            "session_timeout_ms": timeouts[0],
            "rebalance_timeout_ms": timeouts[1],
            "protocol_type": options.get("type", "consumer"),
            "protocols": listed,
            "reason": options.get("reason"),
        }
        if instance is not None:
            body["group_instance_id"] = instance
        step = self.send("JoinGroup", body, options, expectation)
        if new:
            self.ids[who] = f"${step}.member_id"
            if instance is not None:
                self.instances[who] = instance
        self.generations[who] = f"${step}.generation_id"
        return step

    def do_s(self, words: list[str]) -> None:
        who, words, options, expectation = self.parse(words)
        body: dict[str, Any] = self.member_body(who, options, "generation_id")
        plan = [entry.split(":") for entry in options.get("plan", "").split(",") if entry]
        body["assignments"] = [{"member_id": self.id_of(name), "assignment": b64(data)} for name, data in plan]
        body["protocol_type"] = None if options.get("type") == "null" else options.get("type", "consumer")
        body["protocol_name"] = None if options.get("name") == "null" else options.get("name", "range")
        self.send("SyncGroup", body, options, expectation)

    def do_h(self, words: list[str]) -> None:
        who, words, options, expectation = self.parse(words)
        self.send("Heartbeat", self.member_body(who, options, "generation_id"), options, expectation)

    def do_c(self, words: list[str]) -> None:
        who, words, options, expectation = self.parse(words)
        body = self.member_body(who, options, "generation_id_or_member_epoch")
        partitions = [
            {
                "partition_index": int(number),
                "committed_offset": int(options.get("offset", 5)),
                "committed_metadata": options.get("meta", "x")[:1] * int(options.get("length", 1)),
            }
            for number in options.get("p", "0").split(",")
            if number
        ]
        if "retention" in options:
            body["retention_time_ms"] = int(options["retention"])
        key = "topic_name" if int(options.get("v", 9)) >= 10 else "name"
        body["topics"] = [{key: options.get("t", "orders"), "partitions": partitions}] if partitions else []
        self.send("OffsetCommit", body, options, expectation)

    def do_t(self, words: list[str]) -> None:
        who, words, options, expectation = self.parse(words)
        named = self.member_body(who, options, "generation_id") if int(options.get("v", 5)) >= 3 else {}
        partition = {
            "partition_index": int(options.get("p", 0)),
            "committed_offset": int(options.get("offset", 5)),
            "committed_metadata": "x" * int(options.get("length", 1)),
        }
        producer = {"transactional_id": "tx", "producer_id": int(options.get("producer", 1)), "producer_epoch": 0}
        topics = [{"name": options.get("t", "orders"), "partitions": [partition]}]
        body = {"group_id": self.group, **named, **producer, "topics": topics}
        self.send("TxnOffsetCommit", body, options, expectation)

    def do_end(self, words: list[str]) -> None:
        producer, committed = int(words[1]) if len(words) > 1 else 1, words[0] == "commit"
        self.steps.append({"at_ms": self.now, "transaction": {"producer_id": producer, "committed": committed}})

    def do_f(self, words: list[str]) -> None:
        _, words, options, expectation = self.parse(["-", *words])
        version = int(options.get("v", 9))
        key = "topic_name" if version >= 10 else "name"
        asked = [{key: options.get("t", "orders"), "partition_indexes": [int(options.get("p", 0))]}]
        topics = None if "all" in words else asked
        if version >= 8:
            body: dict[str, Any] = {"groups": [{"group_id": self.group, "topics": topics}]}
        else:
            body = {"group_id": self.group, "topics": topics}
        if "stable" in words:
            body["require_stable"] = True
        self.send("OffsetFetch", body, options, expectation)

    def do_l(self, words: list[str]) -> None:
        cut = next((i for i, word in enumerate(words) if word in ("->", "=>", "park") or "=" in word), len(words))
        _, _, options, expectation = self.parse(["-", *words[cut:]])
        entries: list[dict[str, Any]] = []
        for word in words[:cut]:
            name, _, instance = word.partition("/")
            entries.append({"member_id": self.id_of(name) if name else "", "group_instance_id": instance or None})
        if int(options.get("v", 5)) < 3:
            body = {"group_id": self.group, "member_id": entries[0]["member_id"]}
        else:
            body = {"group_id": self.group, "members": entries}
        self.send("LeaveGroup", body, options, expectation)

    def do_d(self, words: list[str]) -> None:
        _, _, options, expectation = self.parse(["-", *words])
        self.send("DescribeGroups", {"groups": [self.group]}, options, expectation)

    def do_list(self, words: list[str]) -> None:
        _, _, options, expectation = self.parse(["-", *words])
        states, types = options.pop("states", ""), options.pop("types", "")
        body = {"states_filter": [states] if states else [], "types_filter": [types] if types else []}
        self.send("ListGroups", body, options, expectation)

    def do_delete(self, words: list[str]) -> None:
        _, _, options, expectation = self.parse(["-", *words])
        self.send("DeleteGroups", {"groups_names": [self.group]}, options, expectation)

    def do_offsetdelete(self, words: list[str]) -> None:
        _, _, options, expectation = self.parse(["-", *words])
        partitions = [{"partition_index": int(options.get("p", 0))}]
        topics = [{"name": options.get("t", "orders"), "partitions": partitions}]
        self.send("OffsetDelete", {"group_id": self.group, "topics": topics}, options, expectation)

    # How lines are made of words

    def parse(self, words: list[str]) -> tuple[str, list[str], dict[str, str], list[str]]:
        cut = next((i for i, word in enumerate(words) if word in ("->", "=>")), len(words))
        before, after = words[:cut], words[cut:]
        options = dict(word.split("=", 1) for word in before[1:] if "=" in word)
        plain = [word for word in before[1:] if "=" not in word]
        if "park" in plain:
            after = ["park"]
        return before[0], plain, options, after

    def id_of(self, who: str) -> str:
        return self.ids.get(who, "" if who == "-" else who)

    def member_body(self, who: str, options: dict[str, str], generation: str) -> dict[str, Any]:
        told: Any = self.generations.get(who, 1)
        body: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.id_of(who),
            generation: int(options["gen"]) if "gen" in options else told,
        }
        if "i" in options:
            body["group_instance_id"] = options["i"]
        return body

    def send(self, request: str, body: dict[str, Any], options: dict[str, str], expectation: list[str]) -> str:
        step = options.get("as", f"step{len(self.steps)}")
        message: dict[str, Any] = {"at_ms": self.now, "as": step, "request": request, "body": body}
        if "v" in options:
            message["version"] = int(options["v"])
        self.steps.append(message)
        if expectation:
            at_ms, words = self.now, expectation[1:]
            if expectation[0] == "=>":
                at_ms += int(words.pop(0))
            parked = expectation[0] == "park"
            at = None if parked else at_ms
            self.expected.append(Expected(line=self.line, step=step, at_ms=at, words=words, parked=parked))
        return step

    # Playing and comparing

    def sequence(self) -> dict[str, Any]:
        last = max([self.now, *(e.at_ms for e in self.expected if e.at_ms is not None)])
        return {
            "protocol": "classic",
            "config": self.config,
            "topics": self.topics,
            "steps": self.steps,
            "until_ms": last,
            "member_ids": self.member_ids,
        }

    def check(self) -> Transcript:
        transcript = play(self.sequence())
        answers = {answer["as"]: answer for answer in transcript.to_json()["responses"]}
        ids = {name: self.resolve(ref, answers) for name, ref in self.ids.items()}
        at_once = answered_at_once(transcript)
        for expected in self.expected:
            if expected.parked:
                assert expected.step not in at_once, f"{expected.line}: answered at once, {answers[expected.step]}"
            else:
                compare(expected, answers[expected.step], ids)
        return transcript

    def resolve(self, reference: str, answers: dict[str, Any]) -> str:
        if not reference.startswith("$"):
            return reference
        step = reference[1:].split(".")[0]
        return (answers[step]["body"] or {}).get("member_id", "")


def answered_at_once(transcript: Transcript) -> set[str]:
    """The steps whose answer came before anything else was sent."""
    last, at_once = "", set()
    for fact in transcript.facts:
        if fact.step is not None and not fact.answered:
            last, sent_ms = fact.step.name, fact.at_ms
        elif fact.step is not None and fact.step.name == last and fact.at_ms == sent_ms:
            at_once.add(last)
    return at_once


def protocols(text: str) -> list[dict[str, str]]:
    """`range:m,roundrobin` - names, each with metadata (`m` where none is given; `@orders` is a true subscription)."""
    pairs = [entry.partition(":") for entry in text.split(",") if entry]
    return [{"name": name, "metadata": metadata_of(metadata or "m")} for name, _, metadata in pairs]


def metadata_of(text: str) -> str:
    if not text.startswith("@"):
        return b64(text)
    return base64.b64encode(encode_subscription(Subscription(topics=(text[1:],)))).decode()


def compare(expected: Expected, answer: dict[str, Any], ids: dict[str, str]) -> None:
    body, at_ms = answer["body"], answer["at_ms"]
    if expected.never:
        assert body is None, f"{expected.line}: answered after all, with {body}"
    else:
        assert body is not None, f"{expected.line}: no answer"
        assert at_ms == expected.at_ms, f"{expected.line}: answered at {at_ms} with {body}, not at {expected.at_ms}"
        for word in expected.words:
            assert matches(word, body, ids), f"{expected.line}: {word} does not hold in {body}"


def matches(word: str, body: dict[str, Any], ids: dict[str, str]) -> bool:
    key, equals, value = word.partition("=")
    if not equals:
        return matches_plain(word, body)
    if key in ("id", "leader"):
        value = ids.get(value, value)
    match key:
        case "gen":
            return body["generation_id"] == int(value)
        case "listed":
            return len(body["members"]) == int(value)
        case "entries":
            return [entry["error_code"] for entry in body["members"]] == names_of(value)
        case "lists":
            return [member["member_id"] for member in body["members"]] == [ids[name] for name in value.split(",")]
        case "metadata":
            return [base64.b64decode(m["metadata"]).decode() for m in body["members"]] == value.split(",")
        case "id":
            return body["member_id"] == ("" if value == "-" else value)
        case "leader":
            return body["leader"] == value
        case "name":
            return body["protocol_name"] == (None if value == "null" else "" if value == "-" else value)
        case "type":
            return body["protocol_type"] == (None if value == "null" else value)
        case "assignment":
            return base64.b64decode(body["assignment"]).decode() == ("" if value == "-" else value)
        case _:
            return described(key, value, body)


def matches_plain(word: str, body: dict[str, Any]) -> bool:
    if word == "leader":
        return body["leader"] == body["member_id"]
    if word == "follower":
        return body["leader"] != body["member_id"] and not body["members"]
    if word == "skip":
        return bool(body["skip_assignment"])
    if word == "nogroups":
        return body["groups"] == []
    if word.lstrip("-").isdigit():
        return codes(body)[0] == Error(int(word)).name
    return bool(body["groups"][0]["group_state"] == word)


def described(key: str, value: str, body: dict[str, Any]) -> bool:
    group = (body.get("groups") or [{}])[0]
    match key:
        case "members":
            return len(group["members"]) == int(value)
        case "grouptype":
            return bool(group["protocol_type"] == ("" if value == "-" else value))
        case "data":
            return bool(group["protocol_data"] == ("" if value == "-" else value))
        case "shows":
            shown = group["members"][0]
            pair = [base64.b64decode(shown[k]).decode() or "-" for k in ("member_metadata", "member_assignment")]
            return ":".join(pair) == value
        case "codes":
            return codes(body) == names_of(value)
        case "offset":
            topics = group.get("topics", body.get("topics"))
            return bool(topics[0]["partitions"][0]["committed_offset"] == int(value))
        case "topics":
            return len(group.get("topics", body.get("topics"))) == int(value)
        case _:
            raise ValueError(f"no such expectation: {key}")


def names_of(value: str) -> list[str]:
    return [Error(int(code)).name for code in value.split(",") if code]


def codes(value: Any) -> list[str]:
    """Every error of an answer: the top one where it has one, else those of its parts in order."""
    if isinstance(value, list):
        return [code for item in value for code in codes(item)]
    if not isinstance(value, dict):
        return []
    if "error_code" in value:
        own = [value["error_code"]]
        return own + (codes(value["topics"]) if own == ["NONE"] and value.get("topics") else [])
    return [code for item in value.values() for code in codes(item)]


def check(text: str) -> Transcript:
    return Script(text).check()

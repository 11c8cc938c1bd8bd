"""Random groups of real KIP-848 members in trouble, classic members among them: messages lost, repeated and late,
processes that die, coordinators too, groups that change their protocol in both directions.

A run is a list of small tuples, so that it can be shortened while it fails. After the trouble everybody who is still
alive behaves, and the group must come to rest: everybody at the target, every partition with exactly one reader.

    python -m tests.protocol_v2.member.random_runs --runs 20000 --seed 1
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from rebalance_lab.protocol_v1.common.errors import InvariantBroken
from rebalance_lab.protocol_v1.common.member_effects import MetadataChanged, Subscribe
from rebalance_lab.protocol_v2.member.member import Member
from tests.members.troubles import INSTANCES, Op, Troubles, random_ops
from tests.protocol_v2.member.watched import Client, Watched
from tests.running import run_all
from tests.shrinking import shortened

ACTIONS = {
    "start": 30, "lose_out": 5, "lose_in": 6, "repeat": 4, "delay": 6, "cut": 5, "crash": 4, "close": 4, "busy": 5,
    "poll": 10, "slow": 4, "fail_over": 2, "grow": 2, "shrink": 1, "blind": 2, "subscribe": 3, "callback_error": 2,
    "commit": 3, "unsubscribe": 2, "wait": 6,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "session_timeout_ms": 2_000,
    "heartbeat_interval_ms": 600,
    "max_poll_interval_ms": 4_000,
    "request_timeout_ms": 1_500,
    "default_api_timeout_ms": 2_000,
    "auto_commit_interval_ms": 1_100,
}
NEWS_MS = 1_900
"""By then every member's heartbeat has told what changed, and has heard what follows from it."""
SESSION_MS = 3_000
"""A second longer than the broker's session."""
PATIENCE_MS = 90_000


class Kind(NamedTuple):
    what: str
    classic: str | None = None
    """The assignor of classic members, where there are any."""
    policy: str = "bidirectional"
    auto_commit: bool = True
    java: bool = False
    """Members report what they own as Java does, and two of them may read one partition after a lost answer."""
    repeats: bool = False
    """Requests may arrive twice, which TCP rules out; then it may happen to anybody."""
    interval_ms: int = 0


KINDS = (
    Kind("consumers"),
    Kind("consumers without auto-commit", auto_commit=False),
    Kind("consumers, targets a second apart", interval_ms=1_000),
    Kind("consumers with Java's quirks", java=True),
    Kind("consumers whose requests arrive twice", repeats=True),
    Kind("eager classic members beside them", classic="range"),
    Kind("cooperative classic members beside them", classic="cooperative-sticky"),
    Kind("classic members, upgrade only", classic="range", policy="upgrade"),
    Kind("classic members, no conversion", classic="range", policy="disabled"),
)


class Run(Troubles):
    def __init__(self, ops: list[Op], kind: int) -> None:
        self.ops = ops
        self.kind = KINDS[kind % len(KINDS)]
        self.group = Watched(
            {"a": 3, "b": 2},
            classic_assignors=[self.kind.classic or "range"],
            properties={
                "group.consumer.migration.policy": self.kind.policy,
                "group.consumer.assignment.interval.ms": self.kind.interval_ms,
            },
            exclusive=not self.kind.java and not self.kind.repeats,
            closely=len(ops) % 4 == 0,
            quirks_of_java=self.kind.java,
            enable_auto_commit=self.kind.auto_commit,
            **SETTINGS,
        )

    def start(self, name: str, number: int, knob: int) -> None:
        client = self.group.clients.get(name)
        if client is not None and client.alive:
            return
        self.group.trouble.pop(name, None)
        if self.kind.classic is not None and knob % 2:
            self.group.join(name, protocol="classic")
            return
        # A static member that takes a classic one's place asks no one (C34), and cannot know what that one still reads.
        instance = INSTANCES[number] if self.kind.classic is None else None
        topics = (("a", "b"), ("a", "b"), ("a",), ())[knob // 2 % 4]
        # Java's static members inherit an expression from who had their instance id before, and do not read all of it.
        pattern, regex = (None, "[ab]") if knob // 8 % 2 and not self.kind.java else ("[ab]", None)
        if topics:
            self.group.join(name, topics=topics, group_instance_id=instance)
        else:
            self.group.join(name, pattern=pattern, regex=regex, group_instance_id=instance)

    # Trouble

    def do_repeat(self, client: Client, knob: int) -> None:
        trouble = self.group.of(client)
        trouble.repeat_in = knob // 3 % 3
        trouble.repeat_out = knob % 3 if self.kind.repeats else 0

    def do_grow(self, client: Client, knob: int) -> None:
        name = "ab"[knob % len(self.group.topics)]
        self.group.grow({name: self.group.topics[name].partitions + 1})

    def do_shrink(self, client: Client, knob: int) -> None:
        """Topic b is deleted, and made again a little later."""
        if self.kind.classic is None and "b" in self.group.topics and self.group.coordinator is not None:
            size = self.group.topics.pop("b").partitions
            self.group.grow({})
            self.group.after(knob % 900, lambda: self.group.grow({"b": size}) and None)

    def do_blind(self, client: Client, knob: int) -> None:
        """Its metadata does not show topic b until it asks again."""
        seen = {name: topic for name, topic in self.group.topics.items() if name != "b"}
        self.group.tell(client, MetadataChanged(seen))
        self.group.after(knob % 2_000, lambda: self.group.tell(client, MetadataChanged(dict(self.group.topics))))

    # After the trouble

    def settle(self) -> None:
        group = self.group
        group.trouble.clear()
        for client in group.live:
            client.callback_ms = 0
        group.until(group.now_ms + 6_000, lambda: not any(c.member.memory.then for c in group.live))
        for client in group.live:
            if not client.member.memory.subscribed.active and self.free(client):
                group.tell(client, Subscribe(frozenset("ab")))
            group.poll_again(client)
        self.rest()
        # Classic heartbeats do not look at topics: a consumer group of classic members alone notices nothing (1.14).
        if group.group is not None and not any(isinstance(client.member, Member) for client in group.live):
            return
        group.grow({name: topic.partitions + 1 for name, topic in group.topics.items()})
        self.rest()
        group.check_settled()

    def rest(self) -> None:
        try:
            self.group.run(NEWS_MS)
            # A static member that is away keeps its partitions until its session is over.
            self.group.until(self.group.now_ms + SESSION_MS, lambda: not self.members_away())
            self.group.settle(PATIENCE_MS)
        except TimeoutError as error:
            states = [(c.name, c.member.state, c.member.owned, c.raised) for c in self.group.live]
            raise InvariantBroken(f"L1: {error}\n{self.group.group and self.group.group.state}\n{states}") from None

    def members_away(self) -> bool:
        group = self.group.group
        return group is not None and any(one.current.stepped_out for one in group.members.values())


def run_once(ops: list[Op], kind: int) -> tuple[Run, Exception | None]:
    run = Run(ops, kind)
    try:
        run.execute()
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a finding
        return run, error
    return run, None


def seeded(seed: int) -> tuple[list[Op], int]:
    random = Random(seed)
    return random_ops(random, random.randrange(5, 40), ACTIONS), random.randrange(len(KINDS))


def report(seed: int) -> str | None:
    """None if all is well, else the shortest failing run that was found, with everybody's story."""
    ops, kind = seeded(seed)
    if run_once(ops, kind)[1] is None:
        return None
    ops = shortened(ops, lambda fewer: run_once(fewer, kind)[1] is not None)
    run, error = run_once(ops, kind)
    stories = [f"{name}: {'; '.join(client.story)}" for name, client in run.group.clients.items()]
    return "\n".join(
        [f"seed {seed}, {KINDS[kind].what}: {error!r}", f"run_once({ops}, {kind})", *stories, str(run.group.states)]
    )


if __name__ == "__main__":
    run_all(report)

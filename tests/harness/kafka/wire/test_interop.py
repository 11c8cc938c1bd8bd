"""Our members beside librdkafka's and Java's in real groups; in test-deep each of them dies and comes back."""

from __future__ import annotations

import pytest

from tests.conformance import java_oracle
from tests.harness.kafka.wire.conftest import cluster_of
from tests.harness.kafka.wire.interop import CONFIG, PARTITIONS, SESSION_MS, mixed_groups, new_topic
from tests.harness.kafka.wire.members import Process, wait_until_complete

pytestmark = pytest.mark.xdist_group("wire-interop")
JAVA, LIBRDKAFKA, OURS = 2, 1, 0
"""Their places in interop.KINDS."""


@pytest.fixture(scope="module")
def three_nodes():
    yield from cluster_of(3, CONFIG)


def test_mixed_groups_are_complete_and_survive_a_death_of_each_kind(three_nodes, record_property):
    if reason := java_oracle.why_not():
        pytest.skip(reason)
    story: list[str] = []
    with mixed_groups(three_nodes, story.append) as mixed:
        for victim in (JAVA, LIBRDKAFKA, OURS):
            mixed.kill(victim, story.append)
    record_property("table: librdkafka, Java and ours in one group, on three nodes", "\n".join(story))
    assert len(story) == 4


def test_our_leader_with_a_custom_assignor_assigns_librdkafka_s_members(three_nodes):
    topic = new_topic(three_nodes)
    group = f"lopsided-{topic}"

    def run(kind: str, strategy: str) -> Process:
        return Process.start(kind, three_nodes.bootstrap, topic, SESSION_MS, {group: strategy})

    processes = [run("ours", "classic/tests.harness.kafka.wire.lopsided:Lopsided")]
    try:
        wait_until_complete(processes, [group], PARTITIONS)  # who comes first leads
        processes += [run("librdkafka", "classic/range"), run("librdkafka", "classic/range")]
        wait_until_complete(processes, [group], PARTITIONS)
        owned = sorted((each.owned[group] for each in processes), key=len)
        assert [len(each) for each in owned] == [1, 1, PARTITIONS - 2]  # range would give 4 to each
        assert processes[0].owned[group] == (0,)  # "ours-..." is first by member id
    finally:
        for each in processes:
            each.stop()

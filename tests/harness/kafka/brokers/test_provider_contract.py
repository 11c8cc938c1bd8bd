"""What every provider promises, checked with real clients on each of them.

Given      one cluster per row: jvm and testcontainers with 1 and 3 nodes, mock
Checks     produce and consume in both protocols, faults on single nodes, fail-over of a coordinator, nothing left
Skips      what a cluster says it lacks, and a row that the machine cannot run; the reason is in the report

A test leaves its cluster whole, since the next test uses it; the last one closes it.
"""

from __future__ import annotations

import socket

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from rebalance_lab.harness.kafka import brokers
from rebalance_lab.harness.kafka.brokers import probe

from . import leftovers
from .clients import PARTITIONS, Member, fresh, new_topic, poll_until, produce

RACKS = ("east", "west", "north")
# A group is what runs in one process when pytest is spread over several: one cluster per row, one engine for all.
ROWS = [
    pytest.param(row, marks=pytest.mark.xdist_group(row.partition("-")[0]))
    for row in ("jvm-1", "jvm-3", "testcontainers-1", "testcontainers-3", "mock-3")
]


@pytest.fixture(scope="module", params=ROWS)
def cluster(request):
    provider, _, count = request.param.partition("-")
    nodes = int(count)
    config = None if provider == "mock" else brokers.BrokerConfig(group_max_size=17, racks=RACKS[:nodes])
    with pytest.MonkeyPatch.context() as patch:
        if provider == "testcontainers":
            patch.setenv("REBALANCE_LAB_KAFKA_IMAGE", request.getfixturevalue("engine_image"))
        if provider == "jvm":
            request.getfixturevalue("kafka_processes")
        with brokers.start(provider, nodes=nodes, config=config) as started:
            yield started


def needs(cluster, feature):
    if reason := cluster.lacks.get(feature):
        pytest.skip(f"{cluster.provider} lacks {feature}: {reason}")


def address_of(cluster, node):
    return dict(zip(cluster.node_ids, cluster.bootstrap.split(","), strict=True))[node]


def test_clients_are_told_of_every_node_at_this_machine(cluster):
    told = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=10).brokers
    assert {node: f"{broker.host}:{broker.port}" for node, broker in told.items()} == {
        node: address_of(cluster, node) for node in cluster.node_ids
    }
    assert all(address.startswith("127.0.0.1:") for address in cluster.bootstrap.split(","))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_members_of_a_group_share_the_partitions_and_read_each_record_once(cluster, protocol):
    topic, group = new_topic(cluster), fresh("group")
    produce(cluster, topic, ["before"] * PARTITIONS)
    members = [Member(cluster, group, topic, protocol) for _ in range(2)]
    everything = set(range(PARTITIONS))

    def settled():
        held = [member.partitions for member in members]
        return all(held) and not held[0] & held[1] and held[0] | held[1] == everything

    poll_until(members, settled, "each member holds some of the partitions, and none is held twice")
    expected = {f"order {number}" for number in range(40)}
    produce(cluster, topic, sorted(expected))
    poll_until(members, lambda: expected <= set(members[0].values + members[1].values), "every record is read")
    read = members[0].values + members[1].values
    assert {value: read[value] for value in expected} == dict.fromkeys(expected, 1)
    for member in members:
        member.close()


def test_the_coordinator_of_a_group_is_one_of_the_nodes_and_stays(cluster):
    group = fresh("group")
    first = cluster.coordinator_of(group)
    assert first in cluster.node_ids
    assert cluster.coordinator_of(group) == first


def test_the_settings_asked_for_are_those_of_the_broker(cluster):
    needs(cluster, "config")
    resource = ConfigResource(ConfigResource.Type.BROKER, str(cluster.node_ids[0]))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    answer = admin.describe_configs([resource])[resource].result(timeout=10)
    assert answer["group.max.size"].value == "17"
    assert answer["group.initial.rebalance.delay.ms"].value == "0"
    assert answer["offsets.topic.replication.factor"].value == str(len(cluster.node_ids))
    racks = probe.metadata(address_of(cluster, 1)).racks
    assert racks == dict(zip(cluster.node_ids, RACKS, strict=False))


def test_records_and_commits_survive_a_kill_and_a_restart(cluster):
    needs(cluster, "faults")
    needs(cluster, "durable")
    topic, group = new_topic(cluster), fresh("group")
    produce(cluster, topic, ["old"] * 8)
    reader = Member(cluster, group, topic, "classic")
    poll_until([reader], lambda: reader.values["old"] == 8, "the records before the kill are read")
    reader.commit()
    reader.close()
    node = cluster.node_ids[0]

    cluster.kill(node)
    with pytest.raises(ConnectionError):
        socket.create_connection(tuple(address_of(cluster, node).split(":")), timeout=2).close()
    cluster.restart(node)

    produce(cluster, topic, ["new"] * 8)
    again = Member(cluster, group, topic, "classic")
    poll_until([again], lambda: again.values["new"] == 8, "the records after the restart are read")
    assert again.values["old"] == 0  # its offsets were committed before the kill
    again.close()
    everything = Member(cluster, fresh("group"), topic, "consumer")
    poll_until([everything], lambda: everything.values == {"old": 8, "new": 8}, "all records are still there")
    everything.close()


def test_a_paused_node_is_silent_until_it_is_resumed(cluster):
    needs(cluster, "faults")
    node = cluster.node_ids[-1]
    cluster.pause(node)
    with pytest.raises(TimeoutError):
        probe.metadata(address_of(cluster, node), timeout_s=1.0)
    cluster.resume(node)
    cluster.wait_ready()
    assert set(probe.metadata(address_of(cluster, node)).nodes) == set(cluster.node_ids)


def test_a_stopped_node_leaves_in_good_order_and_comes_back(cluster):
    needs(cluster, "faults")
    node, *others = cluster.node_ids
    cluster.stop(node)
    with pytest.raises(OSError, match=r"refused|reset|closed"):
        probe.metadata(address_of(cluster, node), timeout_s=2.0)
    for other in others:  # at once: an orderly leave needs no session to run out
        assert node not in probe.metadata(address_of(cluster, other)).nodes
    cluster.restart(node)
    assert set(probe.metadata(address_of(cluster, node)).nodes) == set(cluster.node_ids)


def test_groups_of_both_protocols_go_on_when_their_coordinator_is_killed(cluster):
    needs(cluster, "faults")
    needs(cluster, "fail-over")
    topic = new_topic(cluster)
    node = cluster.coordinator_of(classic_group := fresh("group"))
    consumer_group = next(name for name in iter(lambda: fresh("group"), "") if cluster.coordinator_of(name) == node)
    members = [Member(cluster, classic_group, topic, "classic"), Member(cluster, consumer_group, topic, "consumer")]
    produce(cluster, topic, ["before"] * 8)
    poll_until(members, lambda: all(each.values["before"] == 8 for each in members), "both groups read")

    cluster.kill(node)

    assert cluster.coordinator_of(classic_group) != node
    assert cluster.coordinator_of(consumer_group) != node
    produce(cluster, topic, ["after"] * 8)
    poll_until(members, lambda: all(each.values["after"] == 8 for each in members), "both groups read on")
    for member in members:
        member.commit()
        member.close()
    cluster.restart(node)


def test_a_node_that_is_not_there_is_refused_in_one_line(cluster):
    with pytest.raises(brokers.BrokerError, match=r"cannot kill node 9: (the cluster has 1|.*lacks faults)") as refused:
        cluster.kill(9)
    assert "\n" not in str(refused.value)


def test_a_fault_that_makes_no_sense_now_is_refused(cluster):
    needs(cluster, "faults")
    with pytest.raises(brokers.BrokerError, match="cannot resume node 1: it is running"):
        cluster.resume(1)
    cluster.pause(1)
    try:
        for verb in ("pause", "stop"):
            with pytest.raises(brokers.BrokerError, match=f"cannot {verb} node 1: it is paused"):
                getattr(cluster, verb)(1)
    finally:
        cluster.resume(1)
    cluster.wait_ready()


def test_closing_leaves_nothing_and_can_be_repeated(cluster):
    addresses = cluster.bootstrap.split(",")
    assert found(cluster) or cluster.provider == "mock"  # what is not seen before cannot be missed after
    cluster.close()
    cluster.close()
    assert found(cluster) == []
    for address in addresses:
        with pytest.raises(ConnectionError):
            socket.create_connection(tuple(address.split(":")), timeout=2).close()


def found(cluster):
    """Of this cluster: this process may hold others for other tests."""
    if cluster.provider == "testcontainers":
        return leftovers.containers_and_networks(cluster.run_id)
    return leftovers.of_run(cluster.run_id) if cluster.provider == "jvm" else []

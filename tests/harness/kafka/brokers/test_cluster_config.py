"""The typed settings: what they become, and what they refuse before anything is started."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.kafka.brokers import BrokerConfig, BrokerError
from rebalance_lab.harness.kafka.brokers.cluster_config import as_environment, as_properties_file


def test_defaults_suit_tests():
    settings = BrokerConfig().properties(node=1, nodes=1)
    assert settings["group.initial.rebalance.delay.ms"] == "0"
    assert settings["group.consumer.assignors"] == "uniform,range"
    assert settings["auto.create.topics.enable"] == "false"
    assert int(settings["group.min.session.timeout.ms"]) <= 1000
    assert "group.max.size" not in settings  # Kafka's own default holds


@pytest.mark.parametrize(("nodes", "replicas", "in_sync"), [(1, "1", "1"), (3, "3", "2")])
def test_internal_topics_are_replicated_as_far_as_there_are_nodes(nodes, replicas, in_sync):
    settings = BrokerConfig().properties(node=1, nodes=nodes)
    assert settings["offsets.topic.replication.factor"] == replicas
    assert settings["transaction.state.log.replication.factor"] == replicas
    assert settings["transaction.state.log.min.isr"] == in_sync


def test_each_node_has_its_own_rack():
    config = BrokerConfig(racks=("a", "b", "c"))
    assert [config.properties(node=node, nodes=3)["broker.rack"] for node in (1, 2, 3)] == ["a", "b", "c"]


def test_extra_settings_win():
    config = BrokerConfig(group_max_size=5, extra={"group.max.size": "6", "log.retention.ms": "-1"})
    settings = config.properties(node=1, nodes=1)
    assert settings["group.max.size"] == "6"
    assert settings["log.retention.ms"] == "-1"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"group_initial_rebalance_delay_ms": -1}, "group.initial.rebalance.delay.ms is -1: it must be at least 0"),
        ({"group_max_size": 0}, "group.max.size is 0: it must be at least 1"),
        ({"group_max_size": "9"}, "group.max.size is '9': it must be a whole number"),
        ({"group_max_size": True}, "group.max.size is True: it must be a whole number"),  # bool is an int to Python
        (
            {"group_min_session_timeout_ms": 9, "group_max_session_timeout_ms": 8},
            "group.min.session.timeout.ms is 9: it must be at most 8 (group.max.session.timeout.ms)",
        ),
        (
            {"group_consumer_session_timeout_ms": 99},
            "group.consumer.session.timeout.ms is 99: it must be at least 100 (group.consumer.min.session.timeout.ms)",
        ),
        (
            {"group_consumer_heartbeat_interval_ms": 10_000},  # a member would be thrown out between two heartbeats
            "group.consumer.heartbeat.interval.ms is 10000: it must be less than group.consumer.session.timeout.ms",
        ),
        (
            {"group_consumer_migration_policy": "sideways"},
            "group.consumer.migration.policy is 'sideways': it must be one of disabled, upgrade, downgrade",
        ),
        ({"group_consumer_assignors": ()}, "group.consumer.assignors must be a tuple of at least one assignor"),
        ({"group_consumer_assignors": "uniform"}, "group.consumer.assignors must be a tuple of at least one assignor"),
        ({"extra": {"a\nb": "1"}}, r"extra setting 'a\nb' is '1'"),
        ({"extra": {"a.b": 1}}, "extra setting 'a.b' is 1"),
    ],
)
def test_a_value_no_broker_would_take_is_refused_by_its_name(values, message):
    with pytest.raises(BrokerError) as refused:
        BrokerConfig(**values)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("config", "nodes", "message"),
    [
        (BrokerConfig(racks=("a", "b")), 3, "broker.rack: 2 racks for 3 nodes"),
        (
            BrokerConfig(offsets_topic_replication_factor=3),
            1,
            "offsets.topic.replication.factor is 3: there are 1 nodes",
        ),
    ],
)
def test_what_does_not_fit_the_number_of_nodes_is_refused(config, nodes, message):
    with pytest.raises(BrokerError, match=message):
        config.properties(node=1, nodes=nodes)


def test_written_as_a_properties_file():
    assert as_properties_file({"a.b": "1", "path": "C:\\kafka"}) == "a.b=1\npath=C:\\\\kafka\n"


def test_written_as_the_official_images_variables():
    """Two rules of that image turn up only in rare names: `__` stands for an underscore, `___` for a dash."""
    written = as_environment({"group.max.size": "5", "my_own.setting": "1", "with-dash": "2"})
    assert written == {"KAFKA_GROUP_MAX_SIZE": "5", "KAFKA_MY__OWN_SETTING": "1", "KAFKA_WITH___DASH": "2"}

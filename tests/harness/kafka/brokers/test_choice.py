"""`auto` takes the first provider that can serve and says why not the others; `external` joins what runs already."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.kafka import brokers
from rebalance_lab.harness.kafka.brokers import BrokerConfig, BrokerError
from rebalance_lab.harness.kafka.brokers.providers import auto, containers, jvm, mock


@pytest.fixture
def machine(monkeypatch):
    """A machine that lacks what a test says it lacks."""
    monkeypatch.delenv("REBALANCE_LAB_BOOTSTRAP", raising=False)

    def lacks(**reasons: str | None) -> None:
        for module in (containers, jvm, mock):
            reason = reasons.get(module.__name__.rpartition(".")[2])
            monkeypatch.setattr(module, "available", lambda *_, reason=reason: reason)

    return lacks


@pytest.mark.parametrize(
    ("lacking", "taken"),
    [
        ({}, "testcontainers"),
        ({"containers": "no engine"}, "jvm"),
        ({"containers": "no engine", "jvm": "no java"}, "mock"),
    ],
)
def test_the_first_that_can_serve_is_taken(machine, lacking, taken):
    machine(**lacking)
    provider, passed_over = auto.choose()
    assert provider == taken
    assert set(passed_over.values()) >= set(lacking.values())


def test_the_choice_is_told_with_its_reasons(machine):
    machine(containers="no engine", jvm="no java")
    with brokers.start() as cluster:
        assert cluster.provider == "mock"
        assert cluster.choice == (
            "took mock; not external: no address is configured (REBALANCE_LAB_BOOTSTRAP is not set);"
            " not testcontainers: no engine; not jvm: no java"
        )


def test_mock_is_not_taken_for_settings_it_would_ignore(machine):
    machine(containers="no engine", jvm="no java")
    with pytest.raises(BrokerError, match=r"no provider can serve a cluster: .*jvm: no java; mock: it takes no broker"):
        brokers.start(config=BrokerConfig())


def test_a_configured_address_goes_before_everything_else(machine, monkeypatch):
    machine()
    with brokers.start("mock", nodes=3) as running:
        monkeypatch.setenv("REBALANCE_LAB_BOOTSTRAP", running.bootstrap.split(",")[0])
        with brokers.start() as cluster:
            assert cluster.provider == "external"
            assert cluster.choice == "took external"
            assert cluster.node_ids == running.node_ids  # the others were learnt from the one that was named
            assert set(cluster.bootstrap.split(",")) == set(running.bootstrap.split(","))
            assert cluster.coordinator_of("orders") == running.coordinator_of("orders")
            with pytest.raises(BrokerError, match="cannot kill node 1: provider external lacks faults"):
                cluster.kill(1)
        assert running.coordinator_of("orders")  # closing the guest did not close the host

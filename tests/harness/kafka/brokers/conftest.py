"""A cluster for each row of the contract, and a Docker engine with an image where the machine can have one."""

from __future__ import annotations

import pytest

from rebalance_lab.harness.kafka.brokers import BrokerError, versions
from rebalance_lab.harness.kafka.brokers.processes import artifacts, java, local_engine
from rebalance_lab.harness.kafka.brokers.providers import containers
from tools import local_image


@pytest.fixture(scope="session")
def engine_image():
    """The name of a Kafka image on an engine that answers: the machine's own, or one that lives as long as the tests.

    Nothing is pulled. An engine that lacks the image gets one built from this machine's Java and Kafka's artifacts.
    """
    try:
        with local_engine.local_engine():
            yield _image_that_is_there() or local_image.build().rpartition(":")[0]
    except BrokerError as error:
        pytest.skip(f"no container can run here: {error}; this turns off the tests of provider testcontainers")


def _image_that_is_there() -> str | None:
    from docker.errors import ImageNotFound

    client = containers.connect()
    try:
        client.images.get(containers.image_tag())
    except ImageNotFound:
        return None
    finally:
        client.close()
    return versions.kafka_image()


@pytest.fixture(scope="session")
def kafka_processes():
    """Kafka's artifacts and a Java to run them with."""
    try:
        java.find_java()
        artifacts.jar_folder()
    except BrokerError as error:
        pytest.skip(f"no broker process can run here: {error}; this turns off the tests of provider jvm")

"""Name the Kafka version and image that the lab runs: no other place writes them.

An argument wins over the environment, the environment over the pin. `jvm` asks for the version alone. `testcontainers`
joins image and version into a tag, so that a local image (tools/local_image.py) only needs another name.
"""

import os
import re

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError

KAFKA_VERSION = "4.3.1"
KAFKA_IMAGE = "apache/kafka"
OLDEST_MAJOR = 4
"""Before 4.0 the consumer protocol is off by default and brokers differ in ways that our tests do not cover."""

VERSION_VARIABLE = "REBALANCE_LAB_KAFKA_VERSION"
IMAGE_VARIABLE = "REBALANCE_LAB_KAFKA_IMAGE"


def kafka_version(asked: str | None = None) -> str:
    version = asked or os.environ.get(VERSION_VARIABLE) or KAFKA_VERSION
    # The pattern also keeps a version from being a path: it names a cache folder and an image tag.
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise BrokerError(f"unknown Kafka version {version!r}: expected three numbers such as {KAFKA_VERSION}")
    if int(version.split(".")[0]) < OLDEST_MAJOR:
        raise BrokerError(f"Kafka version {version} is too old: the lab runs brokers from {OLDEST_MAJOR}.0.0 on")
    return version


def kafka_image(asked: str | None = None) -> str:
    """Return the image's name without its tag; the tag is the Kafka version."""
    return asked or os.environ.get(IMAGE_VARIABLE) or KAFKA_IMAGE

"""Test assignors of other clients and languages as they are: each adapter looks like a custom assignor from outside.

kafka-python, aiokafka   python_clients.py
java                     java_classes.py, through JPype
command                  command.py, JSON on standard input and output
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def _kafka_python(text: str) -> Any:
    from rebalance_lab.assignors.testing.subject.adapters.python_clients import KafkaPythonAssignor

    return KafkaPythonAssignor(text)


def _aiokafka(text: str) -> Any:
    from rebalance_lab.assignors.testing.subject.adapters.python_clients import AiokafkaAssignor

    return AiokafkaAssignor(text)


def _java(text: str) -> Any:
    from rebalance_lab.assignors.testing.subject.adapters.java_classes import JavaAssignor

    return JavaAssignor(text)


def _command(text: str) -> Any:
    from rebalance_lab.assignors.testing.subject.adapters.command import CommandAssignor

    return CommandAssignor(text)


KINDS: Mapping[str, Callable[[str], Any]] = {
    "kafka-python": _kafka_python,
    "aiokafka": _aiokafka,
    "java": _java,
    "command": _command,
}

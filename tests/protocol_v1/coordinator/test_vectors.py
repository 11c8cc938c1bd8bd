"""Every vector that was recorded on a Kafka 4.3.1 broker, through the sequence player; vectors.txt has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol_v1.coordinator.script import check

SECTIONS = Path(__file__).with_name("vectors.txt").read_text().split("\n== ")[1:]
VECTORS = {section.split("\n", 1)[0]: section.split("\n", 1)[1] for section in SECTIONS}


@pytest.mark.parametrize("vector", VECTORS)
def test_the_coordinator_answers_as_the_broker_did(vector):
    check(VECTORS[vector])

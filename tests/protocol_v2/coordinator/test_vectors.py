"""Every vector that was recorded on a Kafka 4.3.1 broker, through the sequence player; vectors.txt has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol_v2.coordinator.script import Script, read_vectors

VECTORS = read_vectors(Path(__file__).with_name("vectors.txt").read_text())


@pytest.mark.parametrize("title", VECTORS)
def test_the_coordinator_answers_as_the_broker_did(title):
    Script(title, VECTORS[title]).run()

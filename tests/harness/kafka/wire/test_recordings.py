"""What Kafka 4.3.1 answered where our coordinator once answered otherwise, as `rebalance-lab record` wrote it down."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebalance_lab.harness.conversation.sequence_player import play
from rebalance_lab.harness.kafka.wire.recordings.answer_comparison import unequal
from rebalance_lab.harness.kafka.wire.recordings.explained import explanation_of
from rebalance_lab.harness.kafka.wire.recordings.replay import answers_of

FILES = sorted((Path(__file__).parent / "recordings").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_our_coordinator_answers_as_the_broker_did(file):
    recorded = json.loads(file.read_text())
    ours = {name: body for name, (_, body) in answers_of(play(recorded)).items()}
    broker = {each["as"]: each["body"] for each in recorded["answered"]}
    assert ours.keys() == broker.keys()
    found = [each for name in broker for each in unequal(broker[name], ours[name], name)]
    assert [each for each in found if explanation_of(*each) is None] == []

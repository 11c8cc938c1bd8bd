"""Scenarios written back, made from groups, kept as examples, and described as a schema."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.model import Group, Member, Topic
from rebalance_lab.harness.evaluate.recommend.group_life import life_of_group
from rebalance_lab.harness.scenario import model
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.forms.event_forms import KINDS, alias
from rebalance_lab.harness.scenario.forms.json_schema import PUBLISHED, schema_text
from rebalance_lab.harness.scenario.from_group import scenario_of_group
from rebalance_lab.harness.scenario.model import Rate, Scenario
from rebalance_lab.harness.scenario.reader import load_scenario, parse_scenario
from rebalance_lab.harness.scenario.settings import BROKER, CLIENT, ONE_MEMBER, WHOLE_GROUP
from rebalance_lab.harness.scenario.writer import scenario_json
from rebalance_lab.protocol_v1.coordinator import config as v1
from rebalance_lab.protocol_v1.member.config import MemberConfig
from rebalance_lab.protocol_v2.coordinator import config as v2
from tests.harness.random_scenarios import random_scenario
from tests.paths import SCENARIOS

EXAMPLES = sorted((SCENARIOS).glob("*.yaml"))
SCENARIOS = st.integers(0, 2**32).map(lambda seed: random_scenario(Random(seed)))


@given(SCENARIOS)
def test_a_scenario_written_reads_as_the_same(scenario: Scenario) -> None:
    assert parse_scenario(json.loads(json.dumps(scenario_json(scenario)))) == scenario


def test_a_burst_that_ends_later_than_can_be_written_reads_as_the_same() -> None:
    """What `compare --json` saved of it could not be read any more."""
    bursts = [{"at": "1s", "for": "3660d", "rate": "5/s"}]
    scenario = parse_scenario(
        {
            "duration": "1m",
            "topics": {"orders": {"partitions": 1, "rate": {"base": "1/s", "bursts": bursts}}},
            "members": {"c": {"topics": "orders"}},
        }
    )
    assert scenario.topics[0].rate.steps == ((0, 1.0), (1_000, 5.0))
    assert parse_scenario(scenario_json(scenario)) == scenario


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_good_scenario_of_a_size_to_play_with(path: Path) -> None:
    scenario = load_scenario(path)
    assert "Look for:" in " ".join(scenario.description.split())
    assert scenario.strategy is not None
    assert len(scenario.members) <= 30
    assert sum(topic.partitions for topic in scenario.topics) <= 200
    capacity = sum(1_000 / member.record_ms for member in scenario.members)
    assert sum(topic.rate.steps[0][1] for topic in scenario.topics) < 0.8 * capacity  # it can keep up at first
    assert path.read_text().startswith("# yaml-language-server: $schema=schema.json\n")
    assert parse_scenario(scenario_json(scenario)) == scenario


def test_there_is_an_example_of_every_situation_and_no_two_are_called_the_same() -> None:
    assert len(EXAMPLES) >= 13
    assert len({load_scenario(path).name for path in EXAMPLES}) == len(EXAMPLES)


def test_the_readmes_scenario_has_every_kind_of_event_and_every_key() -> None:
    text = (EXAMPLES[0].parent / "README.md").read_text()
    data = decode_document(text.split("```yaml")[1].split("```")[0])
    scenario = parse_scenario(data)
    assert {type(event) for event in scenario.timeline} == set(get_args(model.Event))
    assert set(data) == {"name", *scenario_json(scenario)}
    listed = {name for name in (path.stem for path in EXAMPLES) if f"`{name}`" in text}
    assert listed == {path.stem for path in EXAMPLES}


def test_every_event_class_can_be_written_and_nothing_else() -> None:
    assert [alias(kind) for kind in KINDS] == [kind.KIND for kind in get_args(model.Event)]


def test_the_published_schema_is_the_readers() -> None:
    assert PUBLISHED.read_text() == schema_text(), (
        "stale: run python -m rebalance_lab.harness.scenario.forms.json_schema"
    )


def test_the_schema_names_every_key_and_allows_no_others() -> None:
    schema = json.loads(PUBLISHED.read_text())
    assert schema["required"] == ["duration", "topics", "members"]
    assert set(schema["properties"]["broker"]["anyOf"][0]["properties"]) == {*v1.PROPERTIES, *v2.PROPERTIES}
    assert {"crash", "rolling restart", "fail over"} <= set(schema["$defs"]["EventForm"]["properties"])
    for objects in every_object(schema):
        assert objects.get("additionalProperties") is not None


def every_object(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return [one for item in schema for one in every_object(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [one for item in schema.values() for one in every_object(item)]


def test_every_setting_of_a_member_and_of_a_coordinator_is_known() -> None:
    of_member = {name.replace("_", ".") for name in MemberConfig.__dataclass_fields__}
    assert of_member <= {*CLIENT, *WHOLE_GROUP, *ONE_MEMBER}
    assert set(BROKER) == {*v1.PROPERTIES, *v2.PROPERTIES}


def test_a_group_becomes_a_scenario_with_its_loads_as_rates() -> None:
    group = Group(
        topics={"orders": Topic(2, load=(30.0, 10.0), racks=(("a",), ("b",))), "quiet": Topic(3), "empty": Topic(0)},
        members={
            "m1": Member(("orders", "gone"), rack="a", capacity=2.0),
            "m2": Member(("orders", "quiet"), instance_id="i", owned={"orders": [0]}),
            "idle": Member(("gone",)),
        },
    )
    scenario = scenario_of_group(group, rate_per_partition=5, record_ms=4, strategy="classic/sticky")
    assert [(topic.name, topic.rate, topic.weights) for topic in scenario.topics] == [
        ("orders", Rate(((0, 40.0),)), (0.75, 0.25)),
        ("quiet", Rate(((0, 15),)), None),
    ]
    assert scenario.members == (
        model.MemberSpec(name="m1", topics=("orders",), record_ms=2.0, rack="a"),
        model.MemberSpec(name="m2", topics=("orders", "quiet"), record_ms=4.0, instance_id="i"),
    )
    assert parse_scenario(scenario_json(scenario)) == scenario


def test_a_groups_timeline_is_checked_as_a_files_is() -> None:
    group = Group({"t": Topic(1)}, {"m": Member(("t",))})
    with pytest.raises(ContractError, match=r"timeline\[0\]\.crash\.members: there is no member x"):
        scenario_of_group(group, timeline=[model.Crash(at_ms=1, members=("x",))])


@pytest.mark.parametrize(
    ("load", "capacity"),
    [(10.0, 5e-324), (10.0, 1e308), (10.0, 1e-5), (5e-324, 1.0), (1e-9, 1.0), (1e-9, 1e9), (2.5e8, 1e-300)],
)
def test_a_groups_life_is_one_that_a_file_may_hold(load: float, capacity: float) -> None:
    """What `compare --json` saved of some could not be read again, and others had records that take for ever."""
    topics = {"t": Topic(4, load=(load,) * 4), "u": Topic(1)}
    group = Group(topics, {"a": Member(("t", "u"), capacity=capacity), "b": Member(("t",), capacity=capacity)})
    life = life_of_group(group)
    assert parse_scenario(scenario_json(life)) == life


@pytest.mark.parametrize("load", [1e9, 1e308])
def test_loads_beyond_all_rates_are_refused_where_they_stand(load: float) -> None:
    group = Group({"t": Topic(2, load=(load, load))}, {"a": Member(("t",))})
    with pytest.raises(ContractError) as caught:
        life_of_group(group)
    assert str(caught.value).startswith("group.topics.t.load: adds up to ")

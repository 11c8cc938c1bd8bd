"""How a live value is held against simulated ones: what counts as the same, what as explained, and what as neither."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.harness.fidelity.calibration import FILE, calibrated
from rebalance_lab.harness.fidelity.explanations import Case, explanation
from rebalance_lab.harness.fidelity.side_by_side import UNEXPLAINED, simulated_rows, why
from rebalance_lab.harness.scenario.documents import decode_document
from rebalance_lab.harness.scenario.model import Scenario
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.paths import ROOT

OWN = sorted((ROOT / "harness" / "fidelity" / "scenarios").glob("*.yaml"))


def scenario(name: str) -> Scenario:
    file = next(one for one in OWN if one.stem == name)
    return parse_scenario(decode_document(file.read_bytes()))


def case(name: str, measure: str, simulated: list[float], live: float, strategy: str = "classic/range") -> str:
    found = Case(
        scenario=scenario(name),
        strategy=strategy,
        measure=measure,
        low=min(simulated),
        high=max(simulated),
        live=live,
    )
    return why(found, sorted(simulated)[len(simulated) // 2], simulated)


@pytest.mark.parametrize(
    ("measure", "simulated", "live", "said"),
    [
        ("rebalances", [2, 2, 2], 2, ""),
        ("rebalances", [2, 2, 3], 3, "so in 33% of the simulated seeds"),
        ("rebalances", [2, 2, 2], 3, UNEXPLAINED),
        ("moved", [4, 4, 4], 5, UNEXPLAINED),
        ("unowned_s", [20.0, 20.0, 20.0], 22.9, ""),  # 15 %
        ("unowned_s", [15.0, 20.0, 30.0], 29.0, "simulated seeds have 15 to 30"),
        ("unowned_s", [0.1, 0.1, 0.1], 0.3, ""),  # too small for a ratio to mean anything
        ("settle_mean_s", [1.0, 1.0, 1.0], 9.0, UNEXPLAINED),
        ("read_twice", [100, 100, 100], 300, "commit window"),
        ("read_twice", [100, 100, 100], 90_000, UNEXPLAINED),  # no auto-commit leaves so much open
    ],
)
def test_a_live_value_against_simulated_ones(measure: str, simulated: list[float], live: float, said: str) -> None:
    found = case("crash", measure, simulated, live)
    assert found == "" if said == "" else found.startswith(said)


def test_a_reason_explains_only_its_own_scenarios() -> None:
    """That every librdkafka member watches metadata explains another rebalance for new partitions, not for a crash."""
    assert case("add_partitions", "rebalances", [1, 1, 1], 2).startswith("metadata watchers")
    assert case("add_partitions", "rebalances", [1, 1, 1], 2, "consumer/uniform").startswith(UNEXPLAINED)
    assert case("add_partitions", "rebalances", [1, 1, 1], 9).startswith(UNEXPLAINED)
    assert case("add_partitions", "unowned_s", [9.0, 40.0, 60.0], 5.0).startswith("metadata watchers")
    assert case("add_partitions", "unowned_s", [9.0, 40.0, 60.0], 5.0, "consumer/uniform").startswith(UNEXPLAINED)


def test_a_later_join_explains_more_time_and_never_less() -> None:
    assert case("rolling_restart", "unowned_s", [10.0, 11.0, 12.0], 20.0).startswith("join interval")
    assert case("rolling_restart", "unowned_s", [40.0, 41.0, 42.0], 20.0).startswith(UNEXPLAINED)


def test_heartbeats_that_run_on_explain_less_time_but_no_more_than_one_interval_for_a_members_share() -> None:
    assert case("pause", "unowned_s", [4.0, 4.0, 4.1], 2.9).startswith("heartbeat clock")
    assert case("pause", "unowned_s", [8.0, 8.0, 8.1], 3.9).startswith(UNEXPLAINED)  # four partitions, a second each
    assert case("pause", "unowned_s", [4.0, 4.0, 4.1], 2.9, "consumer/uniform").startswith(UNEXPLAINED)


def test_a_session_that_a_member_knows_to_be_over_spares_one_batch_after_a_long_standstill() -> None:
    assert case("pause", "read_twice", [600, 620, 640], 192).startswith("own session")
    assert case("pause", "read_twice", [1600, 1620, 1640], 192).startswith("commit window")  # more than a batch
    assert case("crash", "read_twice", [600, 620, 640], 192).startswith("commit window")  # nobody comes back


def test_a_kip_848_member_may_have_one_more_batch_after_a_long_standstill() -> None:
    told = {"strategy": "consumer/uniform"}
    assert case("pause", "read_twice", [4, 104, 200], 668, **told).startswith("one more batch")
    assert case("pause", "read_twice", [4, 104, 200], 701, **told) == "not explained: simulated seeds have 4 to 200"
    assert case("crash", "read_twice", [4, 104, 200], 668, **told).startswith("not explained")
    assert case("pause", "read_twice", [4, 104, 200], 668).startswith("not explained")


def changed(name: str, **changes: Any) -> Scenario:
    file = next(one for one in OWN if one.stem == name)
    return parse_scenario({**decode_document(file.read_bytes()), **changes})


def reason(found: Scenario, strategy: str, measure: str, low: float, high: float, live: float) -> str | None:
    return explanation(Case(scenario=found, strategy=strategy, measure=measure, low=low, high=high, live=live))


def test_a_pattern_that_the_broker_matches_brings_about_fewer_rebalances_of_kip_848_groups() -> None:
    created = [{"at": "15s", "create topic": {"name": "orders-eu", "partitions": 6}}]
    by_pattern = changed("crash", members={"consumer": {"count": 3, "pattern": "orders.*"}}, timeline=created)
    found = reason(by_pattern, "consumer/uniform", "rebalances", 4, 4, 2)
    assert found is not None
    assert found.startswith("pattern")
    assert reason(by_pattern, "consumer/uniform", "rebalances", 4, 4, 5) is None
    assert reason(by_pattern, "classic/roundrobin", "moved", 4, 4, 2) is None
    assert reason(changed("crash", timeline=created), "consumer/uniform", "moved", 4, 4, 2) is None


def test_librdkafka_does_not_wait_for_the_commit_of_a_deleted_topic() -> None:
    deleted = changed(
        "crash",
        topics={"orders": {"partitions": 6}, "payments": {"partitions": 6}},
        timeline=[{"at": "15s", "delete topic": "payments"}],
    )
    found = reason(deleted, "classic/range", "unowned_s", 60.0, 64.0, 0.4)
    assert found is not None
    assert found.startswith("deleted topic")
    assert reason(deleted, "classic/range", "moved", 8, 10, 12) is None
    assert reason(deleted, "consumer/uniform", "unowned_s", 60.0, 64.0, 0.4) is None


def test_nothing_explains_moves() -> None:
    arguments: dict[str, Any] = {"strategy": "classic/range", "low": 4, "high": 4, "live": 5}
    for file in OWN:
        assert explanation(Case(scenario=scenario(file.stem), measure="moved", **arguments)) is None


def test_the_labs_own_scenarios_are_six_and_share_a_cluster() -> None:
    assert len(OWN) == 6
    assert len({tuple(sorted(scenario(file.stem).broker.items())) for file in OWN}) == 1


def test_all_are_simulated_with_the_same_measured_constants() -> None:
    assert calibrated(scenario("crash"))[1] == calibrated(scenario("pause"))[1]
    kept = decode_document(FILE.read_bytes())
    assert set(kept["provenance"]) >= {"command", "kafka", "confluent-kafka", "date", "load before"}
    assert all(len(samples) >= 10 for samples in kept["samples_ms"].values())


def test_seeds_spread_over_the_moments_between_two_commits() -> None:
    twice = [row["read_twice"] for row in simulated_rows(scenario("crash"), "classic/range", 8)]
    assert max(twice) > 3 * max(1, min(twice))

"""`rebalance-lab size` as a person or a script meets it."""

from __future__ import annotations

import json

import pytest

from tests.api.conftest import Run


def test_the_books_example_as_json(run: Run) -> None:
    asked = "size --target 1GB/s --per-consumer 50MB/s --headroom 0% --strategies range --json"
    ended = run(*asked.split())
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert (answer["unit"], answer["partitions"], answer["now"]["consumers"]) == ("bytes", 20, 20)


def test_a_table_for_people_says_why_and_for_when(run: Run) -> None:
    arguments = "--target 10k/s --per-consumer 500/s --per-partition 400/s --growth 50% --horizon 18mo --outage 1h"
    ended = run("size", *arguments.split(), "--strategies", "uniform")
    assert ended.code == 0
    assert "56 partitions, because one partition takes 400/s" in ended.out
    assert "in 1.5 years" in ended.out
    assert "caught up after 1h down" in ended.out


def test_records_and_bytes_mix_when_a_records_size_is_known(run: Run) -> None:
    ended = run(
        "size", "--target", "50k/s", "--per-consumer", "10MB/s", "--record-size", "2kB", "--deploys", "0", "--json"
    )
    assert json.loads(ended.out)["partitions"] == 12  # 120 MB/s with the usual headroom


ASKED = ("size", "--target", "5k/s", "--per-consumer", "600/s")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_whole_figures(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    def figures(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = run(*ASKED, "--strategies", "cooperative-sticky").out
        table = shown[shown.index("A rolling deploy") : shown.index("a deploy takes")].splitlines()[1:]
        assert "…" not in shown
        assert max(map(len, table)) <= columns
        return [word for line in table for word in line.split() if word[:1].isdigit()]

    narrow = figures(width)
    assert narrow
    assert narrow == figures(120)[: len(narrow)]


@pytest.mark.parametrize(("target", "said"), [("5/s", "1 partition, because"), ("900/s", "2 partitions, because")])
def test_one_partition_is_not_called_partitions(run: Run, target: str, said: str) -> None:
    shown = run("size", "--target", target, "--per-consumer", "600/s", "--deploys", "0").out
    assert shown.startswith(said)
    assert ("on 1 partition " in shown) == ("1 partition," in said)


def test_what_a_deploy_of_the_sized_group_costs_is_part_of_the_answer(run: Run) -> None:
    answer = json.loads(run(*ASKED, "--strategies", "range,uniform+static", "--json").out)
    deploy = answer["deploy"]
    assert (deploy["consumers"], deploy["a_day"]) == (answer["now"]["consumers"], 1)
    eager, static = deploy["costs"]
    assert (eager["strategy"], static["strategy"]) == ("classic/range", "consumer/uniform+static")
    assert answer["standstill"] == pytest.approx(eager["unowned_s"] / 10 / 86_400)
    # 500 a second come in for one consumer of 600: a second's standstill takes five to catch up with.
    assert static["catch_up_s"] == pytest.approx(5 * static["unowned_longest_s"])
    assert "one consumer after the other, 10 s down" in deploy["assumed"]


def test_more_deploys_are_more_standstill_and_none_leave_it_out(run: Run) -> None:
    once, often, never = (
        json.loads(run(*ASKED, "--strategies", "range", "--deploys", deploys, "--json").out)
        for deploys in ("1", "10", "0")
    )
    assert often["standstill"] == pytest.approx(10 * once["standstill"])
    assert (never["standstill"], never["deploy"]) == (None, None)
    assert never["now"] == once["now"]


def test_how_long_a_deploy_takes_is_said_and_only_those_that_fit_into_a_day_are_counted(run: Run) -> None:
    given = "--target 100/s --per-consumer 10/s --strategies range --downtime 880s --deploys 24"
    asked = ["size", *given.split()]
    answer, ended = json.loads(run(*asked, "--json").out), run(*asked)
    deploy = answer["deploy"]
    assert (deploy["consumers"], deploy["takes_s"], deploy["a_day"]) == (12, 10_800, 8)
    assert answer["standstill"] == pytest.approx(8 * deploy["costs"][0]["unowned_s"] / 12 / 86_400)
    assert answer["notes"] == ["24 deploys of 3h each do not fit into a day: 8 are counted"]
    assert "a deploy takes 3h" in ended.out
    assert "8 times a day with classic/range" in ended.out


def test_without_headroom_consumers_are_counted_for_deploys_and_the_deploy_is_theirs(run: Run) -> None:
    asked = "size --target 1k/s --per-consumer 100/s --partitions 20 --headroom 0 --strategies range --json"
    answer = json.loads(run(*asked.split()).out)
    # Ten would be busy all the time; a partition is not split, so the next number that helps is one each.
    assert answer["now"]["consumers"] == answer["deploy"]["consumers"] == 20
    assert json.loads(run(*asked.split(), "--deploys", "0").out)["now"]["consumers"] == 10


def test_a_large_groups_deploy_is_estimated_and_said_to_be(run: Run) -> None:
    ended = run("size", "--target", "5M/s", "--per-consumer", "6k/s", "--strategies", "range")
    assert "A rolling deploy of 1,000 consumers, simulated: one consumer after the other" in ended.out
    assert "~ an estimate, from a smaller group that is as busy" in ended.out
    assert "once a day with classic/range: partitions stand still for 0.00" in ended.out


@pytest.mark.parametrize("option", ["--growth", "--headroom"])
@pytest.mark.parametrize(("text", "meant"), [("30", "30%"), ("0.3", "30% or 0.3%"), ("1", "100% or 1%")])
def test_a_percentage_needs_its_sign(run: Run, option: str, text: str, meant: str) -> None:
    ended = run(*ASKED, "--deploys", "0", "--horizon", "2y", option, text)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"rebalance-lab: {option}: '{text}' has no percent sign: say {meant}\n"


@pytest.mark.parametrize(("horizon", "said"), [((), "is missing"), (("--horizon", "0d"), "is '0d'")])
def test_growth_needs_a_horizon(run: Run, horizon: tuple[str, ...], said: str) -> None:
    ended = run(*ASKED, "--deploys", "0", "--growth", "30%", *horizon)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"rebalance-lab: --horizon: {said}: --growth 30% for how long? Say 2y, 18mo or 90d\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--target 5k/s", "Missing option '--per-consumer'."),
        ("--target 0/s --per-consumer 5/s", "--target: must be above 0, got '0/s'"),
        (
            "--target 5 --per-consumer 5/s",
            "--target: '5' is not a throughput: say 5k/s for records or 50MB/s for bytes",
        ),
        (
            "--target 5k/s --per-consumer 5MB/s",
            "--per-consumer: is in bytes and --target in records: say --record-size",
        ),
        ("--target 5k/s --per-consumer 5/s --growth lots", "--growth: 'lots' is not a percentage: say 30%"),
        ("--target 5k/s --per-consumer 5/s --horizon soon", "--horizon: 'soon' is not a horizon: say 2y, 18mo or 90d"),
        ("--target 5k/s --per-consumer 5/s --outage 90", "--outage: '90' is not a duration"),
        ("--target 5k/s --per-consumer 5/s --partitions 0", "--partitions: must be between 1 and 10,000,000, got 0"),
        ("--target 5k/s --per-consumer 5/s --deploys -1", "--deploys: must be between 0 and 1,000, got -1"),
        ("--target 5k/s --per-consumer 5/s --downtime 2h", "--downtime: must be at most 1h, got '2h'"),
        ("--target 5k/s --per-consumer 5/s --strategies rage", '--strategies: unknown strategy "rage"'),
        ("--target 9G/s --per-consumer 0.1/s", "--target: that would take more than 10,000,000 partitions"),
        ("--target 9/s --per-consumer 1/s --growth 1e300% --horizon 9y", "--target: it would grow beyond all numbers"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run: Run, arguments: str, message: str) -> None:
    ended = run("size", *arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"rebalance-lab: {message}")
    assert ended.err.count("\n") == 1


def test_large_shares_are_written_as_other_figures_are(run: Run) -> None:
    asked = "size --target 5k/s --per-consumer 600/s --partitions 10000000 --deploys 0"
    assert "1,000,000" in run(*asked.split()).out

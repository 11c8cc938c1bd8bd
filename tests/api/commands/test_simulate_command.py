"""`rebalance-lab simulate` and `compare` as a person or a script meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.api.answers.simulate_answer import simulate_once
from rebalance_lab.api.commands import simulate_command as simulate
from rebalance_lab.harness.evaluate import runs
from rebalance_lab.harness.measure.invariants import Broken
from rebalance_lab.harness.scenario.reader import parse_scenario
from tests.api.conftest import Run, run  # noqa: F401 - the fixture
from tests.harness.small_scenarios import RESTART, write


def test_before_the_restart_everybody_owns_a_third(run: Run, tmp_path: Path) -> None:  # noqa: F811
    ended = run("simulate", write(tmp_path), "--until", "30s", "--show", "ownership", "--json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["until_ms"], answer["unowned"]) == (0, 30_000, {})
    assert sorted(len(one["partitions"]["orders"]) for one in answer["ownership"].values()) == [2, 2, 2]
    assert {one["is"] for one in answer["ownership"].values()} == {"running"}


def test_while_a_static_member_is_down_nobody_owns_its_partitions(run: Run, tmp_path: Path) -> None:  # noqa: F811
    ended = run("simulate", write(tmp_path), "-s", "range+static", "--until", "45s", "--json")
    answer = json.loads(ended.out)
    assert answer["strategy"] == "classic/range+static"
    assert len(answer["unowned"]["orders"]) == 2
    assert sorted(answer["ownership"]) == ["consumer-1", "consumer-3"]


def test_costs_events_and_ownership_without_a_choice(run: Run, tmp_path: Path) -> None:  # noqa: F811
    answer = json.loads(run("simulate", write(tmp_path), "--json").out)
    assert answer["costs"]["rebalances"] == 2
    assert answer["costs"]["requests"] > 0
    assert {"at_ms": 40_000, "kind": "event", "what": "restart consumer-2"} in answer["events"]
    assert answer["broken"] is None


def test_a_run_that_takes_a_while_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    quick: list[int] = []
    simulate_once(parse_scenario(RESTART), strategy="range", watch=simulate.watcher(quick.append))
    monkeypatch.setattr(simulate, "BAR_AFTER_S", -1.0)
    simulate_once(parse_scenario(RESTART), strategy="range", watch=simulate.watcher(seen.append))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 120)
    assert quick == []  # over before anybody wonders


def test_people_get_lanes_a_table_and_what_happened(run: Run, tmp_path: Path) -> None:  # noqa: F811
    ended = run("simulate", write(tmp_path), "--show", "ownership", "--show", "events")
    assert ended.code == 0
    assert "one restart, classic/range, seed 1, at 2:00.000" in ended.out
    lane = next(line for line in ended.out.splitlines() if line.startswith("consumer-1 "))
    assert "222" in lane  # two partitions
    assert "333" in lane  # three, while consumer-2 is away
    assert "restart consumer-2" in ended.out
    assert "reads at 2:00.000" in ended.out


@pytest.mark.parametrize("name", ["[/red]", "[red]m[/red]", "[link=http://x]b", ":warning:"])
def test_names_are_shown_as_they_are_written(run: Run, tmp_path: Path, name: str) -> None:  # noqa: F811
    members = {name: {"topics": "orders"}, "other": {"topics": "orders"}}
    timeline = [{"at": "40s", "crash": "other"}, {"at": "41s", "restart": {"members": name, "downtime": "5s"}}]
    file = write(tmp_path, name=name, members=members, timeline=timeline)
    ended = run("simulate", file, "--show", "ownership", "--show", "events")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert [name, "orders", "0-5"] in lines
    assert ["0:41.000", "restart", name] in lines
    assert run("compare", file, "--strategies", "range", "--seeds", "1", "--jobs", "1").out.startswith(f"{name}, 2m:")


@pytest.mark.parametrize("order", ["\x1b[2J", "\x1b]0;renamed\x07", "\x9b31m", "\x00", "\u202e", "\u2066"])
def test_a_name_gives_no_orders_to_the_terminal(run: Run, tmp_path: Path, order: str) -> None:  # noqa: F811
    file = write(tmp_path, name=f"a{order}b")
    told = [run("simulate", file), run("compare", file, "--strategies", "range", "--seeds", "1", "--jobs", "1")]
    told.append(run("simulate", write(tmp_path, **{order: 1})))
    assert [ended.code for ended in told] == [0, 0, 2]
    for ended in told:
        assert not set(order) & set("\x1b\x07\x9b\x00\u202e\u2066") & set(ended.out + ended.err)


def test_lanes_begin_below_each_other_whatever_the_letters(run: Run, tmp_path: Path) -> None:  # noqa: F811
    members = {"注文": {"topics": "orders"}, "a": {"topics": "orders"}}
    ended = run("simulate", write(tmp_path, members=members, timeline=[]), "--show", "ownership")
    assert "注文    ·" in ended.out  # two letters that are as wide as four, and "nobody" has six
    assert "a       ·" in ended.out


def test_the_trace_of_a_seed_is_the_same_bytes_each_time(run: Run, tmp_path: Path) -> None:  # noqa: F811
    file = write(tmp_path)
    traces = [tmp_path / name for name in ("a", "b", "c")]
    for trace, seed in zip(traces, ("1", "1", "2"), strict=True):
        assert run("simulate", file, "--seed", seed, "--trace", str(trace), "--show", "costs").code == 0
    first, again, other = (trace.read_bytes() for trace in traces)
    assert first == again != other
    assert json.loads(first.splitlines()[0])["fact"] == "run"


def test_the_schema_needs_no_scenario(run: Run) -> None:  # noqa: F811
    schema = json.loads(run("simulate", "--schema").out)
    assert schema["title"] == "Rebalance Lab scenario"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Strict(runs.Checker):
        def feed(self, fact: runs.Fact) -> None:
            if fact["t"] >= 41_000:
                raise Broken("one owner", "made up", fact["t"])

    monkeypatch.setattr(runs, "Checker", Strict)


@pytest.mark.usefixtures("broken")
def test_a_broken_invariant_is_exit_code_1_with_the_command_that_shows_it(run: Run, tmp_path: Path) -> None:  # noqa: F811
    file, trace = write(tmp_path), tmp_path / "trace.jsonl"
    ended = run("simulate", file, "--seed", "7", "--trace", str(trace))
    assert ended.code == 1
    what, again = ended.err.splitlines()
    assert what.startswith("broken: one owner: made up (at 4")
    assert what.endswith("seed 7")
    assert again.startswith(f"again: rebalance-lab simulate {file} --strategy classic/range --seed 7 --until 4")
    last = json.loads(trace.read_text().splitlines()[-1])
    assert last["t"] >= 41_000  # the shortest prefix that shows it


def test_a_commit_that_breaks_an_invariant_is_in_the_trace_and_found_again(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Commits are not kept in a trace, but the one that the command is to show again is."""

    class NoCommits(runs.Checker):
        def feed(self, fact: runs.Fact) -> None:
            if fact["fact"] == "durable" and fact["t"] >= 41_000:
                raise Broken("honest commits", "made up", fact["t"])

    monkeypatch.setattr(runs, "Checker", NoCommits)
    file, trace = write(tmp_path), tmp_path / "trace.jsonl"
    ended = run("simulate", file, "--trace", str(trace))
    last = json.loads(trace.read_text().splitlines()[-1])
    assert last["fact"] == "durable"
    assert f"--until {last['t']}ms" in ended.err
    assert run("simulate", file, "--until", f"{last['t']}ms").code == 1


def test_what_the_leaders_took_is_measured_and_said_where_it_is_asked_for(run: Run, tmp_path: Path) -> None:  # noqa: F811
    file = write(tmp_path)
    assert json.loads(run("simulate", file, "--json", "--show", "cpu").out)["assignment_cpu_ms"] > 0
    assert "Leaders' assignments" in run("simulate", file, "--show", "cpu").out
    assert "assignment_cpu_ms" not in json.loads(run("simulate", file, "--json").out)


def test_what_kafka_breaks_itself_is_said_with_its_reason(run: Run, tmp_path: Path) -> None:  # noqa: F811
    """One of the two leads, and comes back as a static member: nobody looks at the partitions that came meanwhile."""
    timeline = [
        {"at": "1m", "restart": {"members": ["consumer-1", "consumer-2"], "downtime": "20s"}},
        {"at": "65s", "add partitions": {"topic": "orders", "to": 8}},
    ]
    members = {"consumer": {"count": 2, "topics": "orders"}}
    file = write(tmp_path, members=members, timeline=timeline, duration="15m")
    ended = run("simulate", file, "-s", "range+static")
    assert ended.code == 1
    assert "\nKafka's own, perhaps: a classic leader that comes back as a static member" in ended.err
    compared = run("compare", file, "--strategies", "range+static,uniform", "--seeds", "1", "--jobs", "1")
    assert "Kafka's own, perhaps: a classic leader" in compared.out


@pytest.mark.usefixtures("broken")
def test_a_comparison_with_a_broken_run_says_so_and_ends_with_1(run: Run, tmp_path: Path) -> None:  # noqa: F811
    file = write(tmp_path)
    ended = run("compare", file, "--strategies", "range,sticky", "--seeds", "2", "--jobs", "1")
    assert ended.code == 1
    assert "broken in 2" in ended.out
    assert f"again: rebalance-lab simulate {file} --strategy classic/sticky --seed 1 --show events" in ended.out


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_recommendation_without_a_sound_run_is_the_answer_no(run: Run, tmp_path: Path, more: list[str]) -> None:  # noqa: F811
    file = write(tmp_path)
    ended = run("recommend", file, "--strategies", "range,sticky", "--seeds", "2", "--jobs", "1", *more)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("broken: none got through every run: there is nothing to recommend\n")
    assert f"again: rebalance-lab simulate {file} --strategy classic/sticky --seed 1 --show events" in ended.err


def test_a_recommendation_says_which_runs_broke(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Strict(runs.Checker):
        def feed(self, fact: runs.Fact) -> None:
            if fact.get("strategy") == "classic/sticky":
                raise Broken("one owner", "made up", fact["t"])
            super().feed(fact)

    monkeypatch.setattr(runs, "Checker", Strict)
    file = write(tmp_path)
    ended = run("recommend", file, "--strategies", "range,sticky", "--seeds", "2", "--jobs", "1", "--json")
    assert (ended.code, json.loads(ended.out)["strategy"]) == (1, "classic/range")
    assert f"again: rebalance-lab simulate {file} --strategy classic/sticky --seed 1 --show events" in ended.err


def test_a_report_says_the_whole_command(run: Run, tmp_path: Path) -> None:  # noqa: F811
    options = ["--from", "classic/sticky", "--strategies", "range,sticky", "--seeds", "1", "--brokers", "3"]
    report = tmp_path / "report.html"
    assert run("recommend", write(tmp_path), *options, "--html", str(report), "--jobs", "1").code == 0
    assert " ".join(options) in report.read_text()


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("kind", ["a scenario", "saved runs", "a group"])
def test_the_command_that_shows_it_again_can_be_typed_as_it_is(run: Run, tmp_path: Path, kind: str) -> None:  # noqa: F811
    file = tmp_path / "given.json"
    options = ["--strategies", "range", "--seeds", "1", "--jobs", "1"]
    group = {"topics": {"orders": {"partitions": 2}}, "members": {"a": {"topics": ["orders"]}}}
    given = json.dumps(group) if kind == "a group" else Path(write(tmp_path)).read_text()
    file.write_text(given)
    if kind == "saved runs":
        file.write_text(run("compare", str(file), *options, "--json").out)
        options = []
    told = run("compare", str(file), *options).out
    [again] = [line.split("again: rebalance-lab ")[1] for line in told.splitlines() if "again: " in line]
    ended = run(*again.split())
    assert (ended.code, ended.err.splitlines()[0][:18]) == (1, "broken: one owner:")


def test_a_comparison_for_people_names_unit_weights_and_interval(run: Run, tmp_path: Path) -> None:  # noqa: F811
    ended = run("compare", write(tmp_path), "--strategies", "range,uniform", "--seeds", "6", "--jobs", "1")
    assert ended.code == 0
    assert "one restart, 2m: 2 strategies, 6 seeds each" in ended.out
    assert "1 = one partition standing still for one second; unowned_s=1" in ended.out
    assert "95 % interval of the median" in ended.out
    assert ended.err == ""  # no progress in a pipe


@pytest.mark.parametrize("width", [30, 40, 60, 70, 80, 120, 150])
def test_a_figure_is_shown_whole_or_not_at_all(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    strategies = "classic/cooperative-sticky,classic/cooperative-sticky+static"
    ended = run("compare", write(tmp_path), "--strategies", strategies, "--seeds", "1", "--jobs", "1")
    lines = ended.out[: ended.out.index("cost: 1")].splitlines()[1:]
    assert "…" not in ended.out
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if "classic/coop" in line] == ["1", "2"]
    assert ("(low to high) is" in ended.out) == any("(low to high)" in line for line in lines) == (width >= 70)


def test_a_file_that_nobody_may_write_is_told_before_the_runs(
    run: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.access", lambda place, mode: False)  # a superuser may write everywhere
    monkeypatch.setattr(
        "rebalance_lab.harness.evaluate.comparison.compare", lambda *given, **more: pytest.fail("it ran")
    )
    place = tmp_path / "report.html"
    ended = run("compare", write(tmp_path), "--html", str(place))
    assert (ended.code, ended.err) == (2, f"rebalance-lab: {place}: cannot be written: permission denied\n")


def test_saved_runs_are_ranked_anew_without_running_them(run: Run, tmp_path: Path) -> None:  # noqa: F811
    saved = tmp_path / "runs.json"
    arguments = ["--strategies", "range,range+static", "--seeds", "2", "--jobs", "1", "--json"]
    saved.write_text(run("compare", write(tmp_path), *arguments).out)
    usual = json.loads(saved.read_text())
    gaps = json.loads(run("compare", str(saved), "--weights", "needless_revocations=100", "--json").out)
    assert usual["ranking"][0]["strategy"] == "classic/range"
    assert gaps["ranking"][0]["strategy"] == "classic/range+static"
    assert gaps["runs"] == usual["runs"]
    assert run("compare", str(saved), "--strategies", "range").code == 2
    for command in ("compare", "recommend"):
        assert run(command, str(saved), "--seeds", "5").err.startswith(
            "rebalance-lab: --seeds: a saved comparison has its"
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("compare nowhere.yaml", "nowhere.yaml: No such file or directory"),
        ("compare {file} --strategies rage", '--strategies: unknown strategy "rage"; known: classic/range'),
        ("compare {file} --strategies range,classic/range", "--strategies: classic/range stands twice"),
        ("compare {file} --strategies classic/no.such:Thing", "--strategies: no.such cannot be imported"),
        ("compare {file} --weights moved", "--weights: expected name=number such as unowned_s=1"),
        ("compare {file} --weights speed=1", "--weights: no cost is called 'speed'; there are unowned_s"),
        ("compare {file} --weights moved=-1", "--weights: moved needs a number from 0 to 1,000,000,000, got '-1'"),
        ("compare {file} --weights moved=1,moved=2", "--weights: moved stands twice"),
        ("simulate {file} --strategy=", '--strategy: unknown strategy ""'),
        ("compare {file} --strategies=", '--strategies: unknown strategy ""'),
        ("compare {file} --weights moved=1_0", "--weights: moved needs a number"),
        ("compare {file} --weights moved=٣", "--weights: moved needs a number"),
        ("compare {file} --weights moved=nan", "--weights: moved needs a number"),
        ("compare {file} --weights " + "unowned_s=0,stalled_s=0,behind_s=0,read_twice=0,moved=0,"
         "needless_revocations=0,failed_processes=0", "--weights: everything weighs 0"),
        ("compare {file} --seeds -1", "--seeds: must be between 1 and 100,000, got -1"),
        ("compare {file} --seeds 0", "--seeds: must be between 1 and 100,000, got 0"),
        ("compare {file} --jobs 0", "--jobs: must be at least 1, got 0"),
        ("compare {file} --html /no/such/folder/r.html", "/no/such/folder/r.html: cannot be written: no such folder"),
        ("compare {file} --html -", "-: cannot be written: name a file"),
        ("simulate {file} --trace=", "the file: cannot be written: name a file"),
        ("simulate {file} --trace " + "a" * 300, "a" * 300 + ": File name too long"),
        ("simulate {file} --seed -1", "--seed: must not be negative, got -1"),
        ("simulate {file} --until 12.5", "--until: '12.5' is not a duration"),
        ("simulate {file} --until 3h", "--until: 3h is after the scenario's end, 2m"),
        ("simulate {file} --show all", "--show: expected ownership, costs, events or cpu, got 'all'"),
        ("simulate", "SCENARIO: is missing"),
        ("recommend {file} --from nothing", '--from: unknown strategy "nothing"'),
        ("recommend {file} --brokers 0", "--brokers: must be between 1 and 10,000, got 0"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(run: Run, tmp_path: Path, arguments: str, message: str) -> None:  # noqa: F811
    ended = run(*arguments.format(file=write(tmp_path)).split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"rebalance-lab: {message}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("command", ["simulate {file} --trace {file}", "compare {file} --html {file}"])
def test_the_input_is_not_written_over(run: Run, tmp_path: Path, command: str) -> None:  # noqa: F811
    file = write(tmp_path)
    before = Path(file).read_text()
    ended = run(*command.format(file=file).split())
    assert (ended.code, ended.err) == (2, f"rebalance-lab: {file}: cannot be written: it is the input\n")
    assert Path(file).read_text() == before


def test_a_scenario_without_a_strategy_asks_for_one(run: Run, tmp_path: Path) -> None:  # noqa: F811
    file = write(tmp_path, {key: value for key, value in RESTART.items() if key != "strategy"})
    ended = run("simulate", file)
    assert (ended.code, ended.err) == (2, "rebalance-lab: --strategy: is missing, and the scenario names none\n")


@pytest.mark.parametrize("command", ["simulate", "compare", "recommend"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "classic/nowhere:Mine"}, "strategy: nowhere cannot be imported: No module named 'nowhere'"),
        (
            {
                "timeline": [
                    {"at": "40s", "rolling restart": {"downtime": "5s", "strategy": "classic/range,nowhere:Mine"}}
                ]
            },
            "timeline: the rolling restart at 40s: nowhere cannot be imported: No module named 'nowhere'",
        ),
    ],
)
def test_an_assignor_that_a_file_names_is_looked_for_before_the_runs(
    run: Run,  # noqa: F811
    tmp_path: Path,
    command: str,
    changes: dict[str, Any],
    said: str,
) -> None:
    ended = run(command, write(tmp_path, **changes))
    assert (ended.code, ended.out, ended.err) == (2, "", f"rebalance-lab: {said}\n")

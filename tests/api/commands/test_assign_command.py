"""`rebalance-lab assign` as a person or a script meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Run
from tests.paths import EXAMPLES

ORDERS = str(EXAMPLES / "orders.json")
BOOK = {
    "topics": {"T1": {"partitions": 3}, "T2": {"partitions": 3}},
    "members": {"C1": {"topics": ["T1", "T2"]}, "C2": {"topics": ["T1", "T2"]}},
}


def request(strategy: str, group: Any = BOOK) -> str:
    return json.dumps({"strategy": strategy, "group": group})


@pytest.mark.parametrize(
    ("strategy", "c1"),
    [("classic/range", {"T1": [0, 1], "T2": [0, 1]}), ("classic/roundrobin", {"T1": [0, 2], "T2": [1]})],
)
def test_the_books_examples_hold(run: Run, strategy: str, c1: dict[str, list[int]]) -> None:
    ended = run("assign", "--json", stdin=request(strategy))
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert answer["strategy"] == strategy
    assert answer["assignment"]["C1"] == c1
    assert answer["quality"]["assigned"] == 6


def test_the_option_wins_over_the_requests_own_strategy(run: Run) -> None:
    ended = run("assign", "--strategy", "roundrobin", "--json", "-", stdin=request("classic/range"))
    assert json.loads(ended.out)["strategy"] == "classic/roundrobin"


def test_a_bare_group_in_a_file_is_a_request(run: Run) -> None:
    ended = run("assign", ORDERS, "--strategy", "consumer/uniform", "--json")
    assert json.loads(ended.out)["quality"]["moved"] == 3


def test_a_batch_answers_in_order_and_a_wrong_request_in_its_place(run: Run) -> None:
    wrong = {"topics": {}, "members": {"c1": {"topics": [5]}}}
    batch = [json.loads(request("range")), json.loads(request("sticky", wrong)), json.loads(request("uniform"))]
    ended = run("assign", "--json", stdin=json.dumps({"requests": batch}))
    results = json.loads(ended.out)["results"]
    assert ended.code == 0
    assert [result.get("strategy") for result in results] == ["classic/range", None, "consumer/uniform"]
    assert results[1]["error"]["path"] == "group.members.c1.topics[0]"


@pytest.mark.parametrize("name", ["[/red]", "[red]m[/red]", ":warning:"])
def test_names_are_shown_as_they_are_written(run: Run, name: str) -> None:
    good = {"topics": {"T1": {"partitions": 3}}, "members": {name: {"topics": ["T1"]}}}
    wrong = {"topics": {}, "members": {name: {"topics": [5]}}}
    batch = [json.loads(request("range", group)) for group in (good, wrong)]
    ended = run("assign", stdin=json.dumps({"requests": batch}))
    assert f"{name} 3 T1 0-2" in " ".join(ended.out.split())
    assert f'error group.members["{name}"].topics[0]: expected a string, got 5' in ended.out


BAD = [
    ("not json", "not JSON"),
    (request("classic/rnage"), 'strategy: unknown strategy "classic/rnage"'),
    (json.dumps({"group": BOOK}), "strategy: is missing"),
    (request("classic/no.such.module:Mine"), "no.such.module cannot be imported"),
    (request("classic/json:Nothing"), "json:Nothing cannot be found"),
    (request("classic/json:dumps"), "has no method assign"),
    (request("roundrobin", {"topics": {}, "members": {}}), "group.members:"),
    ("[]", "request: expected an object"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[row[1] for row in BAD])
def test_bad_input_is_one_line_and_exit_code_2(run: Run, text: str, message: str) -> None:
    ended = run("assign", "--json", stdin=text)
    assert ended.code == 2
    assert ended.out == ""
    assert message in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("assign", "no-such-file.json"), ("assign", "--strateggy", "x"), ("asign",)], ids=str
)
def test_a_wrong_call_is_one_line_and_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert ended.err.count("\n") == 1


def test_a_custom_class_answers_and_its_failures_are_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_assignors.py").write_text(
        "class First:\n"
        "    name = 'first'\n"
        "    def assign(self, group):\n"
        "        everything = {name: list(range(topic.partitions)) for name, topic in group.topics.items()}\n"
        "        return {min(group.members): everything}\n"
        "class Broken:\n"
        "    def assign(self, group):\n"
        "        return [1 / len(group.topics['T1'].racks or ())]\n"
        "class Nonsense:\n"
        "    def assign(self, group):\n"
        "        return {'C1': {'T1': '012'}}\n"
        "class Quits:\n"
        "    def assign(self, group):\n"
        "        raise SystemExit(0)\n"
    )
    monkeypatch.chdir(tmp_path)
    good = run("assign", "--json", stdin=request("classic/my_assignors:First"))
    assert json.loads(good.out)["assignment"]["C1"] == {"T1": [0, 1, 2], "T2": [0, 1, 2]}
    broken = run("assign", stdin=request("classic/my_assignors:Broken"))
    assert (broken.code, "raised ZeroDivisionError" in broken.err) == (2, True)
    nonsense = run("assign", stdin=request("classic/my_assignors:Nonsense"))
    assert (nonsense.code, "a str for 'T1' of member 'C1'" in nonsense.err) == (2, True)
    quits = run("assign", stdin=request("classic/my_assignors:Quits"))
    assert (quits.code, "raised SystemExit" in quits.err) == (2, True)


def test_the_table_shows_every_member_and_explain_every_partition(run: Run) -> None:
    ended = run("assign", ORDERS, "--strategy", "cooperative-sticky", "--explain")
    for expected in ("pod-a", "pod-b", "pod-c", "pod-d", "keeps what it owned", "withheld: pod-a still owns it"):
        assert expected in ended.out


def test_the_explanation_covers_each_partition_once(run: Run) -> None:
    for strategy in ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "consumer/range", "load-aware"):
        ended = run("assign", ORDERS, "--strategy", strategy, "--explain", "--json")
        answer = json.loads(ended.out)
        told = {(reason["topic"], reason["partition"]): reason["member"] for reason in answer["explanation"]}
        assert len(answer["explanation"]) == len(told) == 12
        for member, share in answer["assignment"].items():
            for topic, partitions in share.items():
                assert all(told.pop((topic, partition)) == member for partition in partitions)
        assert set(told.values()) <= {None}


def test_diff_lists_what_goes_to_different_members(run: Run) -> None:
    as_json = json.loads(run("assign", ORDERS, "--diff", "range", "uniform", "--json").out)
    assert as_json["a"]["strategy"] == "classic/range"
    assert as_json["b"]["strategy"] == "consumer/uniform"
    for row in as_json["differences"]:
        assert row["a"] != row["b"]
        assert row["partition"] in as_json["a"]["assignment"][row["a"]][row["topic"]]
    shown = run("assign", ORDERS, "--diff", "range", "uniform").out
    assert f"{len(as_json['differences'])} partitions go to different members" in shown


def test_the_optimum_is_a_ruler_for_the_answer(run: Run) -> None:
    row = json.loads(run("assign", ORDERS, "--strategy", "range", "--optimum", "--json").out)["quality"]
    assert (row["gap_balance"], row["gap_moves"]) == (0, 3)


def test_a_command_loads_nothing_it_does_not_use() -> None:
    script = (
        "import sys, rebalance_lab.api.cli, runpy\n"
        f"sys.argv = ['rebalance-lab', 'assign', {ORDERS!r}, '--strategy', 'sticky', '--json']\n"
        "try:\n    rebalance_lab.api.cli.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'networkx', 'pydantic', 'rich', 'hypothesis', 'confluent_kafka', 'pyspark', 'fastapi', 'yaml'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")

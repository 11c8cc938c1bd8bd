"""Where the answer goes, and where input comes from: a full disk, a reader that has seen enough, terminals without the
letters, files without end."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.small_scenarios import write
from tests.paths import ROOT

FULL = Path("/dev/full")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rebalance_lab.api.cli", *arguments]


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_is_one_line(tmp_path: Path, more: list[str]) -> None:
    with FULL.open("w") as full:
        ended = subprocess.run(
            command("simulate", write(tmp_path), *more), cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr == "rebalance-lab: the answer cannot be written: No space left on device\n"


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_complaint_that_nobody_can_read_is_bad_input_still() -> None:
    with FULL.open("w") as full:
        assert subprocess.run(command("simulate", "nowhere.yaml"), cwd=ROOT, stderr=full).returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="a shell closes them")
@pytest.mark.parametrize(
    ("closed", "arguments", "code", "said"),
    [
        ("1", ["simulate", "{}"], 0, ""),
        ("1", ["simulate", "{}", "--json"], 0, ""),
        ("1", ["--help"], 0, ""),
        ("2", ["simulate", "nowhere.yaml"], 2, ""),
        ("0", ["simulate", "-"], 2, "rebalance-lab: no input: name a FILE, or pipe JSON into the command\n"),
    ],
)
def test_closed_streams_are_no_mishap(tmp_path: Path, closed: str, arguments: list[str], code: int, said: str) -> None:
    """Who closes one wants nothing from it, as with `| head -0`."""
    shell = shlex.join(command(*(one.format(write(tmp_path)) for one in arguments)))
    ended = subprocess.run(f"{shell} {closed}>&-", shell=True, cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (code, said)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_has_seen_enough_is_no_bad_answer(tmp_path: Path, more: list[str]) -> None:
    ran = subprocess.Popen(
        command("simulate", write(tmp_path), *more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert ran.stdout is not None
    assert ran.stderr is not None
    ran.stdout.close()
    assert (ran.stderr.read(), ran.wait(60)) == (b"", 0)
    ran.stderr.close()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_the_letters_gets_the_whole_answer(tmp_path: Path, encoding: str) -> None:
    arguments = "simulate", write(tmp_path, name="aufträge 注文"), "--show", "ownership"
    there = {**os.environ, "PYTHONIOENCODING": encoding}
    for_people = subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, env=there)
    assert (for_people.returncode, for_people.stderr) == (0, b"")
    assert b"V the timeline" in for_people.stdout
    assert b"orders 0-1" in for_people.stdout
    as_json = subprocess.run(command(*arguments, "--json"), cwd=ROOT, capture_output=True, env=there)
    assert json.loads(as_json.stdout)["scenario"] == "aufträge 注文"  # a question mark would be another name


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_file_without_end_is_refused() -> None:
    ended = subprocess.run(command("simulate", "/dev/zero"), cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, "rebalance-lab: /dev/zero: has more than 500 MB\n")

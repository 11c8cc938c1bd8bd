"""Nonsense is one finding with the group that provoked it, or one line; never a traceback of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebalance_lab.assignors.json_contract import ContractError, group_from_json
from rebalance_lab.assignors.testing.search.checking import check, replay
from rebalance_lab.assignors.testing.search.report_text import card, counterexample
from rebalance_lab.assignors.testing.subject import targets
from rebalance_lab.assignors.testing.subject.targets import load_target, target_of
from rebalance_lab.harness.conversation.protocol_churn import ProtocolChurn
from tests.assignors.testing import hostile


@pytest.mark.parametrize("cls", hostile.FINDINGS)
def test_nonsense_is_a_finding_with_the_group_that_provoked_it(cls: type) -> None:
    target = load_target(f"{hostile.__name__}:{cls.__qualname__}")
    report = check(target, 60)
    finding = report.finding("valid")
    assert finding is not None, report.findings
    assert hostile.FINDINGS[cls] in finding.message
    assert "\n" not in finding.message
    assert group_from_json(finding.group).members or cls is hostile.CanBeMadeOnce
    assert hostile.FINDINGS[cls] in f"{card(report)}\n{counterexample(report, finding)}".encode().decode()
    json.dumps(report.to_json(), allow_nan=False).encode()
    again = replay(target, "valid", finding.case)
    assert again is not None
    assert hostile.FINDINGS[cls] in again.message


@pytest.mark.parametrize("cls", hostile.REFUSED)
def test_what_a_class_says_wrongly_of_itself_is_one_line(cls: type) -> None:
    for told in (f"{hostile.__name__}:{cls.__qualname__}", cls):
        with pytest.raises(ContractError) as raised:
            target_of(told)
        assert hostile.REFUSED[cls] in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cls", hostile.GOOD)
def test_what_is_only_odd_passes(cls: type) -> None:
    assert check(target_of(cls), 60, machines=ProtocolChurn).holds


@pytest.mark.parametrize("cls", hostile.HOOKS)
def test_a_hook_that_raises_what_is_no_exception_is_a_finding(cls: type) -> None:
    finding = check(target_of(cls), 60, machines=ProtocolChurn).finding("survives-churn")
    assert finding is not None
    assert hostile.HOOKS[cls] in finding.message


def test_a_class_that_hangs_when_it_is_made_again_is_a_finding_too() -> None:
    report = check(target_of(hostile.SleepsWhenMadeAgain), 60)
    finding = report.finding("bounded-time")
    assert finding is not None, report.findings
    assert "no answer within" in finding.message


SLEEPERS = {
    "on import": "import time\ntime.sleep(1_000_000)",
    "when it is made": """
import time
class Sleeper:
    def __init__(self):
        time.sleep(1_000_000)
""",
    "when it is looked at": """
import time
class Sleeper:
    def assign(self, group):
        return {}
    @property
    def promises(self):
        time.sleep(1_000_000)
""",
}


@pytest.mark.parametrize("when", SLEEPERS)
def test_what_does_not_load_in_time_is_one_line(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"sleeps_{when.replace(' ', '_')}"
    (tmp_path / f"{module}.py").write_text(SLEEPERS[when])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(targets, "LOAD_LIMIT_S", 0.3)
    with pytest.raises(ContractError) as raised:
        target_of(f"{module}:Sleeper")
    assert "not done within 0.3 s" in str(raised.value)
    assert "\n" not in str(raised.value)

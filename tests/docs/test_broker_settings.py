"""The page of broker settings lists what the coordinators obey, with their defaults, and nothing else."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from rebalance_lab.harness.scenario.settings import BROKER
from rebalance_lab.protocol_v1.coordinator import config as v1_config
from rebalance_lab.protocol_v2.coordinator import config as v2_config
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "broker-settings.md").read_text()
SUPPORTED, UNSUPPORTED = PAGE.split("## Not supported")
ROW = re.compile(r"^\| `([a-z0-9.*]+)` \| ([^|]+?) \|", re.MULTILINE)


def default_of(name: str) -> str:
    configs = v1_config.CoordinatorConfig(), v2_config.CoordinatorConfig()
    value: Any = next(getattr(one, name.replace(".", "_")) for one in configs if hasattr(one, name.replace(".", "_")))
    if isinstance(value, Enum):
        return str(value.value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def test_supported_settings_stand_there_with_kafkas_defaults() -> None:
    assert dict(ROW.findall(SUPPORTED)) == {name: default_of(name) for name in BROKER}


def test_unsupported_settings_have_a_reason_and_are_refused() -> None:
    rows = dict(ROW.findall(UNSUPPORTED))
    assert len(rows) == 12
    assert not rows.keys() & BROKER.keys()
    assert all(reason.endswith(".") for reason in rows.values())

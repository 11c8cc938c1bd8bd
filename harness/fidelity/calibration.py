"""Hold how long real processes, brokers and networks take, which no simulator knows: measured once, kept as data.

Kept       calibration.json beside this module: values, every sample, and where and how they were measured
           (`python -m tools.calibrate` measures)
Never      fitted to a scenario: all scenarios are simulated with the same values
Start at   calibrated
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from rebalance_lab.harness.scenario.constants import Constants
from rebalance_lab.harness.scenario.model import Network, Scenario

FILE = Path(__file__).with_name("calibration.json")


def calibrated(scenario: Scenario) -> tuple[Scenario, Constants]:
    """Return the scenario on the network that was measured, and the constants to simulate it with."""
    values = json.loads(FILE.read_text())["values"]
    network = Network(latency_ms=values.pop("latency_ms"), jitter_ms=values.pop("jitter_ms"))
    return replace(scenario, network=network), Constants(**values, head_start_ms=0)

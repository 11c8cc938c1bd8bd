"""Two thousand random lives of a group, with everything going wrong that can (random_runs.py says what)."""

from __future__ import annotations

import pytest

from tests.protocol_v2.coordinator import mixed_runs
from tests.protocol_v2.coordinator.random_runs import run

RUNS = 2_000
BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("wild", [False, True], ids=["tidy", "wild"])
def test_no_partition_is_read_by_two_members_and_every_group_settles(wild, block):
    size = RUNS // (2 * BLOCKS)
    for seed in range(block * size, (block + 1) * size):
        run(seed, wild=wild)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_groups_that_change_their_protocol_have_no_two_readers_and_settle(block):
    size = RUNS // (4 * BLOCKS)
    for seed in range(block * size, (block + 1) * size):
        mixed_runs.run(seed)


@pytest.mark.parametrize("seed", [94, 467, 2037, 2104, 10369])
def test_lives_that_once_went_wrong(seed):
    run(seed)


@pytest.mark.parametrize("seed", [874, 10634])
def test_conversions_that_once_went_wrong(seed):
    mixed_runs.run(seed)

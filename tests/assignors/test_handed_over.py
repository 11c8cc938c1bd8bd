"""One strategy takes over what another gave: the compact shares of any answer are claims that every assignor reads."""

from __future__ import annotations

from random import Random

import pytest

from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.json_contract import assignment_to_json, group_from_json, group_to_json
from rebalance_lab.assignors.strategies import BUILT_IN, load_assignor, parse_strategy
from tests.conformance.random_groups import random_group


@pytest.mark.parametrize("first", BUILT_IN)
def test_the_next_strategy_sees_the_same_claims_as_if_they_had_come_as_json(first: str) -> None:
    compared = 0
    for seed in range(120):
        group = random_group(Random(f"hand over {seed}"))
        try:
            given = load_assignor(parse_strategy(first)).assign(group)
        except AssignorError:
            continue
        compact = group.after(given, generation=9)
        plain = group_from_json(group_to_json(compact))
        for second in BUILT_IN:
            answers = []
            for same in (compact, plain):
                try:
                    answer = load_assignor(parse_strategy(second)).assign(same)
                    answers.append(assignment_to_json(answer, same))
                except AssignorError as error:
                    answers.append({"error": {str(error): []}})
            assert answers[0] == answers[1], f"{first}, then {second}, seed {seed}"
            compared += 1
    assert compared > 300

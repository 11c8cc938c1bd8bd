"""Run `rebalance-lab live --assignor`: our members, led by any assignor, in a real group until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rebalance_lab.api.terminal import BadInput, aside, console
from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.assignors.strategies import Strategy, load_named, parse_strategy

if TYPE_CHECKING:
    from rebalance_lab.harness.kafka.wire.members.live_members import Change, GroupPlan


def live_assignor_command(
    assignor: str,
    *,
    bootstrap: str,
    topics: str,
    group: str,
    members: int = 1,
    seconds: float | None = None,
    timeout_s: float = 10.0,
    as_json: bool = False,
) -> None:
    """Run members of `assignor`: a strategy such as classic/sticky or consumer/uniform, or package.module:Class.

    `topics`: names, with commas between. `seconds`: leave after so long, without Ctrl-C.
    """
    from rebalance_lab.harness.kafka.wire.addresses import WireError
    from rebalance_lab.harness.kafka.wire.members.live_members import GroupPlan

    plan = GroupPlan(
        bootstrap=bootstrap,
        group=group,
        topics=[name.strip() for name in topics.split(",") if name.strip()],
        strategy=strategy_of(assignor),
        members=members,
        timeout_s=timeout_s,
    )
    if not plan.topics:
        raise BadInput("--topics: name at least one")
    if members < 1:
        raise BadInput(f"--members: at least 1, got {members}")
    try:
        asyncio.run(until_stopped(plan, shown_as(as_json), seconds))
    except WireError as error:
        raise BadInput(str(error)) from None


def strategy_of(text: str) -> Strategy:
    """Load the assignor once here, so that a class that cannot be had is reported before any member joins."""
    name = f"classic/{text}" if ":" in text and "/" not in text else text
    strategy = parse_strategy(name, "--assignor")
    if strategy.protocol == "consumer" and strategy.is_custom:
        raise ContractError("--assignor", "the broker assigns in consumer groups: a custom assignor needs classic")
    from rebalance_lab.harness.evaluate.call_timeout import time_limit

    with aside(), time_limit([strategy], "--assignor", "cannot be loaded: it is not done"):
        load_named(strategy, "--assignor")
    return strategy


async def until_stopped(plan: GroupPlan, tell: Callable[[Change], None], seconds: float | None) -> None:
    from rebalance_lab.harness.kafka.wire.members.live_members import run_members

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    print(f"{plan.members} of ours join {plan.group} with {plan.strategy}; Ctrl-C leaves", file=sys.stderr)
    for consumer in await run_members(plan, tell, stop):
        print(f"{consumer.name}: {consumer.records:,} records read, {consumer.commits:,} commits", file=sys.stderr)


def shown_as(as_json: bool) -> Callable[[Change], None]:
    def in_json(change: Change) -> None:
        import json

        owned = sorted(change.owned)
        print(json.dumps({"member": change.member, "callback": change.callback, "owned": owned}), flush=True)

    def in_words(change: Change) -> None:
        from rebalance_lab.harness.conversation.message_text import partitions_shown

        owned = partitions_shown(change.owned) or "nothing"
        console().print(f"{change.member}  {change.callback}  owns {owned}", soft_wrap=True)

    return in_json if as_json else in_words

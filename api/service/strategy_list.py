"""List the strategies that a client can name over HTTP, for people and programs that choose among them."""

from __future__ import annotations

from typing import Any

from rebalance_lab.assignors.strategies import BUILT_IN, SHORT

WHAT = {
    "classic/range": ("eager", "a contiguous block of each topic a member; co-partitioned topics stay together"),
    "classic/roundrobin": ("eager", "all partitions dealt in a circle; every rebalance deals anew"),
    "classic/sticky": ("eager", "balance first, then members keep what they owned"),
    "classic/cooperative-sticky": ("cooperative", "sticky, and what changes hands is given up first: two rebalances"),
    "classic/load-aware": ("cooperative", "the lab's own: even load for the capacity there is, few moves"),
    "consumer/range": ("incremental", "range, computed by the broker (KIP-848)"),
    "consumer/uniform": ("incremental", "balance and few moves, computed by the broker (KIP-848)"),
}


def strategy_infos() -> list[dict[str, Any]]:
    short = {full: name for name, full in SHORT.items()}
    return [
        {
            "name": name,
            "protocol": name.split("/")[0],
            "assignor": name.split("/")[1],
            "short": short.get(name),
            "rebalance": WHAT[name][0],
            "what": WHAT[name][1],
        }
        for name in BUILT_IN
    ]

"""Do what Java's sticky assignors do when a member keeps a claim on a partition that does not exist.

Java finds free partitions by walking two sorted lists, all partitions and the kept ones, with one pointer. A kept
partition that does not exist stops the pointer for good. From there on even kept partitions count as free, and are
given away a second time. Such claims reach a leader when a topic was deleted and created again with fewer partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalance_lab.assignors.classic.sticky.claims import Claims


def free_beside_nonexistent(claims: Claims, kept: Mapping[str, Sequence[int]], nonexistent: Sequence[int]) -> list[int]:
    layout = claims.layout
    topic, partition = min(map(claims.place_of, nonexistent))
    stop = layout.starts[topic] + (layout.counts[topic] if partition > 0 else 0)
    seen = {number for share in kept.values() for number in share if number < stop}
    return [number for number in claims.everything if number not in seen]

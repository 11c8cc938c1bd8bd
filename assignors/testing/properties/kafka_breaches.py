"""List what Kafka's own assignors are known to break, because the lab's copies of them break it too.

This table excuses only the built-in copies. Kafka's classes from a jar, or another client's, are held to everything,
so the faults below show on their report cards.
"""

from __future__ import annotations

from collections.abc import Mapping

_STICKY = {
    "order-independent": "Java walks members in the order of a hash map, and ties go to whoever comes first",
    "* with claims-beyond": "a claim on a partition that does not exist is accepted, and given back",
    "* with no-topics": "a member without topics, if met first, counts as subscribed like the others",
    "* with duplicate-topics": "a topic named twice counts as two in the test for equal subscriptions",
    "* with stale-claims and unsubscribed-claims": "a partition may go back to an old owner that has left its topic",
    "sticky with racks": "an owned partition whose rack does not match is taken away, and may come back another way",
    "settles with racks": "with different subscriptions the two may alternate for ever",
}
_COOPERATIVE = {
    "cooperative with conflicting-claims and stale-claims": "an old claim that meets a newer one may cancel both",
    "cooperative-rounds with racks": "what racks move is withheld again in every round",
    "churn with racks": "likewise",
    "survives-churn with racks": "likewise",
}
KNOWN: Mapping[str, Mapping[str, str]] = {
    "classic/sticky": _STICKY,
    "classic/cooperative-sticky": _STICKY | _COOPERATIVE,
    "consumer/uniform": {
        "order-independent": "the broker walks members in the order of a hash map",
        "* with claims-beyond": "a target assignment names existing partitions only",
        "* with conflicting-claims": "a target assignment gives a partition to one member only",
    },
}
"""Per built-in strategy, as a class would say it in `waives` (../sampling/group_shapes.py)."""

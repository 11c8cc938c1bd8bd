"""Fingerprint a group before an assignor gets it, to find out afterwards whether the assignor changed it."""

from __future__ import annotations

import marshal

from rebalance_lab.assignors.model import Group


def fingerprint(group: Group) -> object:
    """Return all that an assignor could change, order included. Topics cannot be changed without being replaced."""
    return (
        list(group.topics.items()),
        list(group.members),
        [(m.topics, m.generation, m.rack, m.capacity) for m in group.members.values()],
        claims(group),
    )


def claims(group: Group) -> object:
    """Return all of it that is not frozen, member by member; as bytes, where lists and numbers are all there is."""
    owned = [m.owned or None for m in group.members.values()]
    try:
        return marshal.dumps(owned, 2)
    except ValueError:
        return [mine and [(name, *held) for name, held in mine.items()] for mine in owned]

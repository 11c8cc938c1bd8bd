"""The best that a group allows, as values: what quality.py compares an assignment with. optimal.py computes it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.assignors.model import Assignment


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best balance, the fewest moves and the most rack matches of one group."""

    counts: tuple[int, ...]
    """Per member, in the group's order."""
    moves: int
    """Partitions whose previous owner is still a member and does not get them back; a lower bound unless exact."""
    rack_matches: int | None
    """None when no member or no partition has a rack; an upper bound unless exact."""
    exact: bool
    assignment: Assignment | None
    """A witness of all three; None where they are only bounds."""

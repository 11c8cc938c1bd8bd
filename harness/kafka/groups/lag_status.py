"""Judge a partition's consumer as Burrow does: by a window of looks at what is committed and what is written.

working  no record waits, or none waited at some look of the window, or offsets move and the lag shrinks at times
rewound  a look of the window found a lower offset than the look before: the group was reset, or reads records again
behind   offsets move, and the lag grows from each commit of the window to the next
stalled  a member owns the partition, records wait through the whole window, and its offset does not move
stopped  no member owns the partition, records wait, and the last commit is longer ago than the window's commits span
unknown  records wait, and the window is too short to judge: one look, one commit, or less than the time between commits

A commit is seen when an offset has moved since the look before. So a commit of an unchanged offset is not seen. A
commit that reaches the end of the look before counts as lag 0, because later records may be younger than the commit.

Reference  https://github.com/linkedin/Burrow/wiki/Consumer-Lag-Evaluation-Rules
Start at   lag_status
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

STATUSES = ("working", "behind", "rewound", "stalled", "stopped", "unknown")
SHORTEST_WINDOW_S = 5.0
"""auto.commit.interval.ms by default: a shorter window says nothing of a consumer that did not commit in it."""


@dataclass(frozen=True, slots=True)
class Offsets:
    begin: int
    end: int
    committed: int | None

    @property
    def position(self) -> int:
        """A consumer that has not committed begins with the oldest record there is."""
        return self.begin if self.committed is None else self.committed

    @property
    def lag(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class Look:
    at_s: float
    offsets: Offsets


def lag_status(window: Sequence[Look], *, owned: bool, commits_apart_s: float = 0.0) -> str:
    """Judge a partition by a window of looks, oldest first. `commits_apart_s` is the group's time between commits."""
    looks = [look.offsets for look in window]
    if looks[-1].lag == 0:
        return "working"
    if any(is_rewound(before, after) for before, after in pairwise(looks)):
        return "rewound"
    if any(one.lag == 0 for one in looks) or any(caught_up(before, after) for before, after in pairwise(looks)):
        return "working"
    moves = moves_of(window)
    if not moves:
        span_s = window[-1].at_s - window[0].at_s
        if len(window) < 2 or span_s < max(SHORTEST_WINDOW_S, commits_apart_s):
            return "unknown"
        return "stalled" if owned else "stopped"
    if not owned and has_ended(window, moves[-1]):
        return "stopped"
    if len(moves) == 1 and looks[-1].lag > looks[0].lag:
        return "unknown"
    return "behind" if lag_grows(looks, moves) else "working"


def is_rewound(before: Offsets, after: Offsets) -> bool:
    """Tell whether the offset went back, or is gone. It does not go back where only old records were deleted."""
    return before.committed is not None and (after.committed is None or after.committed < before.committed)


def caught_up(before: Offsets, after: Offsets) -> bool:
    """Tell whether the consumer has committed all that was written at the look before."""
    return after.committed != before.committed and after.position >= before.end


def moves_of(window: Sequence[Look]) -> list[int]:
    """Return the looks that saw a commit."""
    looks = [look.offsets.committed for look in window]
    return [number for number in range(1, len(looks)) if looks[number] != looks[number - 1]]


def has_ended(window: Sequence[Look], last: int) -> bool:
    """Tell whether the last commit is longer ago than the window's commits span, as Burrow does."""
    silent_s, span_s = window[-1].at_s - window[last].at_s, window[last].at_s - window[0].at_s
    return silent_s > max(span_s, SHORTEST_WINDOW_S)


def lag_grows(looks: Sequence[Offsets], moves: Sequence[int]) -> bool:
    """Tell whether the lag has surely grown over the window, and shrank between no two commits. The lag at a commit
    lies between what was written by the look before and by the look that saw it.
    """
    least = [max(0, looks[number - 1].end - looks[number].position) for number in moves]
    most = [looks[number].lag for number in moves]
    never_shrinks = all(later >= earlier for earlier, later in zip(least, most[1:], strict=False))
    return never_shrinks and least[-1] > most[0]


def commits_apart(windows: Iterable[Sequence[Look]]) -> float:
    """Return the longest time between two commits of a partition that were seen, in seconds; 0 where none were."""
    return max(
        (
            window[after].at_s - window[before].at_s
            for window in windows
            for before, after in pairwise(moves_of(window))
        ),
        default=0.0,
    )

"""Judge a partition's consumer as Burrow does: by what was committed between two samples.

working  all records are read, or more was committed and the lag does not grow
behind   more was committed, and the lag grows all the same
stalled  a member owns it, records wait, and nothing was committed
stopped  no member owns it
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Offsets:
    begin: int
    end: int
    committed: int | None

    @property
    def lag(self) -> int:
        return max(0, self.end - (self.begin if self.committed is None else self.committed))


def lag_status(before: Offsets, now: Offsets, *, owned: bool) -> str:
    """Judge a partition by two samples apart in time. With one sample twice, a partition with a lag looks stalled."""
    if not owned:
        return "stopped"
    if now.lag == 0:
        return "working"
    if now.committed == before.committed:
        return "stalled"
    return "behind" if now.lag > before.lag else "working"

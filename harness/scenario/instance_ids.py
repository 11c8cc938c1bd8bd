"""Find a member's group.instance.id: its own, or the one that a +static strategy gives it.

Start at   InstanceIds.of
"""

from __future__ import annotations

from rebalance_lab.harness.scenario.model import MemberSpec, Scenario


class InstanceIds:
    def __init__(self, scenario: Scenario) -> None:
        self._own = {one.instance_id for one in scenario.members}
        self._names = {one.name for one in scenario.members}

    def of(self, spec: MemberSpec, name: str, *, static: bool) -> str | None:
        """Return a member's instance id. A strategy gives a member its name, or one like it where the name is another's
        own id. Two members with the same id would fence each other.
        """
        if spec.instance_id is not None or not static:
            return spec.instance_id
        like, number = name, 0
        while like in self._own or (number and like in self._names):
            number += 1
            like = f"{name}~{number}"
        return like

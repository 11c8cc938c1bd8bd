"""Ask an assignor in any language: a command that reads {"group": ...} and writes {"assignment": ...}, as `assign`
does.

The command is started anew for each question, so each question costs a start. Ask for fewer examples.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError, group_to_json
from rebalance_lab.assignors.model import Group


class CommandAssignor:
    limit_memory = False
    call_limit_s = 10.0

    def __init__(self, text: str) -> None:
        self.text = text
        self.command = shlex.split(text)
        if not self.command or shutil.which(self.command[0]) is None:
            raise ContractError("assignor", f"{text!r}: there is no such command")
        self.name = text

    def fresh(self) -> CommandAssignor:
        return CommandAssignor(self.text)

    def assign(self, group: Group) -> Any:
        request = json.dumps({"group": group_to_json(group)})
        done = subprocess.run(
            self.command, input=request.encode(), capture_output=True, check=False, timeout=self.call_limit_s + 1
        )
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"exit code {done.returncode}: {''.join(last)}")
        answer = json.loads(done.stdout)
        if isinstance(answer, dict) and "assignment" in answer:
            return answer["assignment"]
        raise ValueError(f'expected {{"assignment": ...}} on standard output, got {done.stdout[:80]!r}')

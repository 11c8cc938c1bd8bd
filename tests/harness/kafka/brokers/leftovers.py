"""What a cluster of this very test process may have left on the machine.

Others may run clusters here at the same time, and so may other tests of this process, so only what carries our process
id or run id counts. A run id is the name of the run folder, which begins with its owner's process id, and a broker's
and a keeper's command line name the run folder.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path


def folders(kind: str, owner: int | None = None) -> list[str]:
    return _folders(f"{_owned(kind, owner)}*")


def processes(kind: str, owner: int | None = None) -> list[str]:
    return _processes(_owned(kind, owner))


def of_run(run_id: str) -> list[str]:
    return _processes(run_id) + _folders(run_id)


def _owned(kind: str, owner: int | None) -> str:
    return f"rebalance-lab-{kind}-{owner or os.getpid()}-"


def _folders(name: str) -> list[str]:
    return sorted(map(str, Path(tempfile.gettempdir()).glob(name)))


def _processes(mark: str) -> list[str]:
    """Command lines (-ww: in full, since a class path is long), shortened; a zombie is nobody."""
    listed = subprocess.run(["ps", "-ww", "-eo", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return [line[:120] for line in listed.splitlines() if mark in line and not line.startswith("Z")]


def containers_and_networks(run_id: str) -> list[str]:
    import docker

    from rebalance_lab.harness.kafka.brokers.providers.containers import LABEL

    client = docker.from_env()
    ours = {"label": f"{LABEL}={run_id}"}
    found = [each.name for each in client.containers.list(all=True, filters=ours, ignore_removed=True)]
    found += [each.name for each in client.networks.list(filters=ours)]
    client.close()
    return found

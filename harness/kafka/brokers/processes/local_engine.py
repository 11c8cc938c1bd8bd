"""Start a Docker engine where none answers: for tests on a machine that has dockerd but runs none (root, Linux).

Given      dockerd (Debian: docker.io), unshare and root
Returns    an engine under a short temp folder, reached by DOCKER_HOST, with no bridge, iptables rule or forwarding
Invariant  dockerd is the first process of its own process namespace and mounts in its own mount namespace. When it
           ends, or its owner is killed (owned_process.py), the kernel takes every container and mount with it
Start at   local_engine; as a module (`python -m ...local_engine -- COMMAND`) it runs COMMAND with such an engine

The network namespace stays the host's, so what uses the engine may run outside. Ports reach containers through the
userland proxy, which needs no iptables; containers need a network of their own, since there is no default bridge.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.processes.owned_process import KeptProcess, RunFolder
from rebalance_lab.harness.kafka.brokers.providers import containers

if TYPE_CHECKING:
    from collections.abc import Iterator

READY_WITHIN_S = 30.0
STOP_WITHIN_S = 15.0
ASK_AGAIN_S = 0.1


def missing() -> str | None:
    """Return why no engine of our own can be started here, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "an engine of our own needs root on Linux"
    for tool in ("dockerd", "unshare"):
        if shutil.which(tool, path=_path()) is None:
            return f"{tool} is not installed (Debian: apt-get install docker.io)"
    return None


@contextmanager
def local_engine() -> Iterator[str]:
    """Use the engine that answers already, or one of our own for as long as this lasts; yield its DOCKER_HOST.

    The environment is changed, so that everything in this process and its children finds the engine.
    """
    try:
        client = containers.connect()
    except BrokerError:
        if reason := missing():
            raise BrokerError(f"no Docker engine answers, and {reason}") from None
    else:
        yield str(client.api.base_url)
        client.close()
        return
    folder = RunFolder("docker")
    host = f"unix://{folder.path}/docker.sock"
    with _environment(
        DOCKER_HOST=host,
        # In a container (CI often is one), testcontainers would guess a gateway's address: this engine is right here.
        TESTCONTAINERS_HOST_OVERRIDE="127.0.0.1",
    ):
        process = KeptProcess(_command(folder.path, host), folder=folder.path, log=folder.path / "dockerd.log")
        try:
            _wait_until_it_answers(process)
            yield host
            _remove_networks()
            _stop(process)
        finally:
            process.kill()
            folder.remove()


def _command(folder: Path, host: str) -> list[str]:
    settings = folder / "daemon.json"
    settings.write_text(json.dumps({"deprecated-key-path": f"{folder}/key.json"}))
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    own = [f"--config-file={settings}", f"--data-root={folder}/data", f"--exec-root={folder}/exec"]
    own += [f"--pidfile={folder}/docker.pid", f"--host={host}"]
    network = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"]
    return ["env", f"PATH={_path()}", *namespaces, "dockerd", *own, *network]


def _path() -> str:
    """Add to a plain user's PATH, which often lacks the folder where dockerd and its proxy are."""
    return os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def _wait_until_it_answers(process: KeptProcess) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            containers.connect().close()
        except BrokerError as error:
            if not process.alive:
                raise BrokerError(f"dockerd ended: {process.last_words()}") from error
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"dockerd did not answer in {READY_WITHIN_S:.0f} s: {process.last_words()}"
                ) from error
            time.sleep(ASK_AGAIN_S)
        else:
            return


def _remove_networks() -> None:
    """Remove networks while the engine runs: a network's bridge is the one thing that lives in the host's namespace."""
    client = containers.connect()
    for container in client.containers.list(all=True, ignore_removed=True):
        container.remove(force=True, v=True)
    client.networks.prune()
    client.close()


def _stop(process: KeptProcess) -> None:
    """Stop in good order, so that no process writes to the folder while it is removed; unshare's only child is
    dockerd.
    """
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    process.wait(STOP_WITHIN_S)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main(arguments: list[str] | None = None) -> int:
    command = sys.argv[1:] if arguments is None else arguments
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        print(
            "usage: python -m rebalance_lab.harness.kafka.brokers.processes.local_engine -- COMMAND...", file=sys.stderr
        )
        return 2
    try:
        with local_engine():
            return subprocess.run(command).returncode
    except (BrokerError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""Remove the containers and the network of one run when its owner is done or gone.

The `testcontainers` provider starts this module as a process of its own, with the id of the run as argument. Its
standard input is a pipe that only the owner holds. The pipe ends when the owner closes its cluster, or when the kernel
closes it after a kill -9. In both cases this process cleans up.
"""

import os
import shutil
import subprocess
import sys

import docker
import requests

from rebalance_lab.harness.kafka.brokers.providers.containers import LABEL, bridge_name


def main() -> int:
    (run_id,) = sys.argv[1:]
    os.read(0, 1)
    try:
        remove(docker.from_env(), run_id)
    except (docker.errors.DockerException, requests.RequestException):
        # The engine has died as well, and its containers with it: local_engine.py's does so with the same owner. Of a
        # network, the kernel then keeps the bridge.
        remove_bridge(run_id)
    return 0


def remove(client: docker.DockerClient, run_id: str) -> None:
    ours = {"label": f"{LABEL}={run_id}"}
    for container in client.containers.list(all=True, filters=ours, ignore_removed=True):
        container.remove(force=True, v=True)
    for network in client.networks.list(filters=ours):
        network.remove()


def remove_bridge(run_id: str) -> None:
    if ip := shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin"):
        subprocess.run([ip, "link", "delete", bridge_name(run_id)], stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())

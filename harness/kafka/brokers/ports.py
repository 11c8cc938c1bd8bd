"""Find ports on 127.0.0.1 that are free now and will still be free when a node comes back after a fault.

The kernel hands out ports from its ephemeral range to every outgoing connection. A port from there may be gone
once its node has been down for a while. These are taken from below that range.
"""

import random
import socket

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError

LOWEST, HIGHEST = 15_000, 32_000
HOST = "127.0.0.1"


def client_ports(nodes: int, asked: int | None) -> list[int]:
    """Return one port for each node: from `asked` upwards, or any."""
    if asked is None:
        return free_ports(nodes)
    if not 1 <= asked <= 65_535 - nodes + 1:
        raise BrokerError(f"port {asked} is out of range: it must be between 1 and {65_535 - nodes + 1}")
    wanted = list(range(asked, asked + nodes))
    for port in wanted:
        if problem := _cannot_bind(port):
            raise BrokerError(f"port {port} on {HOST} cannot be used: {problem}")
    return wanted


def free_ports(count: int) -> list[int]:
    # Not the seeded generator of a simulation: two runs of one seed side by side must not meet on a port.
    choice = random.SystemRandom()
    found: list[int] = []
    for _ in range(1_000):
        if len(found) == count:
            return found
        port = choice.randint(LOWEST, HIGHEST)
        if port not in found and _cannot_bind(port) is None:
            found.append(port)
    raise BrokerError(f"found no {count} free ports between {LOWEST} and {HIGHEST} on {HOST}")


def _cannot_bind(port: int) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As Java does it: old connections that linger in TIME_WAIT do not make a port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return None

"""Ask one node one question over a plain socket: the readiness of every provider rests on these answers.

A client library asks whichever node it likes and retries by itself. This module asks each node directly, so that an
answer proves that this very node runs, and the answer is what this node knows.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ANSWER_WITHIN_S = 2.0
"""A paused node accepts connections and says nothing: give up soon and ask again."""

ASK_AGAIN_S = 0.1

READY_WITHIN_S = 120.0
"""Ten times what three nodes take on an idle machine: only something that will never be ready should meet it."""

LARGEST_ANSWER = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    nodes: dict[int, str]
    """Node id to advertised `host:port`, of those that the controller holds to be alive."""
    racks: dict[int, str | None]
    behind: tuple[str, ...]
    """Partitions without a leader or with a replica out of sync, as `topic-partition`."""


def metadata(address: str, timeout_s: float = ANSWER_WITHIN_S) -> Metadata:
    from kio.schema.metadata.v9 import MetadataRequest, MetadataResponse

    request = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    answer = _ask(address, request, MetadataResponse, timeout_s)
    behind = tuple(
        f"{topic.name}-{partition.partition_index}"
        for topic in answer.topics
        for partition in topic.partitions
        if partition.leader_id < 0 or set(partition.isr_nodes) != set(partition.replica_nodes)
    )
    return Metadata(
        nodes={broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers},
        racks={broker.node_id: broker.rack for broker in answer.brokers},
        behind=behind,
    )


def find_coordinator(address: str, group: str) -> int | None:
    """Return None while no node coordinates the group: the offsets topic is being created, or its leader moves."""
    from kio.schema.errors import ErrorCode
    from kio.schema.find_coordinator.v3 import FindCoordinatorRequest, FindCoordinatorResponse

    answer = _ask(address, FindCoordinatorRequest(key=group), FindCoordinatorResponse, ANSWER_WITHIN_S)
    return int(answer.node_id) if answer.error_code is ErrorCode.none else None


def wait_for_nodes(addresses: dict[int, str], timeout_s: float, *, alive: Callable[[], None], in_sync: bool) -> None:
    """Wait until each of these nodes says that exactly these nodes are there; `alive` may raise to end the wait early.

    `in_sync` also asks for every partition to be back in full ISR, which cannot come while a node is down.
    """
    deadline = time.monotonic() + timeout_s
    waiting = dict(addresses)
    while waiting:
        alive()
        node, address = next(iter(waiting.items()))
        problem = _not_ready(node, address, set(addresses), in_sync)
        if problem is None:
            del waiting[node]
        elif time.monotonic() > deadline:
            raise BrokerError(f"the cluster was not ready after {timeout_s:.0f} s: {problem}")
        else:
            time.sleep(ASK_AGAIN_S)


def _not_ready(node: int, address: str, expected: set[int], in_sync: bool) -> str | None:
    try:
        seen = metadata(address)
    except OSError as error:
        return f"node {node} at {address} does not answer ({error})"
    if set(seen.nodes) != expected:
        return f"node {node} sees nodes {sorted(seen.nodes)}, not {sorted(expected)}"
    if in_sync and seen.behind:
        return f"replicas are behind in {', '.join(seen.behind[:3])}"
    return None


def wait_for_coordinator(group: str, addresses: Iterable[str], among: set[int], timeout_s: float) -> int:
    """Wait until some node names a coordinator that is `among` those running: just after a fault, nodes name the old
    one.
    """
    deadline = time.monotonic() + timeout_s
    asked = tuple(addresses)
    while True:
        for address in asked:
            try:
                node = find_coordinator(address, group)
            except OSError:
                continue  # this node is down or paused; another one knows
            if node is not None and node in among:
                return node
        if time.monotonic() > deadline:
            raise BrokerError(f"no running node coordinates group {group!r} after {timeout_s:.0f} s")
        time.sleep(ASK_AGAIN_S)


def _ask(address: str, request: Any, answer_type: Any, timeout_s: float) -> Any:
    """Send one request on one connection. Whatever goes wrong on the way is an OSError."""
    from kio.serial import entity_writer
    from kio.static.primitive import i32

    from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame
    from rebalance_lab.harness.kafka.wire.frame_reader import read_answer

    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(1),
        client_id="rebalance-lab",
    )
    out = BytesIO()
    entity_writer(header_type)(out, header)
    entity_writer(type(request))(out, request)

    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", out.tell()) + out.getvalue())
        (size,) = struct.unpack(">i", _receive(connection, 4))
        if not 0 <= size <= LARGEST_ANSWER:  # the first letters of some other protocol
            raise OSError(f"{address} does not speak Kafka")
        answer = _receive(connection, size)
    try:
        return read_answer(answer, answer_type)
    except MalformedFrame as error:
        raise OSError(f"{address} does not speak Kafka: {error}") from error


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionResetError("the connection was closed before the answer came")
        received += chunk
    return bytes(received)

"""Be the side that is attacked over sockets, in a process of its own: the served coordinator, or our clients.

server     prints its port, serves until its input is closed, then prints its figures
clients    send requests to the hostile broker, each of which is answered or ends in WireError in time
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from random import Random
from typing import Any

from kio.index import load_request_schema

from rebalance_lab.harness.kafka.wire.addresses import WireError
from rebalance_lab.harness.kafka.wire.broker_connection import Connection, connect
from rebalance_lab.harness.kafka.wire.codec import APIS, TopicIds, from_wire
from rebalance_lab.harness.kafka.wire.entities import build
from rebalance_lab.harness.kafka.wire.served.server import serve, served_versions
from tests.harness.kafka.wire.fuzzing.decoding import TOPICS, describe
from tests.harness.kafka.wire.fuzzing.watched_child import memory_mb

HOST = "127.0.0.1"
ANSWER_WITHIN_S = 5.0
CLIENTS = 4
TOO_LATE = "did not answer"


async def run_server() -> dict[str, Any]:
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(describe(context)))
    server = await serve(TOPICS)
    print(server.address[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.close()
    failures += map(repr, server.failures)
    return {"failures": failures, "memory_mb": round(memory_mb())}


async def run_clients(port: int, requests: int, seed: int) -> dict[str, Any]:
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(describe(context)))
    random, left, readable, slowest_s = Random(seed), requests, 0, 0.0
    versions = [(key, version) for key, (low, high) in served_versions().items() for version in range(low, high + 1)]
    topics = TopicIds()

    async def ask_on() -> None:
        nonlocal left, readable, slowest_s
        connection: Connection | None = None
        while left > 0:
            left -= 1
            if connection is None or not connection.open:
                connection = await connect((HOST, port), "fuzz")
            began = time.monotonic()
            key, version = random.choice(versions)
            try:
                answer = await connection.call(build(load_request_schema(key, version), {}), ANSWER_WITHIN_S)
                if key in APIS:
                    from_wire(APIS[key][1], answer, topics)
                readable += 1
            except WireError as error:
                if TOO_LATE in str(error) or "\n" in str(error):
                    failures.append(str(error))
            slowest_s = max(slowest_s, time.monotonic() - began)
        if connection is not None:
            await connection.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(ask_on())
    return {
        "readable": readable, "slowest_ms": round(slowest_s * 1000), "failures": failures,
        "memory_mb": round(memory_mb()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=("server", "clients"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.side == "server":
        work = run_server()
    else:
        work = run_clients(arguments.port, arguments.requests, arguments.seed)
    print(json.dumps(asyncio.run(work)), flush=True)


if __name__ == "__main__":
    main()

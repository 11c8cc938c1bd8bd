"""Connect to a broker: requests go out, answers are matched by correlation id, any number may be in flight.

Given      an address, a client id; kio's request entities
Returns    kio's response entities; WireError in one line where there is no broker, none that answers in time, or one
           whose answer cannot be read
Order      a broker handles one request of a connection at a time, so a parked JoinGroup holds up what comes behind it.
           A request that must not wait takes another connection
Start at   connect, Connection.call
"""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress
from itertools import count
from typing import Any

from kio.index import load_response_schema
from kio.serial import entity_writer
from kio.static.protocol import RequestPayload

from rebalance_lab.harness.kafka.wire.addresses import Address, WireError, check
from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame
from rebalance_lab.harness.kafka.wire.frame_reader import read_answer

MAX_FRAME = 64 * 1024 * 1024
CONNECT_TIMEOUT_S = 5.0
SHUT_TIMEOUT_S = 1.0


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str, peer: str) -> None:
        self.reader, self.writer = reader, writer
        self.client_id, self.peer = client_id, peer
        self.numbers = count(1)
        self.waiting: dict[int, tuple[type[Any], asyncio.Future[Any]]] = {}
        self.listening = asyncio.create_task(self.listen())

    @property
    def open(self) -> bool:
        return not self.listening.done()

    async def call(self, request: RequestPayload, timeout_s: float | None = None) -> Any:
        """Send a request and return the answer; without a timeout, wait as long as the connection lives."""
        answer = self.send(request)
        try:
            return await asyncio.wait_for(asyncio.shield(answer), timeout_s)
        except TimeoutError:
            raise WireError(f"{self.peer} did not answer {type(request).__name__} within {timeout_s:g} s") from None

    def send(self, request: RequestPayload, client_id: str | None = None) -> asyncio.Future[Any]:
        """Send a request; `client_id` is of this request, where one connection speaks for several clients."""
        number = next(self.numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        # A caller that has given up is told nothing, and asyncio need not complain about it.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        if not self.open:
            answer.set_exception(WireError(f"the connection to {self.peer} is closed"))
            return answer
        self.waiting[number] = (load_response_schema(request.__api_key__, request.__version__), answer)
        self.writer.write(framed(encode_request(request, number, client_id or self.client_id)))
        return answer

    async def listen(self) -> None:
        reason = f"{self.peer} closed the connection"
        try:
            while True:
                self.answer(await read_frame(self.reader))
        except (OSError, asyncio.IncompleteReadError):
            pass
        except MalformedFrame as error:
            reason = f"{self.peer} sent what cannot be read: {error}"
        finally:
            self.writer.close()
            for _, answer in self.waiting.values():
                if not answer.done():
                    answer.set_exception(WireError(reason))
            self.waiting.clear()

    def answer(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], signed=True)
        if number not in self.waiting:
            raise MalformedFrame(f"an answer to request {number}, which was not sent")
        schema, answer = self.waiting[number]
        entity = read_answer(frame, schema)  # may raise: then `listen` tells everyone who waits, this one included
        del self.waiting[number]
        if not answer.done():
            answer.set_result(entity)

    async def close(self) -> None:
        self.listening.cancel()
        with suppress(asyncio.CancelledError):
            await self.listening
        with suppress(OSError, TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), SHUT_TIMEOUT_S)


async def connect(address: Address, client_id: str, timeout_s: float = CONNECT_TIMEOUT_S) -> Connection:
    host, port = check(address)
    if not 0 < port < 65_536:
        raise WireError(f"cannot connect to {host}:{port}: there is no such port")
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), timeout_s)
    except TimeoutError:
        raise WireError(f"no connection to {host}:{port} within {timeout_s:g} s") from None
    except OSError as error:
        raise WireError(f"cannot connect to {host}:{port}: {error.strerror or error}") from None
    return Connection(reader, writer, client_id, f"{host}:{port}")


def encode_request(request: RequestPayload, number: int, client_id: str) -> bytes:
    kind = type(request)
    header: Any = {
        "request_api_key": kind.__api_key__,
        "request_api_version": kind.__version__,
        "correlation_id": number,
        "client_id": client_id,
    }
    return encoded(kind.__header_schema__(**header)) + encoded(request)


class BoundedBuffer(io.BytesIO):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > self.limit:
            raise MalformedFrame(f"an answer of more than {self.limit} bytes")
        return super().write(data)


def encoded(entity: Any, limit: int | None = None) -> bytes:
    with io.BytesIO() if limit is None else BoundedBuffer(limit) as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


async def read_frame(reader: asyncio.StreamReader, limit: int = MAX_FRAME) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), signed=True)
    if not 0 <= size <= limit:
        raise MalformedFrame(f"a frame of {size} bytes; {limit} are allowed")
    return await reader.readexactly(size)

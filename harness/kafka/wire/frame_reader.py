"""Read a frame that a peer sent: it is checked against its schema, and kio reads what has passed.

Given      the bytes of a request or of an answer, and kio's class of its body
Returns    kio's entities
Errors     MalformedFrame in one line, whatever is wrong: a server then drops the connection, a client raises WireError
Start at   read_request, read_answer
"""

from __future__ import annotations

from typing import Any

from kio.serial import entity_reader
from kio.serial.errors import SerialError

from rebalance_lab.harness.kafka.wire.frame_check import MalformedFrame, check_frame

MAX_REQUEST_ELEMENTS = 20_000
"""Of all arrays of a request together. More would keep a server from its other clients."""
MAX_ANSWER_ELEMENTS = 1_000_000
"""Of all arrays of an answer together: the metadata of 100,000 partitions."""


def read_request(frame: bytes, schema: Any) -> tuple[Any, Any]:
    """Return the header and the body."""
    return read_entities(frame, schema, MAX_REQUEST_ELEMENTS)


def read_answer(frame: bytes, schema: Any) -> Any:
    """Return the body."""
    return read_entities(frame, schema, MAX_ANSWER_ELEMENTS)[1]


def read_entities(frame: bytes, schema: Any, max_elements: int) -> tuple[Any, Any]:
    checked = check_frame(frame, (schema.__header_schema__, schema), max_elements)
    try:
        header, size = entity_reader(schema.__header_schema__)(checked, 0)
        body, _ = entity_reader(schema)(checked, size)
    except (SerialError, ValueError, OverflowError) as error:
        raise MalformedFrame(f"{schema.__name__} v{schema.__version__}: {error}") from None
    return header, body

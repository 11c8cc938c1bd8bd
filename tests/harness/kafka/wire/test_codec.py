"""Every message in every version: through kio's bytes and back, nothing is lost that the version has."""

from __future__ import annotations

import io
import uuid
from dataclasses import fields, is_dataclass
from random import Random
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from rebalance_lab.harness.conversation.message_json import HEADER, on_wire
from rebalance_lab.harness.kafka.wire.codec import APIS, TopicIds, from_wire, to_wire
from rebalance_lab.protocol_v1.common.errors import Error
from rebalance_lab.protocol_v1.common.messages import (
    JoinGroupResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    Request,
)

ROWS = [
    pytest.param(kind, version, id=f"{kind.__name__} v{version}")
    for request, response in APIS.values()
    for version in request.versions
    for kind in (request, response)
]
EXAMPLES = 20


@pytest.mark.parametrize(("kind", "version"), ROWS)
def test_a_message_survives_the_wire(kind, version):
    random, topics = Random(f"{kind.__name__} {version}"), TopicIds()
    topics.add("orders", uuid.uuid4())
    for _ in range(EXAMPLES):
        message = random_message(kind, version, random)
        entity = to_wire(message, version, topics)
        assert type(entity) is schema_of(kind, version)
        assert from_wire(kind, through_bytes(entity), topics) == message


@pytest.mark.parametrize(("kind", "version"), ROWS)
def test_every_field_of_a_version_is_ours_too(kind, version):
    """What kio knows of and we do not would be sent with a default, and nobody would notice."""
    assert len(fields(schema_of(kind, version))) == len(fields_of(kind, version))


def test_null_is_the_empty_text_where_a_version_has_no_null():
    entity = to_wire(JoinGroupResponse(protocol_name=None), 6, TopicIds())
    assert from_wire(JoinGroupResponse, through_bytes(entity), TopicIds()).protocol_name == ""


def test_a_topic_that_the_cluster_does_not_have_keeps_its_name():
    topics = TopicIds()
    asked = OffsetFetchRequestTopic(name="nowhere", partition_indexes=(0,))
    request = OffsetFetchRequest(version=10, groups=(OffsetFetchRequestGroup(group_id="g", topics=(asked,)),))
    assert from_wire(OffsetFetchRequest, through_bytes(to_wire(request, 10, topics)), topics) == request
    assert topics.name_of(unseen := uuid.uuid4()) == str(unseen)


# Messages made of what their fields say


def schema_of(kind: type[Any], version: int) -> type[Any]:
    key = next(key for key, pair in APIS.items() if kind in pair)
    return (load_request_schema if issubclass(kind, Request) else load_response_schema)(key, version)


def fields_of(kind: type[Any], version: int) -> list[Any]:
    header = HEADER if issubclass(kind, Request) else ()
    return [each for each in fields(kind) if each.name not in header and on_wire(each, version)]


def through_bytes(entity: Any) -> Any:
    with io.BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        read, size = entity_reader(type(entity))(buffer.getvalue(), 0)
        assert size == buffer.tell()
        return read


def random_message(kind: type[Any], version: int, random: Random) -> Any:
    hints = get_type_hints(kind)
    values = {each.name: random_value(hints[each.name], each, version, random) for each in fields_of(kind, version)}
    return kind(**values, **({"version": version} if issubclass(kind, Request) else {}))


def random_value(hint: Any, field: Any, version: int, random: Random) -> Any:
    if get_origin(hint) is UnionType:
        nullable = version >= NULLABLE_SINCE.get(field.name, field.metadata.get("nullable_since", 0))
        if nullable and random.random() < 0.3:
            return None
        hint = next(choice for choice in get_args(hint) if choice is not NoneType)
    if get_origin(hint) is tuple:
        return tuple(random_value(get_args(hint)[0], field, version, random) for _ in range(random.randrange(3)))
    if is_dataclass(hint):
        return random_message(hint, version, random)
    if hint is Error:
        return random.choice(list(Error))
    if hint is bytes:
        return random.randbytes(random.randrange(20))
    if hint is bool:
        return random.random() < 0.5
    if hint is int:
        return random.randrange(-1, 100)
    return random.choice(("", "orders", "größer", "x" * 300)) if "topic" not in field.name else "orders"


NULLABLE_SINCE = {"topics": 2}
"""OffsetFetch v1 cannot ask for everything."""

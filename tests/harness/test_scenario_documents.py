"""YAML and JSON text: what is let in, and the one line for what is not."""

from __future__ import annotations

import time

import pytest

from assignors.json_contract import ContractError
from harness.scenario.documents import decode_document

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: {c: 1, c: 2}", 'line 2: the key "c" stands twice in one mapping'),
        ('{"a": 1, "a": 2}', 'the key "a" stands twice in one object'),
        ("a:\n\t- b", "not YAML: found character that cannot start any token at line 2, column 1; "),
        ("{a: b", "not YAML: did not find expected ',' or '}' at line"),
        ("a: b\n---\nc: d", "line 2: another document begins; a scenario is one"),
        ("[" * 100_000, "line 1: nested more than 40 deep"),
        ("a: " + "{a: " * 60 + "1" + "}" * 60, "line 1: nested more than 40 deep"),
        (BOMB, "line 7: aliases included, the file has more than 3,000,000 values"),
        ("a: &a [*a]", "line 1: *a contains itself"),
        ("a: *b", "not YAML: found undefined alias at line 1"),
        ('{"a": [1, {"b": "x\\ud800"}]}', "a[1].b: must be valid unicode (it holds half a surrogate pair)"),
        ('{"a": {"\\udc00": 1}}', "a: must be valid unicode"),
        ("a: !!python/object/apply:os.system [ls]", "line 1: a scenario has no tags such as"),
        ("? [a, b]\n: c", "line 1: a key must be plain text"),
        ("a: " + "9" * 10_000, "line 1: '99999"),
        ("a: 2026-13-45", "line 1: '2026-13-45' cannot be read as timestamp"),
        ('a: 1\nb: !!bool "abc"', "line 2: 'abc' cannot be read as bool"),
        ('a: !!timestamp "abc"', "line 1: 'abc' cannot be read as timestamp"),
        ("a: !!map [1]", "not YAML: expected a mapping node, but found sequence at line 1, column 4"),
        ("a: {b: [1, " + "1" + "0" * 400 + "]}", "a.b[1]: the number has more than 300 digits"),
        ('{"a": {"b": 1' + "0" * 400 + "}}", "a.b: the number has more than 300 digits"),
        ("a: 0x" + "f" * 5_000, "a: the number has more than 300 digits"),  # Python reads it and cannot print it
        ('a: !!int "' + "1:59" * 3_000 + '"', "a: the number has more than 300 digits"),
        ("x" * 17_000_000, "the file is larger than 16 MB"),
        (b"\xff\xfe", "not UTF-8 text: byte 0 cannot be read"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_text_that_would_mean_something_else_or_never_end_is_refused(text: str | bytes, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ContractError) as caught:
        decode_document(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - began < 20


def test_anchors_that_stay_small_are_welcome() -> None:
    text = "base: &base {partitions: 4}\norders: *base\npayments: {<<: *base, rate: 5/s}"
    decoded = decode_document(text)
    assert decoded["orders"] == {"partitions": 4}
    assert decoded["payments"] == {"partitions": 4, "rate": "5/s"}


def test_braces_are_json_or_yaml() -> None:
    assert decode_document('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert decode_document("{a: [1, 2.5, ~]}") == {"a": [1, 2.5, None]}
    assert decode_document(b"\xef\xbb\xbfa: b") == {"a": "b"}  # a byte order mark is not part of the first key

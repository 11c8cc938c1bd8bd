"""YAML and JSON text: what is let in, and the one line for what is not."""

from __future__ import annotations

import time

import pytest

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.scenario.documents import decode_document

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: {c: 1, c: 2}", 'line 2: the key "c" stands twice in one mapping'),
        ('{"a": 1, "a": 2}', "a: the key stands twice in one object"),
        ('{"a": [{"b": 1, "b": 2}]}', "a[0].b: the key stands twice in one object"),
        ('{"a": {"b": [1, NaN]}}', "a.b[1]: NaN is not a JSON number"),
        ('{"a": {"b": -Infinity}}', "a.b: -Infinity is not a JSON number"),
        ('{"a": 1,\n "b": ]}', "not JSON: Expecting value at line 2, column 7"),
        ("{\n", "not YAML: "),
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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("1_000", 1_000),
        ("0x10", 16),
        ("-5", -5),
        ("0", 0),
        ("1e6", 1e6),
        ("1.5e3", 1_500.0),
        (".5", 0.5),
        ("010", "010"),  # YAML 1.1 has octal numbers: 8
        ("0o10", "0o10"),
        ("1:30", "1:30"),  # and base 60: 90
        ("1:30.5", "1:30.5"),
        ("2026-01-01", "2026-01-01"),
        ("yes", True),
        ("~", None),
    ],
)
def test_a_plain_value_is_what_people_mean_by_it(text: str, value: object) -> None:
    read = decode_document(f"a: {text}")["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("key", ["on", "~", "1", "1.5", "2026-01-01", "010", "1:30"])
def test_a_key_is_what_is_written(key: str) -> None:
    assert decode_document(f"{key}: 1") == {key: 1}
    assert decode_document(f"a: &a {key}\nb: {{*a : 1}}")["b"] == {key: 1}


def test_braces_are_json_or_yaml() -> None:
    assert decode_document('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert decode_document("{a: [1, 2.5, ~]}") == {"a": [1, 2.5, None]}
    assert decode_document(b"\xef\xbb\xbfa: b") == {"a": "b"}  # a byte order mark is not part of the first key

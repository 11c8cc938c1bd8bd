"""Hash codes and hash order; the values come from JDK 17."""

from __future__ import annotations

import pytest

from rebalance_lab.assignors.java.hash_order import (
    HashTable,
    capacity_for,
    capacity_of_set_copy,
    integer_hash,
    power_of_two_above,
    put_order,
    string_hash,
    string_hashes,
    string_order,
    topic_partition_hash,
    uuid_hash,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("consumer1", -421004549),
        ("\U0001f600", 1772899),  # two UTF-16 units, not one character
        ("Aa", 2112),
        ("BB", 2112),  # a collision that strings of any length can be built from
    ],
)
def test_a_string_hashes_over_its_utf_16_units(text: str, expected: int) -> None:
    assert string_hash(text) == expected % 2**32


def test_many_strings_hash_as_each_of_them_does() -> None:
    texts = [f"consumer-{i}-{'é' * (i % 3)}{'x' * (i % 7)}" for i in range(300)] + ["y" * 300, ""]
    assert string_hashes(texts) == [string_hash(text) for text in texts]


def test_kafkas_own_keys_hash_as_its_classes_say() -> None:
    assert topic_partition_hash(string_hash("t"), 3) == 961 + 31 * 3 + 116
    assert uuid_hash(0, 7) == 7
    assert uuid_hash(-1, 0) == 0
    assert integer_hash(-1) == 2**32 - 1


def test_tables_have_the_sizes_that_java_gives_them() -> None:
    assert [power_of_two_above(n) for n in (0, 1, 3, 16, 17)] == [1, 1, 4, 16, 32]
    assert [capacity_for(n) for n in (3, 6, 12)] == [8, 16, 32]
    assert [capacity_of_set_copy(n) for n in (0, 3, 12, 24)] == [16, 16, 32, 64]


def test_integers_of_one_bucket_keep_the_order_in_which_they_came() -> None:
    partitions = [3, 17, 1, 40]
    assert [partitions[i] for i in put_order([integer_hash(p) for p in partitions])] == [17, 1, 3, 40]


def test_the_thirteenth_put_doubles_a_table_of_sixteen() -> None:
    keys = [16, *range(12)]
    assert [keys[i] for i in put_order(keys)] == [*range(12), 16]
    assert [keys[i] for i in put_order(keys[:12])] == [16, *range(11)]


def test_compute_if_absent_goes_to_the_head_of_a_chain_and_grows_the_table_one_call_later() -> None:
    table: HashTable[int] = HashTable(integer_hash)
    for key in (0, 16, 32):
        table.compute_if_absent(key)
    assert list(table) == [32, 16, 0]
    for key in range(1, 11):
        table.compute_if_absent(key)
    assert (len(table), table.capacity) == (13, 16)
    table.compute_if_absent(0)
    assert table.capacity == 32


def test_a_removed_key_leaves_the_table_as_large_as_it_was() -> None:
    table: HashTable[int] = HashTable(integer_hash)
    for key in range(13):
        table.put(key)
    for key in range(12):
        table.remove(key)
    table.put(16)
    assert (list(table), table.capacity) == ([12, 16], 32)


def test_colliding_strings_form_a_tree_whose_root_is_walked_first() -> None:
    words = [a + b + c + d for a in ("Aa", "BB") for b in ("Aa", "BB") for c in ("Aa", "BB") for d in ("Aa", "BB")]
    order = string_order(words)
    assert sorted(order) == sorted(words)
    assert order[0] != words[0]  # in a chain it would have come first

"""Regular expressions as RE2 reads them: whole names, no look-around, no back-references, no endless search."""

from __future__ import annotations

import pytest

from rebalance_lab.protocol_v2.common.regex import compile_regex
from rebalance_lab.protocol_v2.common.regex_program import BadRegex

BROKEN = ("(", ")", "a)", "[", "[a", "[b-a]", "\\", "*", "+a", "(?", "(?P<n", "(?P<>a)", "\\xZZ", "\\x{", "\\p{Greek2}")
BEYOND_RE2 = ("(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(?>a)", "(?#x)", "(?(1)a)", "(?P=n)", "(a)\\1", "\\8")
REPEATS = (
    "a**",
    "a++",
    "x{2}{3}",
    "a{1001}",
    "a{3,2}",
    "{*",
    "(?i)*",
    "(?P<n>a)(?P<n>b)",
    "((((a{1000}){1000}){1000}))",
    "(" * 2000 + ")" * 2000,
)
REFUSED = (*BROKEN, *BEYOND_RE2, *REPEATS)


@pytest.mark.parametrize(
    ("regex", "name", "matches"),
    [
        ("t", "t4", False),  # the whole name or nothing
        ("t.*", "t4", True),
        ("", "", True),
        ("", "a", False),
        ("a|", "", True),
        ("a|b|c", "b", True),
        ("(a|b)+c", "abac", True),
        ("(?:ab)*", "abab", True),
        ("a{2}", "aa", True),
        ("a{2,3}", "aaaa", False),
        ("a{2,}", "aaaa", True),
        ("a{,3}", "a{,3}", True),  # not a repeat in RE2: letters like any others
        ("a*?b", "aab", True),
        ("[a-c]+", "abc", True),
        ("[^0-9]*", "ab1", False),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("[\\d.]+", "1.2", True),
        ("[[:alpha:]]+", "abc", True),
        ("[[:^alpha:]]+", "12", True),
        ("\\pL+", "abc", True),
        ("\\p{^L}+", "12", True),
        ("\\PL", "1", True),
        ("\\w+-\\d+\\.\\S", "orders-7.x", True),
        ("\\W", "-", True),
        ("\\x61\\x{62}", "ab", True),
        ("\\Qa.b\\E", "a.b", True),
        ("\\Qa.b\\E", "axb", False),
        ("\\Qa.b", "a.b", True),
        ("^orders$", "orders", True),
        ("\\Aorders\\z", "orders", True),
        ("\\bfoo\\b.*", "foo-bar", True),
        ("foo\\Bbar", "foobar", True),
        ("foo\\bbar", "foobar", False),
        ("(?i)ORDERS-[x-z]", "orders-Y", True),
        ("(?i:A)b", "aB", False),
        ("(?i)a(?-i)b", "AB", False),
        ("a(?i)b|c", "C", True),  # flags hold to the end of the group, across alternatives
        ("(a(?i)b)c", "aBC", False),
        ("(?P<n>a)(?<m>b)", "ab", True),
        ("(?s).", "x", True),
        ("a(?s)*", "", True),  # flags are nothing: the star is the a's
        ("\\Qab\\E*", "abbb", True),
        ("(?i)\\p{Lu}[[:^upper:]]", "a1", True),  # a class holds both cases before it is negated
        ("(?i)[[:^upper:]]", "a", False),
        ("\\141\\07?", "a", True),
        ("dlq\\.[a-z]+\\.(v1|v2)", "dlq.orders.v2", True),
    ],
)
def test_an_expression_matches_whole_names(regex, name, matches):
    assert compile_regex(regex)(name) is matches


@pytest.mark.parametrize(
    "regex",
    REFUSED,
    ids=lambda regex: regex[:30],
)
def test_what_re2_refuses_is_refused(regex):
    with pytest.raises(BadRegex):
        compile_regex(regex)


def test_nested_repeats_take_no_longer_than_the_name_is_long():
    assert compile_regex("(a*)*b")("a" * 240 + "b") is True
    assert compile_regex("((a+)+)+")("a" * 240 + "b") is False

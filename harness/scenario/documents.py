"""Decode YAML or JSON to plain data, and refuse files that are ambiguous, too deep or without end.

Given      bytes from a file or standard input
Returns    dicts, lists, strings and numbers; ContractError with one line otherwise
Numbers    1e6 is a number; 010 (octal 8 in YAML 1.1), 1:30 (its 90) and dates are text; keys are always text
Refused    a key that stands twice, more than MAX_BYTES, nesting beyond MAX_DEPTH, aliases that unfold to more than
           MAX_NODES (the billion-laugh trick) or contain themselves, tags, several documents, whole numbers of more
           than MAX_DIGITS digits
Start at   decode_document
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Protocol

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode

from rebalance_lab.assignors.json_contract import ContractError, SpoiltJson, at, decode, shown
from rebalance_lab.harness.scenario.units import quoted

MAX_BYTES = 16_000_000
MAX_DEPTH = 40
MAX_NODES = 3_000_000
MAX_DIGITS = 300
"""About what a float holds: Python's whole numbers go on, and then fail wherever one is divided or printed."""
SUSPECT = re.compile(r"\\[uU](?:0000)?[dD][89a-fA-F]|[0-9a-fA-F_:]{200}")
"""An escape of what may be half a pair, or what may be such a number in any base: only then is each value looked at."""

# libyaml where PyYAML was built with it: ten times as fast, and the same results.
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


TAG = "tag:yaml.org,2002:"
INT, FLOAT, TEXT = f"{TAG}int", f"{TAG}float", f"{TAG}str"
MADE_OF_TEXT = {INT, FLOAT, f"{TAG}bool", f"{TAG}null", f"{TAG}timestamp", f"{TAG}value"}
"""What YAML makes of text that is not in quotes."""
WHOLE = re.compile(r"^(?:[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?0b[01_]+)$")
REAL = re.compile(
    r"""^(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?
       |[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
       |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
    re.VERBOSE,
)


class PlainLoader(Loader):  # type: ignore[misc]
    """Load numbers as WHOLE and REAL say, and keys as they are written. A mapping has each key once, a rule of YAML
    that PyYAML does not hold.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [(tag, pattern) for tag, pattern in known if tag not in (INT, FLOAT, f"{TAG}timestamp")]
        for first, known in Loader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Check a tag before PyYAML's constructors trust it: `!!bool "abc"` is a KeyError there."""
        try:
            return super().construct_object(node, deep=deep)
        except (yaml.YAMLError, ContractError):
            raise
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            kind = str(node.tag).rpartition(":")[2]
            message = f"line {line_of(node.start_mark)}: {quoted(node.value)} cannot be read as {kind}"
            raise ContractError("", message) from None

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, MappingNode):
            raise ConstructorError(None, None, f"expected a mapping node, but found {node.id}", node.start_mark)
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ContractError("", f"line {line_of(key_node.start_mark)}: a key must be plain text")
            if key_node.value in seen:
                line = line_of(key_node.start_mark)
                raise ContractError("", f"line {line}: the key {shown(key_node.value)} stands twice in one mapping")
            seen.add(key_node.value)
        node.value = [(written(key), one) for key, one in node.value]
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


PlainLoader.add_implicit_resolver(FLOAT, REAL, list("-+0123456789."))
PlainLoader.add_implicit_resolver(INT, WHOLE, list("-+0123456789"))


def written(key: yaml.ScalarNode) -> yaml.ScalarNode:
    """Return a key as text: a member may be called `1` or `on`. Another node: an alias may use this one as a value."""
    if key.tag not in MADE_OF_TEXT:
        return key
    return yaml.ScalarNode(TEXT, key.value, key.start_mark, key.end_mark, key.style)


def decode_document(data: bytes | str) -> Any:
    if len(data) > MAX_BYTES:
        raise ContractError("", f"the file is larger than {MAX_BYTES // 1_000_000} MB")
    text = as_text(data)
    document = decoded(text)
    if SUSPECT.search(text):
        refuse_unwritable(document, "")
    return document


def refuse_unwritable(value: object, path: str) -> None:
    """Refuse half a surrogate pair, which cannot be written anywhere, and a number without end."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ContractError(path, "must be valid unicode (it holds half a surrogate pair)") from None
    elif isinstance(value, dict):
        for key, one in value.items():
            refuse_unwritable(key, path)
            refuse_unwritable(one, at(path, str(key)))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            refuse_unwritable(one, f"{path}[{index}]")
    elif isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise ContractError(path, f"the number has more than {MAX_DIGITS} digits")


def decoded(text: str) -> Any:
    """Decode JSON first where the text looks like it: it is far faster, and what the lab itself writes."""
    no_json = None
    if text.lstrip().startswith("{"):
        try:
            return decode(text)
        except SpoiltJson:
            raise
        except ContractError as error:
            no_json = error  # braces are YAML too
    try:
        refuse_bombs(text)
        return yaml.load(text, Loader=PlainLoader)
    except yaml.MarkedYAMLError as error:
        if no_json is not None and JSON_BEGINS.match(text):
            raise no_json from None
        raise ContractError("", not_yaml(error, text)) from None
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        if isinstance(error, ContractError):
            raise
        raise ContractError("", f"not YAML that can be read: {' '.join(str(error).split())}") from None


JSON_BEGINS = re.compile(r'\s*\{\s*["}]')
"""What is more likely broken JSON than broken YAML."""


def as_text(data: bytes | str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ContractError("", f"not UTF-8 text: byte {error.start} cannot be read") from None


def refuse_bombs(text: str) -> None:
    """Count depth and unfolded size in one pass over the parser's events, which neither recurse nor unfold."""
    open_nodes: list[tuple[str | None, int]] = []
    sizes: dict[str, int] = {}
    nodes = 0
    for event in yaml.parse(text, Loader=Loader):
        line = line_of(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, nodes))
            nodes += 1
            if event.anchor is not None:
                sizes.pop(event.anchor, None)
            if len(open_nodes) > MAX_DEPTH:
                raise ContractError("", f"line {line}: nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes and any(anchor == event.anchor for anchor, _ in open_nodes):
                raise ContractError("", f"line {line}: *{event.anchor} contains itself")
            nodes += sizes.get(str(event.anchor), 1)
        if nodes > MAX_NODES:
            raise ContractError("", f"line {line}: aliases included, the file has more than {MAX_NODES:,} values")


class Mark(Protocol):
    """Mark a place in the text: PyYAML's parsers in Python and in C each have a class of their own for it."""

    @property
    def line(self) -> int: ...


def line_of(mark: Mark | None) -> int:
    return mark.line + 1 if mark else 1


def not_yaml(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    if isinstance(error, ConstructorError) and "could not determine a constructor" in str(error.problem):
        tag = str(error.problem).split()[-1].strip("'")
        return f"line {line_of(mark)}: a scenario has no tags such as {quoted(tag)}"
    if "another document" in str(error.problem):
        return f"line {line_of(mark)}: another document begins; a scenario is one"
    if mark is None:
        return f"not YAML: {error.problem}"
    lines = text.splitlines()
    here = lines[mark.line] if mark.line < len(lines) else ""
    hint = "; YAML indents with spaces, not tabs" if "\t" in here[: mark.column + 1] else ""
    return f"not YAML: {error.problem} at line {mark.line + 1}, column {mark.column + 1}{hint}"

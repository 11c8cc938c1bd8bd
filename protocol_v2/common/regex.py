"""Compile regular expressions as a broker reads them (RE2), without look-around or back-references.

Given      an expression
Returns    a function that says whether a whole topic name matches, in time linear in the name; BadRegex where RE2 would
           not compile the expression
Why        Python's own engine takes what RE2 refuses, and refuses what RE2 and Java take (Unicode classes, quoting). An
           expression with nested repeats could keep it busy for ever
Members    the simulator lets members match their patterns with it too, though Java's clients have an engine of their
           own that takes more
Method     an expression is parsed into pieces here, and becomes a program in regex_program.py, which runs it
Left out   Unicode classes beyond those that topic names can tell apart (letters, digits, punctuation)
Start at   compile_regex
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rebalance_lab.protocol_v2.common.regex_program import (
    BadRegex,
    CharTest,
    Match,
    Piece,
    Program,
    assertion,
    char,
    either,
    is_word,
    repeat,
    run,
    sequence,
)

MAX_REPEAT = 1_000
MAX_DEPTH = 100
"""Of groups in groups; RE2 allows ten times as many, which Python's stack does not."""


@lru_cache(maxsize=16)
def compile_regex(regex: str) -> Callable[[str], bool]:
    """Compile an expression; only a few are kept, because the program of a short one may take 5 MB."""
    piece = Parser(regex).parse()
    program = Program()
    start = piece(program, program.add(Match()))
    return lru_cache(maxsize=4096)(lambda text: run(program, start, text))


def is_space(letter: str) -> bool:
    return letter in "\t\n\f\r "


def is_digit(letter: str) -> bool:
    return "0" <= letter <= "9"


def no(test: CharTest) -> CharTest:
    return lambda letter: not test(letter)


PERL = {"d": is_digit, "s": is_space, "w": is_word}
POSIX: dict[str, CharTest] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": str.isascii,
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": is_digit,
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": is_word,
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}
UNICODE: dict[str, CharTest] = {
    "L": str.isalpha,
    "Ll": str.islower,
    "Lu": str.isupper,
    "N": str.isdigit,
    "Nd": str.isdigit,
    "P": lambda c: c in "-_." or (c.isascii() and c.isprintable() and not c.isalnum() and c not in "$+<=>^`|~ "),
}
OCTAL = "01234567"
ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.ignore_case = False
        self.names: set[str] = set()

    def parse(self) -> Piece:
        piece = self.alternatives()
        if self.at < len(self.text):
            raise self.bad("unexpected )")
        return piece

    def bad(self, message: str) -> BadRegex:
        return BadRegex(f"{message} at {self.at} of '{self.text}'")

    def peek(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def take(self) -> str:
        if self.at >= len(self.text):
            raise self.bad("unexpected end")
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self) -> Piece:
        choices = [self.concatenation()]
        while self.peek("|"):
            self.at += 1
            choices.append(self.concatenation())
        return either(choices)

    def concatenation(self) -> Piece:
        pieces: list[Piece] = []
        while self.at < len(self.text) and not self.peek("|") and not self.peek(")"):
            if self.peek("\\Q"):
                pieces += self.quoted()
                if self.at_repeat() and pieces:
                    pieces[-1] = self.repeated(pieces[-1])
                continue
            piece = self.atom()
            if piece is not None:
                pieces.append(self.repeated(piece))
            elif self.at_repeat() and pieces:
                pieces[-1] = self.repeated(pieces[-1])  # flags are nothing: a repeat is of what stands before them
        return sequence(pieces)

    def at_repeat(self) -> bool:
        here = self.at
        found = self.bounds() is not None
        self.at = here
        return found

    def quoted(self) -> list[Piece]:
        end = self.text.find("\\E", self.at + 2)
        literal = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
        self.at = end + 2 if end >= 0 else len(self.text)
        return [char(self.literal(letter)) for letter in literal]

    def repeated(self, piece: Piece) -> Piece:
        bounds = self.bounds()
        if bounds is None:
            return piece
        if self.peek("?"):
            self.at += 1  # lazy: which of several matches is found does not matter here
        if self.bounds() is not None:
            raise self.bad("repeat of a repeat")
        return repeat(piece, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.peek(sign):
                self.at += 1
                return bounds
        end = self.text.find("}", self.at)
        if not self.peek("{") or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None  # then { is a letter like any other
        self.at = end + 1
        least, most = int(low), int(high) if high else None if comma else int(low)
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self.bad("bad repeat count")
        return least, most

    def atom(self) -> Piece | None:
        """Parse one atom; None stands for flags, which match nothing by themselves."""
        letter = self.take()
        match letter:
            case "(":
                return self.group()
            case "[":
                return char(self.char_class())
            case ".":
                return char(lambda letter: letter != "\n")
            case "^" | "$":
                return assertion(letter)
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise self.bad(f"nothing to repeat before {letter}")
        if letter == "{" and self.at_repeat():
            raise self.bad("repeat of a repeat")  # RE2/J says so, although this brace is but a letter
        return char(self.literal(letter))

    def literal(self, letter: str) -> CharTest:
        if self.ignore_case and letter.lower() != letter.upper():
            folded = letter.lower()
            return lambda other: other.lower() == folded
        return lambda other: other == letter

    def group(self) -> Piece | None:
        case_outside = self.ignore_case
        if self.peek("?"):
            self.at += 1
            if not self.group_head():
                return None
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.bad("nested too deeply")
        piece = self.alternatives()
        self.depth -= 1
        if not self.peek(")"):
            raise self.bad("missing )")
        self.at += 1
        self.ignore_case = case_outside
        return piece

    def group_head(self) -> bool:
        """Read what follows `(?`, and return whether a group follows."""
        for start in ("P<", "<"):
            if self.peek(start) and not self.peek("<=") and not self.peek("<!"):
                self.at += len(start)
                end = self.text.find(">", self.at)
                name = self.text[self.at : end] if end >= 0 else ""
                if not name or not all(map(is_word, name)) or name in self.names:
                    raise self.bad("bad group name")
                self.names.add(name)
                self.at = end + 1
                return True
        on = True
        while True:
            letter = self.take()
            if letter in ":)":
                return letter == ":"
            if letter == "-" and on:
                on = False
            elif letter == "i":
                self.ignore_case = on
            elif letter not in "msU":
                raise self.bad(f"unknown group (?{letter}")

    def escape(self) -> Piece:
        letter = self.take()
        if letter in "AzbB":
            return assertion(letter)
        return char(self.escaped_test(letter))

    def escaped_test(self, letter: str) -> CharTest:
        if letter.lower() in PERL:
            test = self.folded(PERL[letter.lower()])
            return test if letter.islower() else no(test)
        if letter in "pP":
            return self.unicode_class(letter == "P")
        return self.literal(self.escaped_letter(letter))

    def escaped_letter(self, letter: str) -> str:
        if letter == "x":
            return self.hexadecimal()
        if letter in ESCAPES:
            return ESCAPES[letter]
        if letter == "0" or (letter in OCTAL and self.at < len(self.text) and self.text[self.at] in OCTAL):
            return self.octal(letter)
        if letter.isascii() and letter.isalnum():
            raise self.bad(f"unknown escape \\{letter}")  # back-references among them
        return letter

    def hexadecimal(self) -> str:
        if self.peek("{"):
            end = self.text.find("}", self.at)
            digits, self.at = self.text[self.at + 1 : end], end + 1
        else:
            digits, self.at = self.text[self.at : self.at + 2], self.at + 2
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self.bad("bad hexadecimal escape") from None

    def octal(self, digits: str) -> str:
        while len(digits) < 3 and self.at < len(self.text) and self.text[self.at] in OCTAL:
            digits += self.take()
        return chr(int(digits, 8))

    def unicode_class(self, negated: bool) -> CharTest:
        name = self.take()
        if name == "{":
            end = self.text.find("}", self.at)
            name, self.at = self.text[self.at : end], end + 1
        if name.startswith("^"):
            name, negated = name[1:], not negated
        if name not in UNICODE:
            raise self.bad(f"unknown class \\p{{{name}}}")
        test = self.folded(UNICODE[name])
        return no(test) if negated else test

    def folded(self, test: CharTest) -> CharTest:
        """Add the other case of each letter; a class holds both cases before it is negated."""
        if not self.ignore_case:
            return test
        return lambda letter: test(letter) or test(letter.lower()) or test(letter.upper())

    def char_class(self) -> CharTest:
        negated = self.peek("^")
        self.at += negated
        tests: list[CharTest] = []
        first = True
        while first or not self.peek("]"):
            tests.append(self.class_item())
            first = False
        self.at += 1
        return (lambda c: not any(test(c) for test in tests)) if negated else lambda c: any(test(c) for test in tests)

    def class_item(self) -> CharTest:
        if self.peek("[:"):
            end = self.text.find(":]", self.at)
            name = self.text[self.at + 2 : end] if end >= 0 else ""
            if name.removeprefix("^") in POSIX:
                self.at = end + 2
                test = self.folded(POSIX[name.removeprefix("^")])
                return no(test) if name.startswith("^") else test
        low = self.take()
        if low == "\\":
            low = self.take()
            if low.lower() in PERL or low in "pP":
                return self.escaped_test(low)
            low = self.escaped_letter(low)
        if not self.peek("-") or self.text.startswith("-]", self.at):
            return self.literal(low)
        self.at += 1
        high = self.take()
        if high == "\\":
            high = self.escaped_letter(self.take())
        if high < low:
            raise self.bad("bad character range")
        if self.ignore_case:
            return lambda c: low <= c <= high or low <= c.lower() <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high

"""Run a regular expression as a small program (Thompson), on all its threads at once.

Given      pieces from the parser in regex.py, which write themselves into a Program back to front
Returns    whether a whole text matches, in time linear in its length whatever the expression
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

MAX_PROGRAM = 50_000
CharTest: TypeAlias = Callable[[str], bool]


class BadRegex(ValueError):
    """Refuse an expression; the message says what is wrong, and where."""


class Char(NamedTuple):
    test: CharTest
    to: int


class Split(NamedTuple):
    first: int
    second: int


class Assert(NamedTuple):
    kind: str
    to: int


class Match(NamedTuple):
    pass


Op: TypeAlias = Char | Split | Assert | Match
Piece: TypeAlias = "Callable[[Program, int], int]"
"""Writes itself into a program so that it goes on at the given place; returns where it begins."""


class Program(list[Op]):
    def add(self, op: Op) -> int:
        if len(self) >= MAX_PROGRAM:
            raise BadRegex("expression too large")
        self.append(op)
        return len(self) - 1


def char(test: CharTest) -> Piece:
    return lambda program, to: program.add(Char(test, to))


def assertion(kind: str) -> Piece:
    return lambda program, to: program.add(Assert(kind, to))


def sequence(pieces: list[Piece]) -> Piece:
    def write(program: Program, to: int) -> int:
        for piece in reversed(pieces):
            to = piece(program, to)
        return to

    return write


def either(choices: list[Piece]) -> Piece:
    def write(program: Program, to: int) -> int:
        start = choices[-1](program, to)
        for choice in reversed(choices[:-1]):
            start = program.add(Split(choice(program, to), start))
        return start

    return write if len(choices) > 1 else choices[0]


def repeat(piece: Piece, low: int, high: int | None) -> Piece:
    def write(program: Program, to: int) -> int:
        if high is None:
            loop = program.add(Split(to, to))
            program[loop] = Split(piece(program, loop), to)
            to = loop
        else:
            end = to
            for _ in range(high - low):
                to = program.add(Split(piece(program, to), end))
        for _ in range(low):
            to = piece(program, to)
        return to

    return write


def run(program: Program, start: int, text: str) -> bool:
    threads = follow(program, [start], text, 0)
    for position, letter in enumerate(text):
        reached = [op.to for op in threads if isinstance(op, Char) and op.test(letter)]
        if not reached:
            return False
        threads = follow(program, reached, text, position + 1)
    return any(isinstance(op, Match) for op in threads)


def follow(program: Program, places: list[int], text: str, position: int) -> list[Op]:
    """Return every instruction that waits for a letter (or matches) and can be reached without reading one."""
    seen: set[int] = set()
    waiting: list[Op] = []
    while places:
        place = places.pop()
        if place in seen:
            continue
        seen.add(place)
        op = program[place]
        if isinstance(op, Split):
            places += (op.second, op.first)
        elif isinstance(op, Assert):
            if holds(op.kind, text, position):
                places.append(op.to)
        else:
            waiting.append(op)
    return waiting


def holds(kind: str, text: str, position: int) -> bool:
    if kind in "^A":
        return position == 0
    if kind in "$z":
        return position == len(text)
    before = position > 0 and is_word(text[position - 1])
    after = position < len(text) and is_word(text[position])
    return (before != after) == (kind == "b")


def is_word(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter == "_")

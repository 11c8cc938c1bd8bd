"""Faults made by hand, one at a time, each of which some test must notice: the runner for every package's list of them.

A mutant is an edit of one place in a module's source. For each a child process is forked, in which that module and all
that import from it are loaded anew; the tests and some random runs follow, until one fails. A fault may well be an
endless loop, so a child is given only so long.
"""

from __future__ import annotations

import importlib
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

PATIENCE_S = 20


@dataclass(frozen=True, slots=True)
class Mutant:
    what: str
    module: str
    """Without its package."""
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Hunt:
    package: str
    """Where the faults are made."""
    modules: Sequence[str]
    """In the order of their imports: those after the faulty one are loaded anew, so that they see the fault."""
    random_runs: str
    """One of them: its run_once(*seeded(seed)) gives a pair of a run and what went wrong in it."""
    runs: int

    def check(self, mutants: Sequence[Mutant]) -> None:
        """Print what caught each; exit with 1 if one survived. With a number on the command line, every so many."""
        for name in self.modules:
            importlib.import_module(name)
        for mutant in mutants:
            self.source(mutant)
        innocent = self.first_failure()
        if innocent is not None:
            sys.exit(f"without any fault this fails already: {innocent}")
        survivors = 0
        mutants = mutants[:: int(sys.argv[1]) if len(sys.argv) > 1 else 1]
        for mutant in mutants:
            name = self.caught_by(mutant)
            survivors += name is None
            print(f"{'SURVIVED' if name is None else 'caught':8}  {mutant.what}" + (f"  <- {name}" if name else ""))
        print(f"{len(mutants) - survivors} of {len(mutants)} caught")
        sys.exit(bool(survivors))

    def source(self, mutant: Mutant) -> str:
        source = inspect.getsource(sys.modules[f"{self.package}.{mutant.module}"])
        if mutant.old not in source:
            sys.exit(f"{mutant.what}: its text is not in {mutant.module}.py any more")
        return source

    def apply(self, mutant: Mutant) -> None:
        name = f"{self.package}.{mutant.module}"
        source = self.source(mutant).replace(mutant.old, mutant.new)
        exec(compile(source, f"{name} (mutant)", "exec"), sys.modules[name].__dict__)
        for later in self.modules[self.modules.index(name) + 1 :]:
            importlib.reload(sys.modules[later])

    def suspects(self) -> Iterator[tuple[str, Callable[[], object]]]:
        for name in self.modules:
            for key, test in list(vars(sys.modules[name]).items()):
                if key.startswith("test_"):
                    yield from cases(test)
        runs = sys.modules[self.random_runs]
        for seed in range(self.runs):
            yield f"random run {seed}", lambda seed=seed: no_failure(runs.run_once(*runs.seeded(seed))[1])

    def first_failure(self) -> str | None:
        for name, test in self.suspects():
            try:
                test()
            except Exception:  # noqa: BLE001 - a crash is as good as a failed assertion
                return name
        return None

    def caught_by(self, mutant: Mutant) -> str | None:
        """What a child process of its own says, or that it never came to an end."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)  # of CPU time: a busy machine is not an endless loop
            self.apply(mutant)
            os.write(writing, (self.first_failure() or "").encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as answer:
            name = answer.read()
        _, status = os.waitpid(child, 0)
        return name or (None if status == 0 else "an endless loop, or a crash")


def cases(test: Callable[..., object]) -> Iterator[tuple[str, Callable[[], object]]]:
    """A test, or one for each of its parameters; none that is hunted with has more than one decorator."""
    marks = getattr(test, "pytestmark", [])
    if not marks:
        yield test.__name__, test
        return
    names, rows = marks[0].args
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    for row in rows:
        values = [row] if len(names) == 1 else row
        yield f"{test.__name__}[{row}]", partial(test, **dict(zip(names, values, strict=True)))


def no_failure(error: Exception | None) -> None:
    if error is not None:
        raise error

"""List every direct dependency with its locked version, its licence, and why it is there.

Given      pyproject.toml, requirements/dev.lock and requirements/reasons.toml
Errors     a dependency without a reason, without a locked version, or a reason without its dependency: exit code 1

    python -m tools.audit
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "dev.lock"
NAME = re.compile(r"^[A-Za-z0-9._-]+")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
BASE = "-"


@dataclass(frozen=True, slots=True)
class Dependency:
    name: str
    extra: str
    version: str | None
    licence: str
    reason: str | None


def normalise_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_direct() -> Iterator[tuple[str, str]]:
    """Yield name and extra of each requirement that pyproject.toml states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra, stated in {BASE: project["dependencies"], **project["optional-dependencies"]}.items():
        for requirement in stated:
            found = NAME.match(requirement)
            assert found is not None
            if found[0] != project["name"]:
                yield normalise_name(found[0]), extra


def read_locked() -> dict[str, str]:
    return {normalise_name(name): version for name, version in PINNED.findall(LOCK.read_text("utf-8"))}


def read_reasons() -> dict[str, str]:
    reasons: dict[str, str] = tomllib.loads((ROOT / "requirements" / "reasons.toml").read_text("utf-8"))["reasons"]
    return reasons


def licence_of(name: str) -> str:
    """Return what the installed distribution says of itself, in a few words."""
    try:
        described = metadata(name)
    except PackageNotFoundError:
        return "not installed here"
    if described["License-Expression"]:
        return described["License-Expression"]
    classifiers = [one for one in described.get_all("Classifier") or () if one.startswith("License ::")]
    if classifiers:
        return ", ".join(one.rpartition(" :: ")[2] for one in classifiers)
    return (described["License"] or "not stated").strip().splitlines()[0][:60]


def read_dependencies() -> list[Dependency]:
    locked, reasons = read_locked(), read_reasons()
    return [
        Dependency(name, extra, locked.get(name), licence_of(name), reasons.get(name)) for name, extra in read_direct()
    ]


def find_faults(dependencies: list[Dependency]) -> list[str]:
    faults = [f"{one.name}: not in {LOCK.name}" for one in dependencies if one.version is None]
    faults += [f"{one.name}: no reason in reasons.toml" for one in dependencies if one.reason is None]
    unused = read_reasons().keys() - {one.name for one in dependencies}
    return faults + [f"{name}: a reason without a dependency" for name in sorted(unused)]


def main() -> int:
    dependencies = read_dependencies()
    table = Table("dependency", "extra", "version", "licence", "why")
    for one in dependencies:
        table.add_row(one.name, one.extra, one.version or "", one.licence, one.reason or "")
    Console().print(table)
    faults = find_faults(dependencies)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

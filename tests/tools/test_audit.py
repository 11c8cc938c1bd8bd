"""Every direct dependency is locked with hashes and explained; no lock names an index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tools import audit

LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def test_every_direct_dependency_is_locked_and_explained() -> None:
    assert audit.find_faults(audit.read_dependencies()) == []


def test_a_dependency_without_a_reason_is_a_fault() -> None:
    stranger = audit.Dependency("stranger", "-", None, "MIT", None)
    faults = audit.find_faults([*audit.read_dependencies(), stranger])
    assert faults == ["stranger: not in dev.lock", "stranger: no reason in reasons.toml"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_has_hashes_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    assert not re.search(r"https?://|--(extra-)?index-url|--find-links", text)
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.partition("\n    make lock\n")[2] if "make lock" in text else text)
    bare = [entry.splitlines()[0] for entry in entries if "==" in entry and "--hash=sha256:" not in entry]
    assert bare == []


def test_the_locks_satisfy_what_the_package_states() -> None:
    """A version that pyproject.toml rules out would be replaced by the next install."""
    pytest.importorskip("packaging", reason="packaging is not installed")
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = audit.read_locked()
    stated = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    for requirement in map(Requirement, stated):
        name = audit.normalise_name(requirement.name)
        assert name == project["name"] or requirement.specifier.contains(locked[name]), name

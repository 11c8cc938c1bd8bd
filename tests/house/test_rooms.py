"""The house shows its architecture: no circles, no crowded folders, no name for two things."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import networkx as nx
import pytest

from tests.paths import ROOT

PACKAGES = ("assignors", "protocol_v1", "protocol_v2", "harness", "spark_eval", "api")
MOST_MODULES = 16
"""In one folder, packages aside."""

SAME_ROLE = {
    "model": "the values that a room speaks of",
    "range": "Kafka's range assignor, in the client and in the broker",
    "member_order": "Java's order of a group's members",
}
"""Names that rooms share besides the two protocols and their two sides, and what they mean everywhere."""


def production_modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            dotted = ".".join(("rebalance_lab", *file.relative_to(ROOT).with_suffix("").parts))
            found[dotted.removesuffix(".__init__")] = file
    return found


def import_graph(modules: dict[str, Path]) -> nx.DiGraph:
    """Who imports whom, also inside functions and behind TYPE_CHECKING."""
    graph = nx.DiGraph()
    for name, file in modules.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: imports are absolute"
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
                targets = [target if target in modules else str(node.module) for target in targets]
            else:
                continue
            graph.add_edges_from((name, target) for target in targets if target in modules and target != name)
    return graph


def test_no_import_circles_outside_the_simulator() -> None:
    modules = production_modules()
    circles = [sorted(circle) for circle in nx.strongly_connected_components(import_graph(modules)) if len(circle) > 1]
    simulator = "rebalance_lab.harness.simulator."
    assert [circle for circle in circles if not all(name.startswith(simulator) for name in circle)] == []


def test_the_search_for_circles_sees_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lab import b\n")
    (tmp_path / "b.py").write_text("def late():\n    from lab.a import anything\n")
    graph = import_graph({"lab.a": tmp_path / "a.py", "lab.b": tmp_path / "b.py"})
    assert not nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folders_modules_read_at_a_glance(package: str) -> None:
    crowded = {}
    for folder in (ROOT / package, *(place for place in (ROOT / package).rglob("*") if place.is_dir())):
        modules = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        # Commands are of one kind: as many as `rebalance-lab --help` lists.
        if len(modules) > MOST_MODULES and folder != ROOT / "api" / "commands":
            crowded[str(folder.relative_to(ROOT))] = len(modules)
    assert crowded == {}


def test_every_folder_says_what_is_in_it() -> None:
    silent = []
    for name, file in production_modules().items():
        if file.name == "__init__.py" and not (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").strip():
            silent.append(name)
    assert silent == []


def test_no_two_modules_share_a_name_for_different_things() -> None:
    """Both protocols, and the coordinator and the member in each, have modules of the same name for the same role."""
    rooms = defaultdict(list)
    for name, file in production_modules().items():
        if file.name != "__init__.py" and not name.startswith(
            ("rebalance_lab.protocol_v1", "rebalance_lab.protocol_v2")
        ):
            rooms[file.stem].append(name)
        elif file.name != "__init__.py":
            protocols = rooms[file.stem]
            if "protocols" not in protocols:
                protocols.append("protocols")
    shared = {stem: places for stem, places in rooms.items() if len(places) > 1 and stem not in SAME_ROLE}
    assert shared == {}


def test_a_module_listed_in_a_folders_docstring_exists() -> None:
    missing = []
    for name, file in production_modules().items():
        if file.name != "__init__.py":
            continue
        for line in (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").splitlines():
            first = line.split()[0].rstrip(",") if line.split() else ""
            if first.endswith((".py", "/")) and " " in line and not (file.parent / first).exists():
                missing.append((name, first))
    assert missing == []

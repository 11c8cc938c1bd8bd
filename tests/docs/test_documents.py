"""Keep the documents true: their commands run, their links and names exist, their tables are what commands print.

Run        every command of README.md and docs/ that ends by itself, in a copy of examples/, each of them once
Others     commands that need a cluster, a server, Spark or a reader's own class: their options must stand in --help
Names      links, paths, modules, dotted names and make targets of all documents must exist
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rebalance_lab.api.cli import app
from rebalance_lab.assignors.json_contract import decode, group_from_json
from tests.paths import ROOT

README = ROOT / "README.md"
GUIDES = (README, *sorted((ROOT / "docs").glob("*.md")))
DOCUMENTS = (*GUIDES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "examples").rglob("README.md")))
MOST_README_LINES = 130
PLACEHOLDER = "package.module:Class"

ENDS_BY_ITSELF = ("assign", "check", "compare", "play", "recommend", "simulate", "size")
NEEDS: Mapping[str, str] = {
    "broker up": "a cluster",
    "fidelity": "a cluster",
    "group describe": "a cluster",
    "group snapshot": "a cluster",
    "live": "a cluster",
    "record": "a broker",
    "serve": "a server that runs until Ctrl-C",
    "sweep ingest": "Spark",
    "sweep report": "the folder that a sweep leaves",
    "sweep run": "Spark",
}
"""Commands that a test does not run, and what each of them needs."""


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    """As it stands in the document, with its comment and redirections."""
    folder: str = "."
    """Where an earlier `cd` of the same block leads."""

    @property
    def words(self) -> list[str]:
        """Without `rebalance-lab`, the comment and the shell's redirections."""
        words = shlex.split(self.line, comments=True)[1:]
        end = next((number for number, word in enumerate(words) if word in ("<", ">", "|", ">>")), len(words))
        return words[:end]

    @property
    def name(self) -> str:
        """The command as `NEEDS` and `ENDS_BY_ITSELF` name it; `sweep FILE` is short for `sweep run FILE`."""
        first, *others = self.words
        pair = f"{first} {others[0]}" if others else first
        if first == "sweep" and pair not in NEEDS:
            return "sweep run"
        return pair if pair in NEEDS else first

    @property
    def can_run(self) -> bool:
        return self.name in ENDS_BY_ITSELF and PLACEHOLDER not in self.line

    @property
    def exit_code(self) -> int:
        found = re.search(r"#.*\bexit code (\d)", self.line)
        return int(found[1]) if found else 0


def fenced_blocks(text: str) -> Iterator[str]:
    """The blocks without a language, and those of a shell."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        if language in ("", "sh"):
            yield block.replace("\\\n", " ")


def find_commands(text: str) -> list[Command]:
    found = []
    for block in fenced_blocks(text):
        folder = "."
        for line in block.splitlines():
            if line.startswith("cd "):
                folder = line.split()[1]
            elif line.startswith("rebalance-lab "):
                found.append(Command(line, folder))
    return found


class Shell:
    """Run commands of documents in a copy of examples/, each of them once."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(ROOT / "examples", folder / "examples")
        programs = folder / "bin"
        programs.mkdir()
        program = programs / "rebalance-lab"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m rebalance_lab "$@"\n')
        program.chmod(0o755)
        self.folder = folder
        self.ended: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = {}
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
        }

    def run(self, command: Command) -> subprocess.CompletedProcess[str]:
        key = (command.folder, *shlex.split(command.line, comments=True))
        if key not in self.ended:
            self.ended[key] = subprocess.run(
                ["sh", "-c", command.line],
                cwd=self.folder / command.folder, env=self.environment,
                capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
        return self.ended[key]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("documents"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


one_worker = pytest.mark.xdist_group("documents")


# Commands


@one_worker
@pytest.mark.parametrize("guide", GUIDES, ids=relative)
def test_commands_of_a_guide_run(guide: Path, shell: Shell) -> None:
    for command in find_commands(guide.read_text("utf-8")):
        if command.can_run:
            ended = shell.run(command)
            assert ended.returncode == command.exit_code, f"{command.line}\n{ended.stderr}"
            assert ended.stderr == "", command.line


def test_the_readme_has_commands_that_run() -> None:
    assert len([command for command in find_commands(README.read_text("utf-8")) if command.can_run]) >= 6


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_options_in_a_document_exist(document: Path) -> None:
    assert find_unknown_options(document.read_text("utf-8")) == []


def find_unknown_options(text: str) -> list[str]:
    unknown = []
    for command in find_commands(text):
        if command.name not in (*NEEDS, *ENDS_BY_ITSELF):
            unknown.append(f"{command.line}: is in neither NEEDS nor ENDS_BY_ITSELF")
            continue
        known = read_options(command.name)
        for word in command.words:
            option = word.partition("=")[0]
            if re.match(r"--?[a-z]", option) and option not in known:
                unknown.append(f"{command.line}: {option}")
    return unknown


@cache
def read_options(name: str) -> frozenset[str]:
    """The options that `rebalance-lab NAME --help` lists."""
    asked = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})
    assert asked.exit_code == 0, name
    plain = re.sub(r"\x1b\[[0-9;]*m", "", asked.output)
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", plain))


# Names


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_names_in_a_document_exist(document: Path) -> None:
    text = document.read_text("utf-8")
    assert find_broken_links(text, document) == []
    assert find_missing_names(text, document.parent) == []


def test_modules_of_the_makefile_exist() -> None:
    assert find_missing_names((ROOT / "Makefile").read_text("utf-8"), ROOT) == []


def find_broken_links(text: str, document: Path) -> list[str]:
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"[a-z]+:", target)]
    return [target for target in targets if not leads_somewhere(target, document)]


def leads_somewhere(target: str, document: Path) -> bool:
    file, _, anchor = target.partition("#")
    path = (document.parent / file).resolve() if file else document
    exists = path.is_relative_to(ROOT) and path.exists()
    return exists and (not anchor or anchor in read_anchors(path))


def read_anchors(path: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PLACES = "api|assignors|benchmarks|docs|examples|harness|protocol_v1|protocol_v2|rebalance_lab|spark_eval|tests|tools"
OURS = ("rebalance_lab", "tests", "tools", "benchmarks")


def find_missing_names(text: str, folder: Path) -> list[str]:
    """Paths from the root or beside the document, `.py` and `.md` files, modules, dotted names and make targets."""
    missing = []
    for path in re.findall(rf"(?<![\w./:-])(?:{PLACES})/[\w./*-]*\w/?", text):
        if not any(any(place.glob(path.rstrip("/"))) for place in (ROOT, folder)):
            missing.append(path)
    for name in re.findall(r"(?<![\w./:-])(\w+\.(?:py|md))\b", text):
        if name not in read_file_names():
            missing.append(name)
    for name in re.findall(r"(?<![\w./-])rebalance_lab(?:\.\w+)+", text):
        if not is_importable(name):
            missing.append(name)
    for module in re.findall(r"python3? -m ([\w.]+\w)", text):
        if module.split(".")[0] in OURS and not can_be_run(module):
            missing.append(f"python -m {module}")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE))
    code = "\n".join([*re.findall(r"`([^`\n]+)`", text), *fenced_blocks(text)])
    missing += [f"make {name}" for name in re.findall(r"(?m)^make ([a-z][\w-]*)", code) if name not in targets]
    return missing


@cache
def read_file_names() -> frozenset[str]:
    """Of all Python and Markdown files of the repository."""
    folders = [ROOT / place for place in (*PLACES.split("|"), ".") if (ROOT / place).is_dir()]
    files = (file for folder in folders if folder != ROOT for kind in ("*.py", "*.md") for file in folder.rglob(kind))
    return frozenset(file.name for file in (*files, *ROOT.glob("*.md")))


def module_file(parts: list[str]) -> Path | None:
    path = ROOT.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def is_importable(name: str) -> bool:
    """Whether a module has this name, or defines what the last part names; nothing is imported for it."""
    parts = name.split(".")
    if module_file(parts) is not None:
        return True
    for end in (len(parts) - 1, len(parts) - 2):
        file = module_file(parts[:end])
        if file is not None:
            tree = ast.parse(file.read_text("utf-8"))
            return find_definition(tree.body, parts[end:])
    return False


def find_definition(body: list[ast.stmt], names: list[str]) -> bool:
    first, *others = names
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == first:
                return not others
            case ast.ClassDef(name=name) if name == first:
                return not others or find_definition(node.body, others)
            case ast.AnnAssign(target=ast.Name(id=name)) if name == first:
                return not others
            case ast.Assign(targets=targets) if any(isinstance(one, ast.Name) and one.id == first for one in targets):
                return not others
            case ast.ImportFrom(names=imported) if any((one.asname or one.name) == first for one in imported):
                return not others
    return False


def can_be_run(module: str) -> bool:
    parts = module.split(".")
    main = module_file([*parts, "__main__"])
    file = module_file(parts)
    return main is not None or (file is not None and 'if __name__ == "__main__":' in file.read_text("utf-8"))


# Contents


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= MOST_README_LINES


def test_the_index_lists_each_page_once() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[[^]]+\]\(([^)]+)\) \|", index, flags=re.MULTILINE)
    assert sorted(listed) == [page.name for page in GUIDES if page.parent.name == "docs" and page.name != "README.md"]


def test_the_table_of_the_readme_is_the_example() -> None:
    shown = {line.strip() for line in (ROOT / "examples" / "side_by_side.out").read_text("utf-8").splitlines()}
    table = README.read_text("utf-8").split("## What you get to see")[1].split("```")[1]
    rows = [line.strip() for line in table.splitlines() if line.strip() and "─" not in line]
    assert len(rows) >= 10
    assert [row for row in rows if row not in shown] == []


@one_worker
def test_the_ranking_is_what_its_command_prints(shell: Shell) -> None:
    guide = (ROOT / "docs" / "choosing-a-strategy.md").read_text("utf-8")
    command = next(command for command in find_commands(guide) if command.name == "compare")
    printed = {line.rstrip() for line in shell.run(command).stdout.splitlines()}
    table = guide.split("## The ranking")[1].split("```")[1]
    rows = [line.rstrip() for line in table.splitlines() if line.strip()]
    assert len(rows) >= 9
    assert [row for row in rows if row not in printed] == []  # else paste what it prints now


def test_the_weights_are_the_defaults() -> None:
    from rebalance_lab.harness.measure.cost_weights import default_weights

    guide = (ROOT / "docs" / "choosing-a-strategy.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", guide, flags=re.MULTILINE)
    assert {name: float(weight) for name, weight in rows} == default_weights()


def test_the_strategies_are_all_listed() -> None:
    from rebalance_lab.assignors.strategies import BUILT_IN

    guide = (ROOT / "docs" / "assignments.md").read_text("utf-8")
    table = guide.split("## Strategies")[1].split("\n\n")[1]
    assert {name for name in re.findall(r"`([^`]+)`", table) if "/" in name and ":" not in name} == set(BUILT_IN)


def test_the_group_of_the_contract_is_valid() -> None:
    guide = (ROOT / "docs" / "assignments.md").read_text("utf-8")
    group = group_from_json(decode(guide.split("```json")[1].split("```")[0]))
    assert group.members["c1"].owned == {"orders": [0]}


# These checks find what is wrong


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`harness/no_such.py`", ["harness/no_such.py"]),
        ("see `properties_churn.py`", ["properties_churn.py"]),
        ("`rebalance_lab.harness.no_such`", ["rebalance_lab.harness.no_such"]),
        ("`rebalance_lab.assignors.quality.Quality.nothing`", ["rebalance_lab.assignors.quality.Quality.nothing"]),
        ("`python -m tests.harness.no_such`", ["python -m tests.harness.no_such"]),
        ("`python -m rebalance_lab.assignors.model`", ["python -m rebalance_lab.assignors.model"]),
        ("`make no-such`", ["make no-such"]),
        ("`rebalance_lab.assignors.quality.Quality.moved`, `harness/*/__init__.py`, `make test`", []),
        ("`python -m rebalance_lab`, `python -m venv`, `test_keeper.py`, `tests/api/`", []),
    ],
)
def test_wrong_names_are_found(text: str, wrong: list[str]) -> None:
    assert find_missing_names(text, ROOT) == wrong


def test_broken_links_are_found() -> None:
    text = "[a](docs/no_such.md) [b](docs/README.md#no-such) [c](#install) [d](docs/README.md#documentation)"
    assert find_broken_links(text, README) == ["docs/no_such.md", "docs/README.md#no-such"]


def test_unknown_options_are_found() -> None:
    text = "```\nrebalance-lab serve --no-such 1\nrebalance-lab fly\nrebalance-lab sweep a.yaml --out b\n```\n"
    assert find_unknown_options(text) == [
        "rebalance-lab serve --no-such 1: --no-such",
        "rebalance-lab fly: is in neither NEEDS nor ENDS_BY_ITSELF",
    ]


def test_a_command_is_read_as_a_shell_reads_it() -> None:
    text = "```sh\ncd examples\nrebalance-lab check a:B \\\n    --seed 1 > out  # exit code 1: it is broken\n```\n"
    (command,) = find_commands(text)
    assert (command.folder, command.words, command.exit_code) == ("examples", ["check", "a:B", "--seed", "1"], 1)
    assert command.can_run
    assert not Command(f"rebalance-lab check {PLACEHOLDER}").can_run

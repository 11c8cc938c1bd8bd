"""The product, installed beside a project that has folders named as ours: neither hides the other."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.paths import ROOT, SCENARIOS

PROJECT = {
    "api/__init__.py": "OWNER = 'the project'\n",
    "harness/__init__.py": "OWNER = 'the project'\n",
    "protocol_v1/__init__.py": "OWNER = 'the project'\n",
    "assignors/__init__.py": "OWNER = 'the project'\n",
    "assignors/mine.py": """
class Mine:
    name = "mine"

    def assign(self, group):
        shares = {member: {} for member in group.members}
        for topic, described in group.topics.items():
            readers = sorted(m for m, member in group.members.items() if topic in member.topics)
            for partition in range(described.partitions if readers else 0):
                shares[readers[partition % len(readers)]].setdefault(topic, []).append(partition)
        return shares
""",
}


def build(target: str, source: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module", params=["the wheel", "a wheel built from the sdist"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    folder = tmp_path_factory.mktemp("build")
    if request.param == "the wheel":
        return build("wheel", ROOT, folder / "wheel")
    with tarfile.open(build("sdist", ROOT, folder / "sdist")) as packed:
        packed.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return build("wheel", unpacked, folder / "wheel")


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel, and the libraries of this one, but nothing of this checkout."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    found = folder / "bin" / "python"
    install = ["-m", "pip", "--python", str(found), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, *install], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    # A line in a .pth file adds that folder, but runs no .pth file in it: this checkout's own stays unknown.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


def run(python: Path, project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(python.with_name("rebalance-lab")), *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)


def test_the_wheel_adds_one_folder_and_its_dist_info(wheel: Path) -> None:
    top = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"rebalance_lab"}
    assert len(top) == 2


def test_check_finds_the_projects_own_assignor(python: Path, project: Path) -> None:
    ended = run(python, project, "check", "assignors.mine:Mine", "--examples", "60")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "survives-churn" in ended.stdout


def test_a_file_of_the_projects_hides_no_library(python: Path, project: Path) -> None:
    (project / "rich.py").write_text("raise RuntimeError('the project has a module called rich')\n")
    ended = run(python, project, "check", "assignors.mine:Mine", "--examples", "20")
    assert (ended.returncode, ended.stderr) == (0, "")


COMMANDS: Mapping[str, tuple[str, ...]] = {
    "compare": ("--strategies", "classic/range,classic/assignors.mine:Mine", "--seeds", "2"),
    "recommend": ("--seeds", "2"),
    "simulate": ("--strategy", "classic/assignors.mine:Mine"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_scenarios_run_beside_the_projects_own_harness(python: Path, project: Path, command: str) -> None:
    ended = run(python, project, command, str(SCENARIOS / "rolling_deploy.yaml"), *COMMANDS[command])
    assert (ended.returncode, ended.stderr) == (0, "")


def test_both_can_be_imported_in_one_program(python: Path, project: Path) -> None:
    code = (
        "import api, harness, assignors.mine; from rebalance_lab.api.client import Client;"
        "import rebalance_lab.harness.measure.costs; print(api.OWNER, harness.OWNER, Client.__module__)"
    )
    ended = subprocess.run([str(python), "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("the project the project rebalance_lab.api.client\n", "")


def test_the_package_is_a_command(python: Path, tmp_path: Path) -> None:
    command = [str(python), "-m", "rebalance_lab", "--version"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("rebalance-lab ")


def test_the_package_as_a_command_searches_the_current_folder_last(python: Path, project: Path) -> None:
    (project / "yaml.py").write_text("raise RuntimeError('the project has a module called yaml')\n")
    command = [str(python), "-m", "rebalance_lab", "simulate", str(SCENARIOS / "rolling_deploy.yaml"), "--strategy"]
    ended = subprocess.run([*command, "range"], cwd=project, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_importing_the_package_loads_nothing(python: Path, tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import rebalance_lab; print(sorted(set(sys.modules) - before))"
    ended = subprocess.run([str(python), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout == "['rebalance_lab']\n"

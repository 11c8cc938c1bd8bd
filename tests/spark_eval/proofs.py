"""`python -m tests.spark_eval.proofs`: the same rows everywhere, and whatever is killed.

clusters   local-cluster[2,1,1024] and a standalone master with two workers give what local[2] gives, row for row
executor   kill -9 of an executor in the middle: the sweep ends as if nothing had been
submit     spark-submit with the wheel of `make wheel`, on Pythons that have our dependencies and not us: the same rows
driver     kill -9 of the driver in the middle, then --resume: nothing lost, nothing twice, the same rows
stop       Ctrl-C: exit code 130, a line that says how to go on, and going on gives the same rows

`--only driver` runs one of them; each prints what it saw. Exit code 1 when something differs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyspark

from tests.paths import ROOT
from tests.spark_eval.clusters import standalone
from tests.spark_eval.small_sweeps import SMALL

SWEEP = {**SMALL, "name": "proof", "parameters": {"members.consumer.count": [2, 3, 4, 5]}}
LIMIT_S = 900
WITHOUT_US = {
    "PYSPARK_PYTHON": sys._base_executable,  # type: ignore[attr-defined]
    # Folders named here bring their packages, but not what .pth files in them point to: an editable install of ours.
    "PYTHONPATH": str(Path(pyspark.__file__).parents[1]),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_LOCAL_HOSTNAME": "127.0.0.1",
}
PROOFS = ("clusters", "submit", "executor", "driver", "stop")
Rows = list[dict[str, Any]]


class Proofs:
    def __init__(self, folder: Path, seeds: int) -> None:
        self.folder = folder
        self.file = folder / "sweep.json"
        self.file.write_text(json.dumps({**SWEEP, "seeds": seeds}))
        self.runs = 4 * 3 * seeds
        self.expected: Rows = []

    def command(self, out: str, master: str, *more: str) -> list[str]:
        place = str(self.folder / out)
        return [
            sys.executable,
            "-m",
            "rebalance_lab.api.cli",
            "sweep",
            str(self.file),
            "--out",
            place,
            "--master",
            master,
            *more,
        ]

    def sweep(self, out: str, master: str, *more: str) -> Rows:
        began = time.monotonic()
        done = subprocess.run(self.command(out, master, *more), capture_output=True, text=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
        print(f"  {out}: {time.monotonic() - began:.0f} s", flush=True)
        return self.rows(out)

    def rows(self, out: str) -> Rows:
        """Of all waves that are whole."""
        waves = [wave.parent for wave in sorted((self.folder / out).glob("runs/*/_SUCCESS"))]
        files = [str(file) for wave in waves for file in sorted(wave.glob("*.parquet"))]
        rows: Rows = pyarrow.dataset.dataset(files).to_table().to_pylist()
        return sorted(rows, key=lambda row: str(row["run_id"]))

    def begun(self, out: str, master: str, waves: int) -> subprocess.Popen[str]:
        """A sweep of which `waves` are done and more are to come."""
        command = self.command(out, master)
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        ends = time.monotonic() + LIMIT_S
        while len(list((self.folder / out).glob("runs/*/_SUCCESS"))) < waves:
            assert process.poll() is None, "the sweep was over before anything could be killed: take more --seeds"
            assert time.monotonic() < ends
            time.sleep(0.1)
        done = len(self.rows(out))
        assert done < self.runs, f"all {done} runs were done before anything could be killed: take more --seeds"
        print(f"  {done:,} of {self.runs:,} runs are done", flush=True)
        return process

    def same(self, out: str, rows: Rows) -> None:
        ids = [row["run_id"] for row in rows]
        assert len(ids) == len(set(ids)) == self.runs, f"{out}: {len(ids)} rows, {len(set(ids))} runs of {self.runs}"
        assert rows == self.expected, f"{out} differs from local[2]"
        table = (self.folder / out / "decision_table.json").read_text()
        assert table == (self.folder / "local" / "decision_table.json").read_text(), f"{out}: another decision table"
        print(f"  {out}: {len(ids):,} rows and the decision table as with local[2]", flush=True)

    # The proofs

    def clusters(self) -> None:
        self.same("local-cluster", self.sweep("local-cluster", "local-cluster[2,1,1024]"))
        with standalone(self.folder) as url:
            self.same("standalone", self.sweep("standalone", url))

    def submit(self) -> None:
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(self.folder)]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = self.folder.glob("*.whl")
        script = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
        with standalone(self.folder, env=WITHOUT_US) as url:
            command = [script, "--master", url, "--py-files", str(wheel), str(ROOT / "spark_eval" / "job.py")]
            command += [str(self.file), "--out", str(self.folder / "submit")]
            done = subprocess.run(
                command,
                cwd=self.folder,
                env={**os.environ, **WITHOUT_US},
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
            )
        assert done.returncode == 0, first_error(done.stderr)
        self.same("submit", self.rows("submit"))

    def executor(self) -> None:
        process = self.begun("executor", "local-cluster[2,1,1024]", 1)
        try:
            victim = executors_of(process.pid)[0]
            os.kill(victim, signal.SIGKILL)
            print(f"  killed executor {victim}", flush=True)
            assert process.wait(LIMIT_S) == 0
        finally:
            end(process)
        self.same("executor", self.rows("executor"))

    def driver(self) -> None:
        process = self.begun("driver", "local[2]", 1)
        end(process)
        kept = len(list((self.folder / "driver").glob("runs/*/_SUCCESS")))
        print(f"  killed the driver after {kept} waves", flush=True)
        self.same("driver", self.sweep("driver", "local[2]", "--resume"))

    def stop(self) -> None:
        process = self.begun("stop", "local[2]", 1)
        os.kill(process.pid, signal.SIGINT)
        said = process.communicate(timeout=LIMIT_S)[1]
        assert process.returncode == 130, (process.returncode, said)
        assert said.strip().count("\n") == 0, said
        assert "--resume" in said
        print(f"  {said.strip()}", flush=True)
        self.same("stop", self.sweep("stop", "local[2]", "--resume"))


def first_error(said: str) -> str:
    lines = [line for line in said.splitlines() if "INFO" not in line and "WARN" not in line]
    return "\n".join(lines[:30])


def end(process: subprocess.Popen[str]) -> None:
    """The whole group: driver, JVM and Python workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def executors_of(driver: int) -> list[int]:
    """JVMs below the driver that are executors."""
    found = subprocess.run(["ps", "-eo", "pid,sid,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 2) for line in found.splitlines()[1:] if "CoarseGrainedExecutorBackend" in line]
    return [int(pid) for pid, session, _ in lines if int(session) == driver]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=240)
    parser.add_argument("--only", choices=PROOFS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        proofs = Proofs(Path(folder), options.seeds)
        print(f"{proofs.runs:,} runs", flush=True)
        proofs.expected = proofs.sweep("local", "local[2]")
        for name in (options.only,) if options.only else PROOFS:
            print(name, flush=True)
            try:
                getattr(proofs, name)()
            except AssertionError as error:
                print(f"  NOT SO: {error}")
                return 1
    print("all of it holds")
    return 0


if __name__ == "__main__":
    sys.exit(main())

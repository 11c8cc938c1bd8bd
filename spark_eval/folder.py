"""Manage a sweep's folder, on a local disk or any file system that Hadoop knows, and tell what of it is finished.

sweep.json        which sweep this is, and which version began it
cells/            the scenarios
runs/wave-00001/  results; a wave counts once Spark has put _SUCCESS into it, and what was cut off is removed
table/            the decision table as Parquet; decision_table.json is the same to read
failed/           scenarios of failed runs, to replay them
Start at          Folder
"""

from __future__ import annotations

import json
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.report.page import lab_version
from rebalance_lab.spark_eval.sweep_file import Sweep

MANIFEST = "sweep.json"
SUCCESS = "_SUCCESS"
FORMAT = "rebalance-lab sweep 1"


class Folder:
    def __init__(self, spark: Any, out: str) -> None:
        self.spark = spark
        self.jvm = spark.sparkContext._jvm
        path = self.jvm.org.apache.hadoop.fs.Path(out)
        self.files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        # A local folder is a path to us and a URL to Spark, which would look in HDFS if that is its default.
        self.root = self.files.makeQualified(path).toString()
        self.last_wave = max((int(name.partition("-")[2]) for name in self.names("runs")), default=0)

    def at(self, *names: str) -> str:
        return "/".join((self.root, *names))

    def path(self, *names: str) -> Any:
        return self.jvm.org.apache.hadoop.fs.Path(self.at(*names))

    def exists(self, *names: str) -> bool:
        return bool(self.files.exists(self.path(*names)))

    def remove(self, *names: str) -> None:
        self.files.delete(self.path(*names), True)

    def names(self, *names: str) -> list[str]:
        """Return the names in a folder; none where there is no folder."""
        if not self.exists(*names):
            return []
        return sorted(one.getPath().getName() for one in self.files.listStatus(self.path(*names)))

    def write_text(self, text: str, *names: str) -> None:
        stream = self.files.create(self.path(*names), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read_text(self, *names: str) -> str:
        stream = self.files.open(self.path(*names))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    # Whose folder this is

    def claim(self, sweep: Sweep, *, resume: bool) -> None:
        """Mark the folder as this sweep's, or say why it cannot be."""
        if not self.exists(MANIFEST):
            if self.names():
                raise ContractError("--out", f"{self.root} holds something else: name an empty or a new folder")
            self.write_text(json.dumps(manifest(sweep), ensure_ascii=False, indent=1) + "\n", MANIFEST)
            return
        known = self.manifest()
        if known["sweep_id"] != sweep.sweep_id:
            raise ContractError("--out", f"{self.root} holds another sweep, {known['name']!r}: name another folder")
        if not resume:
            raise ContractError("--out", f"{self.root} holds this sweep already: --resume goes on with it")
        if known["version"] != lab_version():
            raise ContractError("--out", f"{self.root} was begun with version {known['version']}: runs would not match")

    def manifest(self) -> dict[str, Any]:
        try:
            known: dict[str, Any] = json.loads(self.read_text(MANIFEST))
        except ValueError:
            known = {}
        if known.get("format") != FORMAT:
            raise ContractError("--out", f"{self.at(MANIFEST)} is not a sweep's")
        return known

    # Waves

    def waves(self) -> list[str]:
        """Return the waves that are finished."""
        return [name for name in self.names("runs") if self.exists("runs", name, SUCCESS)]

    def remove_halves(self) -> None:
        for name in set(self.names("runs")) - set(self.waves()):
            self.remove("runs", name)

    def next_wave(self) -> str:
        """Return a number above all waves that were there, so that the orphan of a killed driver writes elsewhere."""
        self.last_wave += 1
        return f"wave-{self.last_wave:05}"

    def results(self) -> Any | None:
        paths = [self.at("runs", name) for name in self.waves()]
        if not paths:
            return None
        from rebalance_lab.spark_eval.stages.frame_schemas import RESULTS

        return self.spark.read.schema(RESULTS).parquet(*paths)


def manifest(sweep: Sweep) -> dict[str, Any]:
    return {"format": FORMAT, "name": sweep.name, "sweep_id": sweep.sweep_id, "version": lab_version()}

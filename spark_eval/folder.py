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
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError
from rebalance_lab.harness.evaluate.report.page import lab_version
from rebalance_lab.spark_eval.sweep_file import Sweep

MANIFEST = "sweep.json"
MANIFEST_KEYS = ("format", "name", "sweep_id", "version")
SUCCESS = "_SUCCESS"
FORMAT = "rebalance-lab sweep 1"
WAVE = re.compile(r"wave-(\d+)")
PARQUET = b"PAR1"
"""What a Parquet file begins and ends with."""


class Folder:
    def __init__(self, spark: Any, out: str) -> None:
        self.spark = spark
        self.jvm = spark.sparkContext._jvm
        path = self.jvm.org.apache.hadoop.fs.Path(out)
        self.files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        # A local folder is a path to us and a URL to Spark, which would look in HDFS if that is its default.
        self.root = self.files.makeQualified(path).toString()
        numbers = (WAVE.fullmatch(name) for name in self.names("runs"))
        self.last_wave = max((int(found[1]) for found in numbers if found), default=0)

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
            with self.damage(MANIFEST):
                known: Any = json.loads(self.read_text(MANIFEST))
        except ValueError:
            known = None
        whole = isinstance(known, dict) and all(isinstance(known.get(key), str) for key in MANIFEST_KEYS)
        if not whole or known["format"] != FORMAT:
            raise ContractError("--out", f"{self.at(MANIFEST)} is damaged, or is not a sweep's: name another folder")
        found: dict[str, Any] = known
        return found

    @contextmanager
    def damage(self, *names: str) -> Iterator[None]:
        """Tell in one line that a file cannot be read, such as one that its checksum does not fit."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            raise ContractError("--out", f"{self.at(*names)} is damaged: {first_cause(error)}") from None

    # Waves

    def waves(self) -> list[str]:
        """Return the waves that are finished."""
        return [name for name in self.names("runs") if self.exists("runs", name, SUCCESS)]

    def check_waves(self) -> None:
        """Check that the finished waves' files are whole: Spark passes over an empty one, and loses its runs."""
        for wave in self.waves():
            for name in self.names("runs", wave):
                if name.endswith(".parquet"):
                    with self.damage("runs", wave, name):
                        whole = self.is_parquet("runs", wave, name)
                    if not whole:
                        again = f"remove {self.at('runs', wave)}, and --resume runs that part again"
                        message = f"{self.at('runs', wave, name)} is damaged, no whole Parquet file: {again}"
                        raise ContractError("--out", message)

    def is_parquet(self, *names: str) -> bool:
        length = self.files.getFileStatus(self.path(*names)).getLen()
        if length < 3 * len(PARQUET):
            return False
        stream = self.files.open(self.path(*names))
        try:
            first = bytes(stream.readNBytes(len(PARQUET)))
            stream.seek(length - len(PARQUET))
            return first == bytes(stream.readNBytes(len(PARQUET))) == PARQUET
        finally:
            stream.close()

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


def first_cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line.startswith("Caused by:")), lines[0])


def manifest(sweep: Sweep) -> dict[str, Any]:
    return {"format": FORMAT, "name": sweep.name, "sweep_id": sweep.sweep_id, "version": lab_version()}

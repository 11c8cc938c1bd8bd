"""Open a Spark session with this Python and this machine's address, without noise, and with clear errors.

Given      a master: local[*], local-cluster[...], spark://host:port or whatever Spark knows
Returns    a session; ContractError where there is no Java, no master answers, or no worker takes the work
Leaves     the user's own settings alone: PYSPARK_PYTHON, SPARK_LOCAL_IP and SPARK_LOCAL_HOSTNAME win
Start at   open_session
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError

ROOMS = ("assignors", "protocol_v1", "protocol_v2", "harness", "spark_eval")
"""What executors import."""
LOOPBACK = "127.0.0.1"
ANSWER_S = 5.0
"""For a master to accept a connection."""
EXECUTOR_S = 60.0
"""For a cluster to give us one executor."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.worker.reuse": "true",
    # The work is Python's. A JVM that compiles as little as it can is up in half the time; but every wave brings
    # classes of its own, and what such a JVM reserves for them by itself is full after ten minutes.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    # Driver and executors find each other by address where the host's name does not resolve.
    "spark.driver.bindAddress": LOOPBACK,
}


@contextmanager
def open_session(master: str = "local[*]", *, name: str = "rebalance-lab", noisy: bool = False) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    check_java()
    check_master(master)
    set_environment(master)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings_for(master).items():
        builder = builder.config(key, value)
    with quiet_jvm(noisy) as log:
        spark = started(builder, master, log)
    try:
        if not noisy:
            spark.sparkContext.setLogLevel("OFF")
            logging.getLogger().addFilter(not_of_py4j)
        # Executors that come later fetch the archive later: it stays until the end.
        with tempfile.TemporaryDirectory() as folder:
            if not is_local(master):
                spark.sparkContext.addPyFile(str(archive_of_packages(Path(folder))))
                wait_for_executor(spark, master)
            yield spark
    finally:
        spark.stop()


def not_of_py4j(record: logging.LogRecord) -> bool:
    """Drop py4j's log: of a call that Ctrl-C breaks off it prints the whole way there, through the root logger."""
    return "py4j" not in record.pathname


def settings_for(master: str) -> dict[str, str]:
    if is_local(master) or on_this_machine(master):
        return SETTINGS
    return {key: value for key, value in SETTINGS.items() if key != "spark.driver.bindAddress"}


def is_local(master: str) -> bool:
    """Tell whether Spark runs in one process, or in processes of this machine that it starts itself."""
    return master.startswith("local")


def on_this_machine(master: str) -> bool:
    return master.startswith(f"spark://{LOOPBACK}:")


def set_environment(master: str) -> None:
    """Set the environment before the JVM starts, which hands it on to the Python workers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_local(master) or on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", LOOPBACK)
    if is_local(master):
        # Where our packages are, and where a user's own assignor lies.
        wanted = [str(Path(__file__).parents[2]), os.getcwd()]
        known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*known, *wanted]))


def check_java() -> None:
    from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
    from rebalance_lab.harness.kafka.brokers.processes.java import find_java

    try:
        find_java()
    except BrokerError as error:
        raise ContractError("java", str(error).replace("Kafka's brokers need", "Spark needs")) from None


def check_master(master: str) -> None:
    """Check that the master answers; Spark itself would try for a minute and then say so in forty lines."""
    if not master.startswith("spark://"):
        return
    addresses = master.removeprefix("spark://").split(",")
    for address in addresses:
        host, _, port = address.rpartition(":")
        if not host or not re.fullmatch(r"\d{1,5}", port):
            raise ContractError("--master", f"expected spark://host:port, got {master}")
        try:
            socket.create_connection((host, int(port)), ANSWER_S).close()
        except OSError:
            continue
        return
    raise ContractError("--master", f"{master} does not answer: is the master up, and is this its port?")


@contextmanager
def quiet_jvm(noisy: bool) -> Iterator[Path | None]:
    """Give the JVM a file as standard error, which it keeps for life, unless the user wants to see it."""
    if noisy:
        yield None
        return
    handle, name = tempfile.mkstemp(prefix="rebalance-lab-spark-", suffix=".log")
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(handle, 2)
        yield Path(name)
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(handle)
        # Spark goes on writing to it; the name is not needed any more.
        os.unlink(name)


def started(builder: Any, master: str, log: Path | None) -> Any:
    try:
        return builder.getOrCreate()
    except KeyboardInterrupt:
        raise
    except Exception as error:  # noqa: BLE001 - py4j's and pyspark's own, whichever comes first
        said = log.read_text("utf-8", "replace").splitlines() if log is not None else []
        why = next((line for line in said if "Exception" in line or "rror:" in line), str(error).splitlines()[0])
        raise ContractError("--master", f"Spark does not start with {master}: {why.strip()}") from None


def wait_for_executor(spark: Any, master: str) -> None:
    """Wait for an executor: a master without workers accepts everything and does nothing."""
    ends = time.monotonic() + EXECUTOR_S
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > ends:
            raise ContractError("--master", f"{master} gave no executor within {EXECUTOR_S:.0f} s: has it workers?")
        time.sleep(0.2)


def archive_of_packages(folder: Path) -> Path:
    """Make an archive of our packages for executors on other machines. What they import has to be installed there."""
    root, archive = Path(__file__).parents[2], folder / "rebalance_lab.zip"
    if root.is_file():  # we run from a wheel: Spark's executors take the same file only under another name
        shutil.copy(root, archive)
        return archive
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        package = root / "rebalance_lab"
        for file in (
            package / "__init__.py",
            *(file for room in ROOMS for file in sorted((package / room).rglob("*.py"))),
        ):
            zipped.write(file, file.relative_to(root).as_posix())
    return archive

"""A standalone master with two workers on this machine: processes of pyspark's own bin/spark-class, which all end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
READY_S = 120.0


@contextmanager
def standalone(folder: Path, workers: int = 2, *, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """The master's URL. `folder` gets what executors write; `env` is what workers know besides the usual."""
    with ExitStack() as stack:
        port = free_port()
        url = f"spark://127.0.0.1:{port}"
        stack.enter_context(jvm(MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"))
        wait_for(port)
        for number in range(workers):
            place = str(folder / f"worker-{number}")
            stack.enter_context(
                jvm(WORKER, "--cores", "1", "--memory", "1g", "--work-dir", place, "--webui-port", "0", url, env=env)
            )
        yield url


@contextmanager
def jvm(main: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    import pyspark

    script = Path(pyspark.__file__).parent / "bin" / "spark-class"
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        [str(script), main, *arguments],
        env={
            **os.environ,
            **local,
            **(env or {}),
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(port: int) -> None:
    ends = time.monotonic() + READY_S
    while time.monotonic() < ends:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"no master at port {port} within {READY_S:.0f} s")

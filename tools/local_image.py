"""Build a Kafka image from what this machine has, where none can be pulled: `make kafka-image`.

Given      a Docker engine, the host's Java runtime (Linux with glibc), Maven's artifacts and a static busybox
Returns    an image that is driven by the same KAFKA_* variables as the official one. It starts with Kafka's own
           kafka.docker.KafkaDockerWrapper, which turns them into a configuration and formats the storage
Start at   build; `python -m tools.local_image` prints a name for REBALANCE_LAB_KAFKA_IMAGE

The files go as one tar stream into `docker import`, which needs no builder and no base image.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rebalance_lab.harness.kafka.brokers.cluster_interface import BrokerError
from rebalance_lab.harness.kafka.brokers.processes.artifacts import kafka_jars
from rebalance_lab.harness.kafka.brokers.processes.java import find_java
from rebalance_lab.harness.kafka.brokers.providers.containers import connect
from rebalance_lab.harness.kafka.brokers.versions import kafka_version as resolve_version

LOCAL_IMAGE = "rebalance-lab/kafka"

START = """\
#!/bin/sh -e
# The official image's variables: KAFKA_X_Y becomes x.y, CLUSTER_ID formats the storage.
export CLASSPATH='/opt/kafka/libs/*'
java="/opt/java/bin/java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS"
said=$($java kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker \\
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) || case $said in
  *"already formatted"*) ;;  # a restart: the storage is as the node left it
  *) echo "$said"; exit 1 ;;
esac
exec $java -Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml kafka.Kafka /opt/kafka/config/server.properties
"""

LOGGING = """\
Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout: {pattern: "[%d] %p %m (%c)%n"}
  Loggers:
    Root:
      level: INFO
      AppenderRef: [{ref: STDOUT}]
"""

USER = 1000
CHANGES = [
    'CMD ["/etc/kafka/docker/run"]',
    "ENV PATH=/opt/java/bin:/bin",
    "ENV LANG=C.UTF-8",
    f"USER {USER}:{USER}",
]
EMPTY_FOLDERS = ("tmp", "mnt/shared/config", "opt/kafka/config", "opt/kafka/logs", "var/lib/kafka/data")


def build(kafka_version: str | None = None, image: str = LOCAL_IMAGE) -> str:
    """Make the image on the engine that answers, and return its name with the tag."""
    version = resolve_version(kafka_version)
    files = {**_java_files(), **_library_files(), "bin/busybox": _busybox()}
    files |= {f"opt/kafka/libs/{jar.name}": jar for jar in kafka_jars(version)}
    client = connect()
    from docker.errors import DockerException

    try:
        # On disk, not in memory: it is some 240 MB.
        with tempfile.TemporaryFile() as layer:
            _write(layer, files)
            layer.seek(0)
            client.api.import_image_from_data(layer, repository=image, tag=version, changes=CHANGES)
        client.images.get(f"{image}:{version}")
    except DockerException as error:
        raise BrokerError(f"the Docker engine refused the image: {error}") from error
    finally:
        client.close()
    return f"{image}:{version}"


def _java_files() -> dict[str, Path]:
    home = Path(find_java()).resolve().parent.parent
    found = {}
    for folder in ("bin", "conf", "lib"):
        for path in _walk(home / folder):
            # Links may dangle where only parts of a JDK are installed; its sources serve no broker.
            if path.exists() and path.name not in ("src.zip", "ct.sym"):
                found[f"opt/java/{path.relative_to(home)}"] = path
    return found


def _walk(folder: Path) -> list[Path]:
    """List a folder with what links point to: Debian keeps a Java's configuration in /etc."""
    return [Path(root) / name for root, _, names in os.walk(folder, followlinks=True) for name in names]


def _library_files() -> dict[str, Path]:
    """List what the dynamic linker says Java needs, and all of glibc: zstd's library is linked to its empty stubs."""
    home = Path(find_java()).resolve().parent.parent
    binaries = [home / "bin" / "java", *(home / "lib").rglob("*.so")]
    listed = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True).stdout
    libraries = {Path(found) for found in re.findall(r"(/\S+\.so\S*) \(0x", listed)}
    libraries = {path for path in libraries if home not in path.parents}
    for glibc in [path for path in libraries if path.name == "libc.so.6"]:
        stubs = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libm.so.6", "libresolv.so.2", "libnss_dns.so.2")
        libraries |= {glibc.with_name(name) for name in (*stubs, "libnss_files.so.2")}
    if not libraries:
        raise BrokerError("cannot tell which libraries Java needs: ldd lists none (a Linux with glibc is needed)")
    return {str(path).lstrip("/"): path for path in libraries if path.exists()}


def _busybox() -> Path:
    found = shutil.which("busybox")
    if found is None:
        raise BrokerError("no busybox for the image's shell (Debian: apt-get install busybox-static)")
    linked = subprocess.run(["ldd", found], capture_output=True, text=True)
    if "=>" in linked.stdout:
        raise BrokerError(f"{found} is not static (Debian: apt-get install busybox-static)")
    return Path(found)


def _write(layer: object, files: dict[str, Path]) -> None:
    texts = {
        "etc/passwd": "root:x:0:0::/:/bin/sh\nappuser:x:1000:1000::/tmp:/bin/sh\n",
        "etc/group": "root:x:0:\nappuser:x:1000:\n",
        "etc/nsswitch.conf": "hosts: files dns\n",
        "etc/kafka/docker/run": START,
        "etc/kafka/docker/log4j2.yaml": LOGGING,
        "etc/kafka/docker/tools-log4j2.yaml": LOGGING,
        "etc/kafka/docker/server.properties": "",
    }
    with tarfile.open(fileobj=layer, mode="w", dereference=True) as tar:  # type: ignore[call-overload]
        for name in EMPTY_FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o777, USER, USER
            tar.addfile(folder)
        for name, path in sorted(files.items()):
            tar.add(path, arcname=name, recursive=False)
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
        shell = tarfile.TarInfo("bin/sh")
        shell.type, shell.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(shell)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.local_image", description="Build a Kafka image.")
    parser.add_argument("--kafka-version", help="instead of the pinned one")
    parser.add_argument("--image", default=LOCAL_IMAGE, help="its name without the tag")
    asked = parser.parse_args(arguments)
    try:
        print(build(asked.kafka_version, asked.image))
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Run one command for an owner, and take it down when the owner is gone, however it went.

Run as a script: `python keeper.py FOLDER LOG COMMAND...`; the command's output goes to LOG, and the first line on
standard output is its process id. Standard input is a pipe that only the owner holds. When that ends (closed in good
order, or by the kernel after a kill -9), the command is killed and FOLDER is removed. Linux's parent-death signal
would do half of this, but it also fires when the *thread* that started the command ends, and it removes no folder.

Only the standard library, and nothing of the lab: it starts with -I -S and lives beside every node.
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress


def main() -> int:
    folder, log, *command = sys.argv[1:]
    with open(log, "ab") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    orphaned = threading.Event()

    def wait_for_the_owners_end() -> None:
        os.read(0, 1)  # not through sys.stdin: its lock would be held when the interpreter ends
        orphaned.set()
        child.kill()

    threading.Thread(target=wait_for_the_owners_end, daemon=True).start()
    with suppress(BrokenPipeError):  # the owner is gone already; the thread above knows what to do
        os.write(1, f"{child.pid}\n".encode())
    code = child.wait()
    if orphaned.is_set():
        remove(folder)
    return 0 if code == 0 else 1


def remove(folder: str) -> None:
    """Remove again until it is gone: other nodes, or grandchildren of the command, may be writing to it as they die."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())

"""Run a process that answers one question after the other, for as long as the service lives.

Given      a socket to the service, the limits, and the niceness of the process
Ends       when the socket closes or the service is gone; the service kills it when a question takes too long
Loads      no custom code: custom assignors are refused for good before the first question
Start at   main
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from rebalance_lab.api.service.service_settings import Limits, TooMuch
from rebalance_lab.api.service.workers.frames import Kind, frame, frame_json, receive
from rebalance_lab.assignors.assignor_error import AssignorError
from rebalance_lab.assignors.json_contract import ContractError, decode
from rebalance_lab.assignors.strategies import refuse_custom
from rebalance_lab.harness.evaluate.runs import end_with_parent


def main(end: socket.socket, limits: Limits, niceness: int) -> None:
    settle_in(limits, niceness)
    from rebalance_lab.api.service.workers.work import OPERATIONS

    try:
        end.sendall(frame(Kind.READY))
        while True:
            _, head = receive(end)
            _, body = receive(end)
            end.sendall(frame(Kind.TAKEN))
            asked = decode(head)
            end.sendall(answer(OPERATIONS[asked["operation"]], body, asked["options"], limits, end))
    except (EOFError, ConnectionError):
        sys.exit(0)


def settle_in(limits: Limits, niceness: int) -> None:
    """Leave Ctrl-C to the service. It stays more important than its processes, so that it can always answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    refuse_custom()
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_AS, (limits.worker_bytes, limits.worker_bytes))


def answer(operation: Any, body: bytes, options: dict[str, Any], limits: Limits, end: socket.socket) -> bytes:
    def tell(done: float, **more: Any) -> None:
        end.sendall(frame_json(Kind.PROGRESS, {"done": round(done, 4), **more}))

    try:
        return frame(Kind.DONE, operation(body, options, limits, tell))
    except ContractError as error:
        return frame_json(Kind.REFUSED, told(error))
    except AssignorError as error:
        return frame_json(Kind.REFUSED, {"path": error.path, "message": str(error), "limit": None})
    except MemoryError:
        return frame_json(Kind.REFUSED, told(TooMuch("worker_bytes", "", "this takes more memory than there is")))
    except RecursionError:  # deep enough to be read and too deep to be shown
        return frame_json(Kind.REFUSED, told(ContractError("", "the JSON is nested too deeply")))
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001 - a bug of ours: one request fails, with its trace in the log
        return frame_json(Kind.FAILED, {"trace": traceback.format_exc()})


def told(error: ContractError) -> dict[str, Any]:
    return {"path": error.path, "message": error.message, "limit": getattr(error, "limit", None)}

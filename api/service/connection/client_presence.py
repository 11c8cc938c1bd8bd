"""End work whose client has gone: its answer would reach no client, and other clients wait for its place.

Start at   run_while_present
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from rebalance_lab.api.service.connection.problems import Problem

T = TypeVar("T")


async def run_while_present(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns. Cancel it and raise the problem `gone` as soon as the client is gone."""
    working = asyncio.ensure_future(work)
    going = asyncio.ensure_future(wait_until_gone(request))
    try:
        await asyncio.wait({working, going}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Problem("gone", "the client went away before its answer")
        return working.result()
    finally:
        working.cancel()
        going.cancel()
        await asyncio.wait({working, going})


async def wait_until_gone(request: Request) -> None:
    """Wait for the end of the connection, and drop what is left of the body."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

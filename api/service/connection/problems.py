"""Represent every refusal as RFC 9457 has it: application/problem+json with the path of the bad field.

Start at   Problem; every refusal of the service is one
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rebalance_lab.assignors.json_contract import ContractError

CONTENT_TYPE = "application/problem+json"
TITLES: Mapping[str, tuple[int, str]] = {
    "malformed": (400, "The request cannot be read"),
    "unauthorized": (401, "A token is needed"),
    "not-found": (404, "There is no such thing"),
    "method": (405, "That cannot be done here"),
    "unfinished": (409, "It has no result"),
    "slow": (408, "The request did not arrive in time"),
    "body-too-large": (413, "The body is too large"),
    "media-type": (415, "The body is of another kind"),
    "wrong-host": (421, "This service goes by another name"),
    "invalid": (422, "The request is wrong"),
    "limit": (422, "The request asks for too much"),
    "rate": (429, "Too many requests"),
    "gone": (499, "The client is gone"),
    "failed": (500, "The service has a bug"),
    "busy": (503, "The service is busy"),
    "stopping": (503, "The service is stopping"),
    "cluster": (503, "The cluster does not answer"),
}
OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)\b")


class Problem(Exception):
    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        path: str | None = None,
        limit: str | None = None,
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status, self.title = TITLES[kind]
        self.detail = detail
        self.path = path
        self.limit = limit
        """Which of the configured limits, by its name in the settings."""
        self.headers = dict(headers or {})
        if retry_after_s is not None:
            self.headers["retry-after"] = str(retry_after_s)

    def to_json(self, request_id: str | None = None) -> dict[str, Any]:
        told = {
            "type": f"urn:rebalance-lab:problem:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "path": self.path,
            "limit": self.limit,
            "request_id": request_id,
        }
        return {name: value for name, value in told.items() if value is not None}

    def body(self, request_id: str | None = None) -> bytes:
        return json.dumps(self.to_json(request_id)).encode()


def of_contract(error: ContractError, limit: str | None = None) -> Problem:
    """Turn a ContractError into a Problem: the command line's options are a request's parameters, without dashes."""
    return Problem(
        "limit" if limit else "invalid", as_parameters(error.message), path=as_parameters(error.path), limit=limit
    )


def as_parameters(text: str) -> str:
    return OPTION.sub(lambda found: found[1].replace("-", "_"), text)

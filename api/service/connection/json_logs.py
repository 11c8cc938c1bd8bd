"""Log as JSON lines on standard error. The log of a request never holds its Authorization, body or query."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

LOG = logging.getLogger("rebalance_lab.service")


class JsonLines(logging.Formatter):
    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log(message: str, level: int = logging.INFO, **fields: Any) -> None:
    LOG.log(level, message, extra={"fields": fields})


def set_up(level: str) -> None:
    """Set up one stream for our logs and uvicorn's; uvicorn's access log is off, because ours says more."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("rebalance_lab.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper() if name == LOG.name else "WARNING")

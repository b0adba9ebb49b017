"""Structured logs: one JSON object per line on standard error, or plain lines for people."""

import json
import logging
import sys
from datetime import UTC, datetime

NAME = "evergraph.server"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "members", {}),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False, default=str)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        members = " ".join(f"{name}={value}" for name, value in getattr(record, "members", {}).items())
        text = f"evergraph: {record.getMessage()}" + (f" ({members})" if members else "")
        return text + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up(*, as_json: bool, level: str = "info") -> logging.Logger:
    """Let the broker and the server below it write to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if as_json else _Plain())
    logger = logging.getLogger(NAME)
    for one in (logger, logging.getLogger("uvicorn.error")):
        one.handlers[:] = [handler]
        one.propagate = False
    logger.setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel("WARNING")
    return logger


def tell(message: str, level: int = logging.INFO, **members: object) -> None:
    """Log something with what belongs to it."""
    logging.getLogger(NAME).log(level, message, extra={"members": members})

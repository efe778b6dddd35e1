"""Logging of the service, its server and its workers: lines for people, or JSON for machines."""

import logging
import os
from datetime import UTC, datetime
from typing import Any

import orjson

from app.request_context import REQUEST
from app.store.keys import hidden

ACCESS = "app.access"
"""Name of the logger that writes one line for each request."""
FIELDS = "fields"
"""Name of the attribute of a log record that holds extra members of its JSON line."""


def configuration(log_format: str, level: str) -> dict[str, Any]:
    """Return the logging configuration for `logging.config` and the server."""
    if log_format == "json":
        formatters: dict[str, Any] = {name: {"()": JsonFormatter} for name in ("default", "server", "access")}
    else:
        formatters = {
            "default": {"format": "%(levelname)s:     %(name)s: %(message)s"},
            "server": {"()": "uvicorn.logging.DefaultFormatter", "fmt": "%(levelprefix)s %(message)s"},
            "access": {
                "()": "uvicorn.logging.AccessFormatter",
                "fmt": '%(levelprefix)s %(client_addr)s - "%(request_line)s" %(status_code)s',
            },
        }
    streams = {"default": "stderr", "server": "stderr", "access": "stdout"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": formatters,
        "handlers": {
            name: {"class": "logging.StreamHandler", "formatter": name, "stream": f"ext://sys.{stream}"}
            for name, stream in streams.items()
        },
        "root": {"handlers": ["default"], "level": level.upper()},
        "loggers": {
            "uvicorn": {"handlers": ["server"], "level": level.upper(), "propagate": False},
            ACCESS: {"handlers": ["access"], "level": level.upper(), "propagate": False},
        },
    }


class JsonFormatter(logging.Formatter):
    """Formatter that writes a record as one line of JSON and hides the secrets of keys."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON, with the ids of its request and of the job that the request started."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": os.getpid(),
            "message": record.getMessage(),
        }
        request = REQUEST.get()
        if request is not None:
            line |= request.ids
        line |= getattr(record, FIELDS, {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return hidden(orjson.dumps(line, default=str).decode())

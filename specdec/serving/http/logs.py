"""The log as one JSON object a line, each with the request that it is about."""

import json
import logging
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from specdec.serving.http.tracing import current


class JsonLines(logging.Formatter):
    """A record as one line of ASCII: time, level, logger, message, the request's ids, and its `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        ids = current.get()
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(asdict(ids) if ids else {}),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_lines() -> None:
    """Write the log of this process to standard error, one JSON object a line; our own from level INFO."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("specdec").setLevel(logging.INFO)

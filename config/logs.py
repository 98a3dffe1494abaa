"""Logging: one line per event, for people or for machines; never a secret, never a prompt."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Any

import structlog

from config.supervisor import MARK

#: What looks like a credential is cut out wherever it stands: in a URL, an error of a library, a header.
_SECRETS = re.compile(
    r"(?<=://)[^/@\s:]*:[^/@\s]+(?=@)|\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}|(?<=Bearer )\S+", re.ASCII
)
_MASK = "***"


def mask_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace credentials in every value of an event."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _SECRETS.sub(_MASK, value)
    return event


def logging_config(*, level: str, form: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING, so that both write alike.

    `form` is `console` or `json`.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        # The supervisor's log has the time on every line.
        *([] if MARK in os.environ else [structlog.processors.TimeStamper(fmt="iso", utc=True)]),
        structlog.stdlib.ExtraAdder(),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.UnicodeDecoder(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    if form == "json":
        render: list[Any] = [
            structlog.processors.format_exc_info,
            mask_secrets,
            structlog.processors.JSONRenderer(),
        ]
    else:
        # Plain ones: without the values of variables, among them prompts and keys, and without frames around each line.
        tracebacks = structlog.dev.plain_traceback
        render = [
            mask_secrets,
            structlog.dev.ConsoleRenderer(pad_event_to=24, exception_formatter=tracebacks),
        ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "arbor": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "arbor"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # One line per task and per connection attempt drowns what matters; heartbeats log themselves.
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            "django.server": {"level": "WARNING"},
        },
    }

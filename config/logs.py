"""Logging: one line per event, for people or for machines; never a secret, never a prompt."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from config.supervisor import MARK

#: What looks like a credential is cut out wherever it stands: in a URL, an error of a library, a header.
_SECRETS = re.compile(
    r"(?<=://)[^/@\s:]*:[^/@\s]+(?=@)|\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}|(?<=Bearer )\S+", re.ASCII
)
_MASK = "***"


def mask_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace credentials in every value of an event, however deep."""
    for key, value in event.items():
        event[key] = _masked(value)
    return event


def _masked(value: Any) -> Any:
    match value:
        case str():
            return _SECRETS.sub(_MASK, value)
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {_masked(key): _masked(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_masked(item) for item in value]
    # What is left is written as its `repr`, by either form; an exception's has the text of what went wrong.
    return _SECRETS.sub(_MASK, repr(value))


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
    # Tracebacks are plain: without the values of variables, among them prompts and keys; text before they are masked.
    render: list[Any] = [structlog.processors.format_exc_info, mask_secrets]
    if form == "json":
        render.append(structlog.processors.JSONRenderer())
    else:
        # It would warn that the traceback could be a pretty one.
        plain = structlog.dev.plain_traceback
        render.append(structlog.dev.ConsoleRenderer(pad_event_to=24, exception_formatter=plain))
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

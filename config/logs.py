"""Logging: one line per event, for people or for machines, without secrets and prompts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import kombu.exceptions
import psycopg
import structlog
from celery.beat import SchedulingError

from arbor.errors import ConfigurationInvalid
from config.supervisor import MARK

#: Texts that look like credentials, masked in all values: in a URL, an error of a library, a header.
_SECRETS = re.compile(
    r"(?<=://)[^/@\s:]*:[^/@\s]+(?=@)|\b(?:sk|pk|rk)-[A-Za-z0-9_\-]{12,}|(?<=Bearer )\S+"
    # Tokens of Arbor's API, secrets of webhooks, keys of Google, tokens of GitHub.
    r"|\b(?:arbor_[A-Za-z0-9_-]{32,}|whsec_[A-Za-z0-9+/_-]{24,}|AIza[A-Za-z0-9_-]{30,}|gh[opsur]_[A-Za-z0-9]{36,})",
    re.ASCII,
)
_MASK = "***"
#: What psycopg's errors of a connection say: it failed, it is closed, none was free, the server closed it.
_LOST_CONNECTION = re.compile("connection|server")
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def mask_secrets(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace credentials in every value of an event, however deep."""
    for key, value in event.items():
        event[key] = _mask(value)
    return event


def drop_color_message(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop the copy of the message with color codes, which uvicorn adds for its own formatter."""
    event.pop("color_message", None)
    return event


def drop_outage_traceback(
    _logger: Any, _name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Drop the traceback of a library's record whose error says only that the database or the broker does not answer.

    Celery repeats such records every second. The error stays, in the message or beside it.
    """
    match event.get("exc_info"):
        case (_, BaseException() as error, _) if _is_outage(error):
            del event["exc_info"]
            # Celery's scheduler adds its stack to the message.
            event["event"] = str(event["event"]).partition("\n")[0]
            if str(error).partition("\n")[0] not in event["event"]:
                event["error"] = str(error)
    return event


def _is_outage(error: BaseException) -> bool:
    # Django and Celery's scheduler wrap the error of the connection.
    cause = error.__context__ if isinstance(error, SchedulingError) else error.__cause__ or error
    if isinstance(cause, psycopg.OperationalError):
        # Faults of the client have no code of the server either.
        return cause.sqlstate is None and _LOST_CONNECTION.search(str(cause)) is not None
    return isinstance(cause, kombu.exceptions.OperationalError)


def _mask(value: Any) -> Any:
    match value:
        case str():
            return _SECRETS.sub(_MASK, value)
        case None | bool() | int() | float():
            return value
        case Mapping():
            # A key must be hashable, which the list for a tuple is not.
            return {
                _mask(repr(key) if isinstance(key, tuple | frozenset) else key): _mask(item)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [_mask(item) for item in value]
    # Both formats write other values as `repr`, which for an exception contains its message.
    return _SECRETS.sub(_MASK, repr(value))


def logging_config(*, level: str, form: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING, so that both write alike.

    `form` is `console` or `json`. Raises ConfigurationInvalid for another form, or an unknown level.
    """
    if level not in _LEVELS:
        raise ConfigurationInvalid(
            f"ARBOR_LOG_LEVEL must be {', '.join(_LEVELS[:-1])} or {_LEVELS[-1]}, got {level!r}"
        )
    if form not in ("console", "json"):
        raise ConfigurationInvalid(f"ARBOR_LOG_FORMAT must be console or json, got {form!r}")
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        # The supervisor's log adds the time to every line.
        *([] if MARK in os.environ else [structlog.processors.TimeStamper(fmt="iso", utc=True)]),
        structlog.stdlib.ExtraAdder(),
        drop_color_message,
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
    # Tracebacks are plain, without the values of variables such as prompts and keys, and become text before the masking.
    render: list[Any] = [drop_outage_traceback, structlog.processors.format_exc_info, mask_secrets]
    if form == "json":
        render.append(structlog.processors.JSONRenderer())
    else:
        # Any other formatter would warn that the traceback is text already.
        plain = structlog.dev.plain_traceback
        colors = sys.stderr.isatty()
        render.append(
            structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=24, exception_formatter=plain)
        )
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
            # A line per task and per connection attempt would hide other events; heartbeats log themselves.
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            # The clients of tool servers log addresses, which may contain secrets, and answers of servers.
            "httpx2": {"level": "WARNING"},
            "mcp.client": {"level": "CRITICAL"},
            "httpcore": {"level": "WARNING"},
            "django.server": {"level": "WARNING"},
        },
    }

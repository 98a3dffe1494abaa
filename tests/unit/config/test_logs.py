"""Values of logged events: masked credentials, and copies for other formatters."""

from __future__ import annotations

import io
import logging
import logging.config
import sys
from collections.abc import Iterator

import kombu.exceptions
import psycopg
import pytest
import structlog
from celery.beat import SchedulingError
from django.db import OperationalError
from structlog.testing import capture_logs

from config.logs import logging_config
from tests.support.settings import read_settings

URL = "postgres://arbor:a-password@db.example:5432/arbor"


@pytest.fixture(params=["console", "json"])
def written(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """Yield the stream of a logger named `masked`, in one of the two formats."""
    before = structlog.get_config()
    stream = io.StringIO()
    config = logging_config(level="INFO", form=request.param)
    formatter = config["formatters"]["arbor"]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=formatter["processors"], foreign_pre_chain=formatter["foreign_pre_chain"]
        )
    )
    logger = logging.getLogger("masked")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    structlog.configure(**before)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "has_colors"), [(Terminal(), True), (io.StringIO(), False)])
def test_only_a_terminal_gets_colors(
    stream: io.StringIO, has_colors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    before = structlog.get_config()
    render = logging_config(level="INFO", form="console")["formatters"]["arbor"]["processors"][-1]
    structlog.configure(**before)
    assert ("\x1b" in render(None, "info", {"event": "heartbeat", "level": "info"})) == has_colors


def wrapped() -> dict[str, object]:
    return {
        "plain": URL,
        "in_a_dict": {"where": {URL: URL}},
        "in_a_list": [1, [URL]],
        "in_a_tuple": (URL, None),
        "in_a_key": {(URL, 1): 1},
        "in_an_exception": ValueError(URL),
    }


def test_no_value_shows_a_password(written: io.StringIO) -> None:
    structlog.get_logger("masked").warning("gone", **wrapped())
    shown = written.getvalue()
    assert "a-password" not in shown
    assert shown.count("postgres://***@db.example") == len(wrapped()) + 1


@pytest.mark.parametrize(
    "secret",
    [
        "arbor_" + "A" * 72,
        "whsec_" + "A1b2" * 8,
        "AIza" + "x" * 35,
        "ghp_" + "a" * 36,
    ],
)
def test_no_value_shows_a_key_or_token(written: io.StringIO, secret: str) -> None:
    structlog.get_logger("masked").warning("refused", error=ValueError(f"{secret} is not valid"))
    assert secret[6:] not in written.getvalue()


@pytest.mark.parametrize("logged_by", ["Arbor", "a library"])
def test_no_traceback_shows_a_password(written: io.StringIO, logged_by: str) -> None:
    try:
        raise ConnectionError(f"{URL} does not answer")
    except ConnectionError as error:
        if logged_by == "Arbor":
            structlog.get_logger("masked").exception("gone", error=error)
        else:
            logging.getLogger("masked").exception("%s is gone", error)
    shown = written.getvalue()
    assert "Traceback" in shown
    assert "a-password" not in shown
    assert "postgres://***@db.example" in shown


@pytest.mark.parametrize(
    ("cause", "shows_traceback"),
    [
        (psycopg.OperationalError("connection refused"), False),
        (psycopg.OperationalError("could not send data to server: Broken pipe"), False),
        (kombu.exceptions.OperationalError("connection refused"), False),
        (psycopg.OperationalError("number of parameters must be between 0 and 65535"), True),
        (psycopg.errors.DeadlockDetected("deadlock detected"), True),
        (ConnectionError("connection refused"), True),
    ],
)
def test_an_unreachable_server_is_logged_without_traceback(
    written: io.StringIO, cause: Exception, shows_traceback: bool
) -> None:
    try:
        raise OperationalError(str(cause)) from cause
    except OperationalError as error:
        logging.getLogger("masked").exception("Task failed: %r\n%s", error, ["File beat.py"])
    shown = written.getvalue()
    assert f"Task failed: OperationalError('{cause}')" in shown
    assert ("Traceback" in shown, "beat.py" in shown) == (shows_traceback, shows_traceback)


def test_a_message_without_its_error_gets_it_beside(written: io.StringIO) -> None:
    try:
        raise psycopg.OperationalError("connection refused")
    except psycopg.OperationalError:
        logging.getLogger("masked").exception("Service Unavailable: /x")
    shown = written.getvalue()
    assert "Service Unavailable: /x" in shown
    assert "connection refused" in shown
    assert "Traceback" not in shown


def test_a_message_of_the_scheduler_without_a_broker_is_one_line(written: io.StringIO) -> None:
    try:
        try:
            raise kombu.exceptions.OperationalError("connection refused")
        except kombu.exceptions.OperationalError:
            raise SchedulingError("couldn't apply claim_due: connection refused")  # noqa: B904 (as Celery does)
    except SchedulingError as error:
        logging.getLogger("masked").error("Message Error: %s\n%s", error, ["File beat.py"], exc_info=True)
    shown = written.getvalue()
    assert "Message Error: couldn't apply claim_due: connection refused" in shown
    assert shown.count("\n") == 1


def test_values_that_are_no_secret_are_not_masked(written: io.StringIO) -> None:
    structlog.get_logger("masked").info("counted", number=31_415, share=0.5, nothing=None, enabled=True)
    shown = written.getvalue().lower()
    for value in ("31415", "0.5", "true"):
        assert value in shown
    assert "***" not in shown


def test_a_message_with_color_codes_is_not_repeated(written: io.StringIO) -> None:
    logging.getLogger("masked").info(
        "Started process [%d]", 7, extra={"color_message": "Started [\x1b[36m%d\x1b[0m]"}
    )
    assert "Started process [7]" in written.getvalue()
    assert "color_message" not in written.getvalue()


def test_loggers_in_use_are_captured_after_settings_are_read() -> None:
    log = structlog.get_logger("in_use")
    log.info("first_message_logged")
    read_settings()
    with capture_logs() as logs:
        log.info("second_message_logged")
    assert [line["event"] for line in logs] == ["second_message_logged"]

"""Explanations of errors of the database."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from psycopg.errors import (
    DiskFull,
    InsufficientPrivilege,
    InvalidTableDefinition,
    OperationalError,
    QueryCanceled,
    UndefinedColumn,
)

from config.database_errors import explain_database_error, explain_refused_statement

SETTINGS = SimpleNamespace(ARBOR_HAS_DATABASE=True, ARBOR_RUNS_HERE=True, ARBOR_DERIVED_ROLES={})


@pytest.mark.parametrize(
    ("cause", "explanation"),
    [
        (OperationalError("connection refused"), "the database does not answer: connection refused."),
        (QueryCanceled("canceling statement due to statement timeout"), "ARBOR_STATEMENT_TIMEOUT_S"),
    ],
)
def test_an_error_is_explained_by_its_cause(cause: Exception, explanation: str) -> None:
    error = RuntimeError(str(cause))
    error.__cause__ = cause
    explained = explain_database_error(error, SETTINGS)
    assert explanation in explained
    assert ("Is `arbor up` running?" in explained) is not isinstance(cause, QueryCanceled)


def test_a_server_that_fails_is_not_said_to_be_away() -> None:
    error = RuntimeError("could not extend file: No space left on device\nHINT: Check free disk space.")
    error.__cause__ = DiskFull()
    explained = explain_database_error(error, SETTINGS)
    assert explained == "the database failed: could not extend file: No space left on device"


def test_an_error_without_a_message_is_named_by_its_class() -> None:
    explained = explain_database_error(RuntimeError(), SETTINGS)
    assert explained == "the database does not answer: RuntimeError. Is `arbor up` running?"


def test_an_external_database_that_is_away_names_its_setting() -> None:
    external = SimpleNamespace(ARBOR_HAS_DATABASE=True, ARBOR_RUNS_HERE=False, ARBOR_DERIVED_ROLES={})
    explained = explain_database_error(RuntimeError("connection refused"), external)
    assert explained == "the database does not answer: connection refused. Is DATABASE_URL right?"


@pytest.mark.parametrize(
    ("cause", "explanation"),
    [
        (
            InsufficientPrivilege('permission denied to create extension "vector"\nHINT: …'),
            "CREATE EXTENSION vector",
        ),
        (InsufficientPrivilege("permission denied to create role"), "CREATEROLE"),
        (
            InsufficientPrivilege("permission denied for table agents_agent"),
            "agents_agent; run `arbor prepare`",
        ),
        (
            UndefinedColumn("column goals_goal.depth does not exist"),
            "depth does not exist; run `arbor prepare`",
        ),
        (InvalidTableDefinition("a bug, which keeps its traceback"), None),
    ],
)
def test_a_refused_statement_names_its_remedy(cause: Exception, explanation: str | None) -> None:
    error = RuntimeError(str(cause))
    error.__cause__ = cause
    explained = explain_refused_statement(error)
    assert explained is None if explanation is None else explanation in str(explained)
    assert "\n" not in str(explained)

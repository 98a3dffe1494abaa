"""Explanations of errors of the database."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from psycopg.errors import OperationalError, QueryCanceled

from config.database_errors import explain_database_error

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

"""Explanations of a database that does not answer, each with its remedy."""

from __future__ import annotations

from typing import Any

#: The SQLSTATE of a statement that its time limit has ended.
_QUERY_CANCELED = "57014"


def explain_database_error(error: Exception, settings: Any) -> str:
    """Explain in one line why the database does not answer, or has canceled a statement, with the remedy."""
    if not settings.ARBOR_HAS_DATABASE:
        return ": ".join(explain_missing_database(runs_here=settings.ARBOR_RUNS_HERE))
    reason = str(error).strip().splitlines()[0]
    if getattr(error.__cause__, "sqlstate", None) == _QUERY_CANCELED:
        return f"the database needed too long and canceled a statement: {reason}. ARBOR_STATEMENT_TIMEOUT_S is the limit"
    # Django wraps the driver's error, which knows whether the server had asked for a password.
    refused = getattr(getattr(error.__cause__, "pgconn", None), "used_password", False)
    if refused and any(role in reason for role in settings.ARBOR_DERIVED_ROLES):
        return (
            f"the database refuses the role: {reason}; its password is derived from the master key: is ARBOR_MASTER_KEY"
            " the one that `arbor prepare` ran with?"
        )
    return f"the database does not answer: {reason}. Is `arbor up` running?"


def explain_missing_database(*, runs_here: bool) -> tuple[str, str]:
    """Return the problem and the remedy where no database is configured."""
    if runs_here:
        return (
            "Arbor runs here with an external database, whose address is not set",
            "set DATABASE_URL here too",
        )
    return (
        "Arbor is not running here",
        "start it with `arbor up`, or set DATABASE_URL to an external database",
    )

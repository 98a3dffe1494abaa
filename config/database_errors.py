"""Explanations of a database that does not answer, is not prepared or refuses a statement, each with its remedy."""

from __future__ import annotations

from typing import Any

#: The SQLSTATE of a statement that its time limit has ended.
_QUERY_CANCELED = "57014"
#: The classes of SQLSTATEs of connections that were refused or ended; a server that reports another one does answer.
_NO_CONNECTION = ("08", "28", "3D", "53300", "57P")
#: The SQLSTATE of statements that the role must not run, and the remedies by a part of the server's message.
_INSUFFICIENT_PRIVILEGE = "42501"
_PRIVILEGE_REMEDIES = {
    "extension": "let a superuser run `CREATE EXTENSION vector` in this database once",
    "create role": "let the role of DATABASE_URL create roles (`ALTER ROLE … CREATEROLE`)",
    "alter role": "another role made the serving roles: set ARBOR_APP_ROLE, ARBOR_OPS_ROLE and ARBOR_ACCOUNTS_ROLE to other names",
    "must be owner": "let DATABASE_URL name the role that owns the tables",
    "for schema": "let the role of DATABASE_URL own the database",
}
#: The SQLSTATEs of missing tables and columns.
_MISSING = frozenset({"42P01", "42703"})
_RUN_PREPARE = "run `arbor prepare` with the owner's DATABASE_URL"


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the name of its class if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def explain_refused_statement(error: Exception) -> str | None:
    """Explain in one line that a role lacks a privilege, or that the database is not prepared; None for other errors."""
    state = getattr(error.__cause__, "sqlstate", None)
    reason = first_line(error)
    if state == _INSUFFICIENT_PRIVILEGE:
        remedies = (remedy for part, remedy in _PRIVILEGE_REMEDIES.items() if part in reason)
        return f"the database refuses: {reason}; {next(remedies, _RUN_PREPARE)}"
    if state in _MISSING:
        return f"the database is not prepared for this version of Arbor: {reason}; {_RUN_PREPARE}"
    return None


def explain_database_error(error: Exception, settings: Any) -> str:
    """Explain in one line why the database does not answer, has failed or has canceled a statement, with the remedy."""
    if not settings.ARBOR_HAS_DATABASE:
        return ": ".join(explain_missing_database(runs_here=settings.ARBOR_RUNS_HERE))
    reason = first_line(error)
    state = getattr(error.__cause__, "sqlstate", None) or ""
    if state == _QUERY_CANCELED:
        return f"the database needed too long and canceled a statement: {reason}. ARBOR_STATEMENT_TIMEOUT_S is the limit"
    # Django wraps the driver's error, which knows whether the server had asked for a password.
    refused = getattr(getattr(error.__cause__, "pgconn", None), "used_password", False)
    if refused and any(role in reason for role in settings.ARBOR_DERIVED_ROLES):
        return (
            f"the database refuses the role: {reason}; its password is derived from the master key: is ARBOR_MASTER_KEY"
            " the one that `arbor prepare` ran with?"
        )
    if state and not state.startswith(_NO_CONNECTION):
        return f"the database failed: {reason}"
    remedy = "Is `arbor up` running?" if settings.ARBOR_RUNS_HERE else "Is DATABASE_URL right?"
    return f"the database does not answer: {reason}. {remedy}"


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

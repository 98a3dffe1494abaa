"""Messages about a database that does not answer."""

from __future__ import annotations

from typing import Any


def why_away(error: Exception, settings: Any) -> str:
    """Return in one line why, and what is to be done."""
    if not settings.ARBOR_HAS_DATABASE:
        return ": ".join(unnamed(runs_here=settings.ARBOR_RUNS_HERE))
    reason = str(error).strip().splitlines()[0]
    return f"the database does not answer: {reason}. Is `arbor up` running?"


def unnamed(*, runs_here: bool) -> tuple[str, str]:
    """Return what the matter is where no database is named, and what is to be done."""
    if runs_here:
        return "Arbor runs here with a database of yours, which is not named", "set DATABASE_URL here too"
    return "Arbor is not running here", "start it with `arbor up`, or set DATABASE_URL to a database of yours"

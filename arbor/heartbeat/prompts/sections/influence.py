"""Sections about the past that bears on the work at hand."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.heartbeat.influence_views import (
    ActionTally,
    AttemptView,
    PrecedentView,
    PublicationView,
    StepHandlerView,
)
from arbor.quotations import Data, line

_REASON_LENGTH = 300
_CONTENT_LENGTH = 200
_OUTCOMES = {
    "success": "reached",
    "failure": "given up",
    "partial": "given up, half of it done or more",
    "open": "still open, not reached so far",
}


def attempts(attempts: Sequence[AttemptView], data: Data) -> str:
    """Render earlier goals like the task that has arrived."""
    if not attempts:
        return ""
    return (
        "## Earlier attempts at tasks like this\nWhere one failed, go about it differently, and say what you change.\n"
        + data.block(_attempt(attempt) for attempt in attempts)
    )


def tallies(tallies: Sequence[ActionTally]) -> str:
    """Render what worked in situations like this one."""
    if not tallies:
        return ""
    counts = ", ".join(f"{entry.action} ({entry.successes} of {entry.attempts})" for entry in tallies)
    return (
        f"## What succeeded in situations like this\nSuccesses of tries, latest experiences only: {counts}."
    )


def precedents(precedents: Sequence[PrecedentView], data: Data) -> str:
    """Render people's decisions about requests like those that the agent may make."""
    if not precedents:
        return ""
    return (
        "## What people decided about requests like yours\nWeigh the risk by it, and frame a new request so that it meets the"
        " reasons.\n" + data.block(_precedent(precedent) for precedent in precedents)
    )


def publications(publications: Sequence[PublicationView], data: Data) -> str:
    """Render what became of earlier texts for people."""
    if not publications:
        return ""
    return (
        "## What became of what you wrote\nLet it inform topic, tone and timing of what you write for people.\n"
        + data.block(
            f"{publication.at:%Y-%m-%d %H:%M}, {publication.audience}, “{line(publication.content, _CONTENT_LENGTH)}”:"
            f" {line(publication.outcome, _REASON_LENGTH)}"
            for publication in publications
        )
    )


def handlers(handlers: Sequence[StepHandlerView], data: Data) -> str:
    """Render who was given work like this, and how it went."""
    if not handlers:
        return ""
    return (
        "## Who handled work like this\nIf you give it to another, prefer who completed it.\n"
        + data.block(_handler(handler) for handler in handlers)
    )


def _attempt(attempt: AttemptView) -> str:
    reasons = "; ".join(line(reason, _REASON_LENGTH) for reason in attempt.reasons)
    outcome = _OUTCOMES.get(attempt.outcome, attempt.outcome)
    return f"{attempt.at:%Y-%m-%d}, {line(attempt.title)}: {outcome}{f': {reasons}' if reasons else ''}"


def _precedent(precedent: PrecedentView) -> str:
    about = f" “{line(precedent.about, _CONTENT_LENGTH)}”" if precedent.about else ""
    decision = "approved" if precedent.approved else "denied"
    reason = f": {line(precedent.reason, _REASON_LENGTH)}" if precedent.reason else ""
    return f"{precedent.at:%Y-%m-%d}, {precedent.action}{about}: {decision}{reason}"


def _handler(handler: StepHandlerView) -> str:
    error = f"; the last failure: {line(handler.error, _REASON_LENGTH)}" if handler.error else ""
    return f"{line(handler.name)}: completed {handler.completed} of {handler.steps} steps, {handler.tries:g} tries each{error}"

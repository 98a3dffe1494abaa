"""Sections about the past that bears on the work at hand, and about actions that people approve or deny."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.authority.approvals import ApprovalStatus
from arbor.heartbeat.situation import ApprovalRequestView
from arbor.heartbeat.views import (
    ActionTallyView,
    AttemptView,
    PrecedentView,
    PublicationView,
    StepHandlerView,
)
from arbor.quotations import Data, counted, line

#: Requests for approval that are shown; the text counts the others.
SHOWN_REQUESTS = 10
_REASON_LENGTH = 300
_CONTENT_LENGTH = 200
_REQUEST_WORDS = {
    ApprovalStatus.PENDING: "waits for a person",
    ApprovalStatus.APPROVED: "approved, executed before your actions as soon as energy and the time between messages permit",
    ApprovalStatus.DENIED: "denied",
}
_OUTCOMES = {
    "success": "reached",
    "failure": "given up",
    "partial": "given up, half of it done or more",
    "open": "still open, not reached so far",
}


def approvals(requests: Sequence[ApprovalRequestView], data: Data) -> str:
    heading = "## Requests for approval\nDo not propose these actions again."
    left = len(requests) - SHOWN_REQUESTS
    more = f"\nBesides these: {left}." if left > 0 else ""
    return data.section(heading, map(_request, requests[:SHOWN_REQUESTS])) + more


def attempts(attempts: Sequence[AttemptView], data: Data) -> str:
    heading = "## Earlier attempts at tasks like this\nWhere one failed, go about it differently, and say what you change."
    return data.section(heading, map(_attempt, attempts))


def tallies(tallies: Sequence[ActionTallyView]) -> str:
    if not tallies:
        return ""
    counts = ", ".join(f"{entry.action} ({entry.successes} of {entry.attempts})" for entry in tallies)
    return (
        f"## What succeeded in situations like this\nSuccesses of tries, latest experiences only: {counts}."
    )


def precedents(precedents: Sequence[PrecedentView], data: Data) -> str:
    heading = (
        "## What people decided about requests like yours\nWeigh the risk by it, and frame a new request so that it meets the"
        " reasons."
    )
    return data.section(heading, map(_precedent, precedents))


def publications(publications: Sequence[PublicationView], data: Data) -> str:
    heading = (
        "## What became of what you wrote\nLet it inform topic, tone and timing of what you write for people."
    )
    entries = (
        f"{publication.at:%Y-%m-%d %H:%M}, {publication.audience}, “{line(publication.content, _CONTENT_LENGTH)}”:"
        f" {line(publication.outcome, _REASON_LENGTH)}"
        for publication in publications
    )
    return data.section(heading, entries)


def handlers(handlers: Sequence[StepHandlerView], data: Data) -> str:
    heading = "## Who handled work like this\nIf you give it to another, prefer who completed it."
    return data.section(heading, map(_handler, handlers))


def _request(request: ApprovalRequestView) -> str:
    about = f" “{line(request.about)}”" if request.about else ""
    return f"{request.action}{about}: {_REQUEST_WORDS[request.status]}{_reason(request.reason)}"


def _attempt(attempt: AttemptView) -> str:
    reasons = "; ".join(line(reason, _REASON_LENGTH) for reason in attempt.reasons)
    outcome = _OUTCOMES.get(attempt.outcome, attempt.outcome)
    return f"{attempt.at:%Y-%m-%d}, {line(attempt.title)}: {outcome}{f': {reasons}' if reasons else ''}"


def _precedent(precedent: PrecedentView) -> str:
    about = f" “{line(precedent.about, _CONTENT_LENGTH)}”" if precedent.about else ""
    decision = "approved" if precedent.approved else "denied"
    return f"{precedent.at:%Y-%m-%d}, {precedent.action}{about}: {decision}{_reason(precedent.reason)}"


def _reason(reason: str) -> str:
    return f": {line(reason, _REASON_LENGTH)}" if reason else ""


def _handler(handler: StepHandlerView) -> str:
    error = f"; the last failure: {line(handler.error, _REASON_LENGTH)}" if handler.error else ""
    steps = counted(handler.steps, "step")
    tries = "1 try" if handler.tries == 1 else f"{handler.tries:g} tries"
    return f"{line(handler.name)}: completed {handler.completed} of {steps}, {tries} each{error}"

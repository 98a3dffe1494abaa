"""Precedents: decisions of people about earlier requests for approval that are like a given one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.authority.approvals import ApprovalStatus
from arbor.memory.text.overlap import MIN_LIKENESS, likeness

#: The number of the latest decided requests of an agent that precedents are chosen from.
DECISIONS_READ = 40
#: The most precedents that are shown with a request.
PRECEDENTS_SHOWN = 5
#: The statuses of requests that a person has decided, and whether the person said yes.
DECIDED = {
    ApprovalStatus.APPROVED: True,
    ApprovalStatus.EXECUTED: True,
    ApprovalStatus.DENIED: False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Precedent:
    """A person's decision about a request for approval."""

    id: UUID
    action: str
    #: The first text of its parameters.
    about: str
    approved: bool
    #: The person's reason; may be empty.
    reason: str
    decided_by: str
    decided_at: datetime

    @property
    def text(self) -> str:
        """Return the decision as a line for people."""
        about = f" “{self.about}”" if self.about else ""
        reason = f": {self.reason}" if self.reason else ""
        decision = "approved" if self.approved else "denied"
        return f"{self.decided_at:%Y-%m-%d %H:%M} UTC, {decision} {self.action}{about}{reason}"


def precedents_for(*, action: str, about: str, decided: Iterable[Precedent]) -> list[Precedent]:
    """Return the decisions about requests like this one: the same action, or texts about the same matter.

    In order: the same matter before others, then the same action before others, then denials before approvals, then the latest.
    """
    ranked = [
        (fit >= MIN_LIKENESS, precedent.action == action, precedent)
        for precedent in decided
        for fit in (likeness(precedent.about, about),)
        if fit >= MIN_LIKENESS or precedent.action == action
    ]
    ranked.sort(key=lambda entry: entry[2].decided_at, reverse=True)
    ranked.sort(key=lambda entry: (not entry[0], not entry[1], entry[2].approved))
    return [precedent for _, _, precedent in ranked[:PRECEDENTS_SHOWN]]

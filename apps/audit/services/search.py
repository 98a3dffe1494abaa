"""Search the audit log: for people by many filters, for agents by a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.audit.models import AuditAction, AuditEvent
from arbor.audit.levels import AuditLevel
from arbor.errors import Invalid, NotFound
from arbor.memory.content import check_text

#: Characters of a searched text at most.
TERM_LENGTH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditFilter:
    """The wanted records; an empty field does not filter."""

    #: Words that the message has, all of them, regardless of case.
    words: str = ""
    #: The beginning of an actor, such as `user:` or `user:nora`.
    actor: str = ""
    actions: Sequence[AuditAction] = ()
    levels: Sequence[AuditLevel] = ()
    agent_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None

    def in_message(self) -> Q:
        """Return the condition that the message has all words. Raises Invalid for a text that is too long or cannot be stored."""
        return Q(*(Q(message__icontains=word) for word in _searched(self.words).split()))

    def filter_rows[M: QuerySet[Any]](self, rows: M) -> M:
        """Filter rows of the audit log. Raises Invalid for a text that is too long or cannot be stored."""
        rows = rows.filter(self.in_message())
        if self.actor:
            rows = rows.filter(actor__startswith=_searched(self.actor))
        if self.actions:
            rows = rows.filter(action__in=self.actions)
        if self.levels:
            rows = rows.filter(level__in=self.levels)
        if self.agent_id is not None:
            rows = rows.filter(agent_id=self.agent_id)
        if self.since is not None:
            rows = rows.filter(at__gte=self.since)
        if self.until is not None:
            rows = rows.filter(at__lt=self.until)
        return rows


def older_than(rows: QuerySet[AuditEvent], row_id: UUID) -> QuerySet[AuditEvent]:
    """Return the rows that are older than a record, by time and then id; the caller sorts them. Raises NotFound for an unknown record."""
    last = find_event(row_id)
    # The condition `at__lte` is a range of the index by time.
    return rows.filter(Q(at__lt=last.at) | Q(id__lt=last.id), at__lte=last.at)


def find_event(row_id: UUID) -> AuditEvent:
    """Return a record of the tenant. Raises NotFound."""
    row: AuditEvent | None = AuditEvent.objects.filter(id=row_id).first()
    if row is None:
        raise NotFound(f"there is no audit record {row_id}; it may have reached its age (ARBOR_AUDIT_DAYS)")
    return row


def events_with(term: str) -> QuerySet[AuditEvent]:
    """Return the acts of the current tenant whose message contains a text, regardless of case, the latest first (source 2 of seed 001).

    The caller checks that the agent may read the audit log.
    """
    rows: QuerySet[AuditEvent] = AuditEvent.objects.filter(message__icontains=term)
    return rows.order_by("-at", "-id")


def _searched(text: str) -> str:
    """Return a searched text without the space around it. Raises Invalid for one that is too long, or cannot be stored."""
    wanted = text.strip()
    check_text("a search of the audit log", wanted)
    if len(wanted) > TERM_LENGTH:
        raise Invalid(f"a search of the audit log takes up to {TERM_LENGTH} characters, got {len(wanted)}")
    return wanted

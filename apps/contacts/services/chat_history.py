"""Read conversations: their turns and their people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Lower

from apps.contacts.models import ChatMessage, ChatSession
from arbor.contacts.chat import name_of_person

#: The beginnings of `ChatSession.person`, before the name.
_PERSON_KINDS = ("user", "cli", "api", "token", "mcp")


def history(*, agent_id: UUID, limit: int, session_id: UUID | None = None) -> list[ChatMessage]:
    """Read the latest turns with an agent, or of one conversation, oldest first, each with its session. One statement."""
    turns = ChatMessage.objects.filter(session__agent_id=agent_id).select_related("session")
    if session_id is not None:
        turns = turns.filter(session_id=session_id)
    return list(reversed(turns.order_by("-at", "-id")[:limit]))


def last_talks(agent_id: UUID, names: Sequence[str]) -> dict[str, datetime]:
    """Return when the named people last talked with an agent, by their casefolded names. One statement."""
    folded = [f"{kind}:{name.casefold()}" for name in names for kind in _PERSON_KINDS]
    given = [f"{kind}:{name}" for name in names for kind in _PERSON_KINDS]
    rows = (
        ChatSession.objects.filter(agent_id=agent_id)
        .annotate(folded=Lower("person"))
        # PostgreSQL and Python fold some letters, such as ß, in different ways, so that names are compared as given too.
        .filter(Q(folded__in=folded) | Q(person__in=given))
        .order_by("last_at")
        .values_list("person", "last_at")
    )
    return {person.partition(":")[2].casefold(): last_at for person, last_at in rows}


def people_of(sessions: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of the people of conversations. One statement; none without conversations."""
    people = ChatSession.objects.filter(id__in=list(sessions)).values_list("id", "person")
    return {session_id: name_of_person(person) for session_id, person in people}

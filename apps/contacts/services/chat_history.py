"""Read conversations: their turns, and who talked."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models.functions import Lower

from apps.contacts.models import ChatMessage, ChatSession


def history(*, agent_id: UUID, limit: int, session_id: UUID | None = None) -> list[ChatMessage]:
    """Read the latest turns with an agent, or of one conversation, oldest first, each with its session. One statement."""
    turns = ChatMessage.objects.filter(session__agent_id=agent_id).select_related("session")
    if session_id is not None:
        turns = turns.filter(session_id=session_id)
    return list(reversed(turns.order_by("-at", "-id")[:limit]))


def who_talked(agent_id: UUID, names: Sequence[str]) -> set[str]:
    """Return the names of people who had a conversation with an agent, of those given, casefolded. One statement."""
    people = [f"{kind}:{name.casefold()}" for name in names for kind in ("user", "cli")]
    rows = (
        ChatSession.objects.filter(agent_id=agent_id)
        .annotate(folded=Lower("person"))
        .filter(folded__in=people)
        .values_list("folded", flat=True)
    )
    return {person.partition(":")[2] for person in rows}

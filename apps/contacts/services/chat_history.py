"""Read the turns of conversations."""

from __future__ import annotations

from uuid import UUID

from apps.contacts.models import ChatMessage


def history(*, agent_id: UUID, limit: int, session_id: UUID | None = None) -> list[ChatMessage]:
    """Read the latest turns with an agent, or of one conversation, oldest first, each with its session. One statement."""
    turns = ChatMessage.objects.filter(session__agent_id=agent_id).select_related("session")
    if session_id is not None:
        turns = turns.filter(session_id=session_id)
    return list(reversed(turns.order_by("-at", "-id")[:limit]))

"""Find people who talked with an agent."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models.functions import Lower

from apps.contacts.models import ChatSession


def who_talked(agent_id: UUID, names: Sequence[str]) -> set[str]:
    """Return the names of people who had a conversation with an agent, of those given, casefolded. One statement."""
    people = [f"{kind}:{name.casefold()}" for name in names for kind in ("user", "cli")]
    found = (
        ChatSession.objects.filter(agent_id=agent_id)
        .annotate(folded=Lower("person"))
        .filter(folded__in=people)
        .values_list("folded", flat=True)
    )
    return {person.partition(":")[2] for person in found}

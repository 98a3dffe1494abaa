"""Link memories to goals."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from apps.goals.models import GoalMemoryLink
from apps.tenants.statements import change
from arbor.goals.plans import GoalLink
from arbor.ids import uuid7

_LINK = """
INSERT INTO goals_goalmemorylink (tenant_id, id, goal_id, memory_id, kind, created_at)
SELECT %(tenant)s, id, goal_id, memory_id, kind, now()
FROM unnest(%(ids)s::uuid[], %(goals)s::uuid[], %(memories)s::uuid[], %(kinds)s::text[])
    AS link (id, goal_id, memory_id, kind)
ORDER BY goal_id, memory_id, kind
ON CONFLICT (tenant_id, goal_id, memory_id, kind) DO NOTHING
"""


def link_memories(links: Sequence[GoalLink]) -> None:
    """Link memories to goals of any agents of the tenant. One statement, none without links."""
    wanted = list(dict.fromkeys(links))
    if not wanted:
        return
    change(
        _LINK,
        ids=[uuid7() for _ in wanted],
        goals=[link.goal_id for link in wanted],
        memories=[link.memory_id for link in wanted],
        kinds=[link.kind.value for link in wanted],
    )


def linked_memories(goal_id: UUID) -> QuerySet[GoalMemoryLink]:
    """Return the links of a goal to memories, latest first. One query."""
    found: QuerySet[GoalMemoryLink] = (
        GoalMemoryLink.objects.filter(goal_id=goal_id)
        .select_related("memory")
        .order_by("-created_at", "kind")
    )
    return found

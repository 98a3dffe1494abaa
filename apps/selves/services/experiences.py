"""Limit the number of an agent's experiences."""

from __future__ import annotations

from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Experience
from arbor.selves.experiences import MOST_KEPT


def delete_oldest_experiences(*, agent_id: UUID) -> int:
    """Delete an agent's oldest experiences above the limit, audited; return how many. One statement, if none."""
    own = Experience.objects.filter(agent_id=agent_id)
    latest = own.order_by("-tick", "-id").values("id")[:MOST_KEPT]
    gone, _ = own.exclude(id__in=latest).delete()
    if gone:
        record(
            action=AuditAction.TRUNCATED,
            actor="system:experiences",
            agent_id=agent_id,
            message=f"let go of the {gone} oldest experiences: an agent keeps {MOST_KEPT:,}",
            detail={"experiences": gone},
        )
    return gone

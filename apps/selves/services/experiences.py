"""Limit the number of an agent's experiences."""

from __future__ import annotations

from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.tenants.statements import change
from arbor.selves.experiences import MOST_KEPT

_DELETE_OLDEST = """
DELETE FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id NOT IN (
    SELECT id FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    ORDER BY tick DESC, id DESC LIMIT %(most)s
)
"""


def delete_oldest_experiences(*, agent_id: UUID) -> int:
    """Delete an agent's oldest experiences above the limit, audited; return how many. One statement, if none."""
    gone = change(_DELETE_OLDEST, agent=agent_id, most=MOST_KEPT)
    if gone:
        record(
            action=AuditAction.TRUNCATED,
            actor="system:experiences",
            agent_id=agent_id,
            message=f"let go of the {gone} oldest experiences: an agent keeps {MOST_KEPT:,}",
            detail={"experiences": gone},
        )
    return gone

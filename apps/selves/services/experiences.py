"""What an agent did, what came of it and what that taught it, written down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.selves.models import Experience
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, insert_rows
from arbor.ids import uuid7
from arbor.selves.experiences import ABOUT_LENGTH, MOST_KEPT, NewExperience

_LET_GO = """
DELETE FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id NOT IN (
    SELECT id FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    ORDER BY tick DESC, id DESC LIMIT %(most)s
)
"""


def note_experiences(
    *, agent_id: UUID, heartbeat_id: UUID, tick: int, experiences: Sequence[NewExperience]
) -> None:
    """Write what a beat's actions taught. One statement, however many; none without."""
    insert_rows(
        [
            Experience(
                id=uuid7(),
                tenant_id=current_tenant(),
                agent_id=agent_id,
                heartbeat_id=heartbeat_id,
                tick=tick,
                action=each.action,
                about=each.about[:ABOUT_LENGTH],
                outcome=each.outcome.value,
                lesson=each.lesson,
                at=datetime.now(UTC),
            )
            for each in experiences
        ]
    )


def let_go_of_old_ones(*, agent_id: UUID) -> int:
    """Delete the oldest experiences beyond what an agent keeps, on record; return how many. One statement, if none."""
    gone = change(_LET_GO, agent=agent_id, most=MOST_KEPT)
    if gone:
        record(
            action=AuditAction.TRUNCATED,
            actor="system:experiences",
            agent_id=agent_id,
            message=f"let go of the {gone} oldest experiences: an agent keeps {MOST_KEPT:,}",
            detail={"experiences": gone},
        )
    return gone

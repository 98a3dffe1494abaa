"""Read an agent's last 50 thoughts in heartbeats and conversations, its thinking ring (seed 000, 2).

The ring is no table: thoughts are read from `reasoning` of heartbeats and `detail` of turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.tenants.statements import fetch
from arbor.errors import Invalid

#: The size of the ring (seed 000, 2).
RING = 50

# Uses the indexes by agent: of heartbeats, the latest first, and of conversations, whose turns are all read.
_THOUGHTS = """
SELECT origin, id, text, at FROM (
    (SELECT 'heartbeat' AS origin, id, reasoning AS text, started_at AS at FROM heartbeats_heartbeat
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND reasoning <> ''
        ORDER BY started_at DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT 'chat', m.id, m.detail->>'thinking', m.at FROM contacts_chatsession s
        JOIN contacts_chatmessage m ON m.tenant_id = s.tenant_id AND m.session_id = s.id
        WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s AND m.speaker = 'agent'
            AND m.detail->>'thinking' <> ''
        ORDER BY m.at DESC LIMIT %(limit)s)
) thoughts ORDER BY at DESC, id LIMIT %(limit)s
"""


@dataclass(frozen=True, kw_only=True)
class ThoughtRecord:
    """One thought of an agent."""

    #: `heartbeat` or `chat`, and the id of the heartbeat or the turn.
    origin: str
    id: UUID
    text: str
    at: datetime


def thoughts_of(*, agent_id: UUID, limit: int = RING) -> list[ThoughtRecord]:
    """Return an agent's thoughts, latest first. One statement. Raises Invalid for a limit outside 1 to 50."""
    if not 1 <= limit <= RING:
        raise Invalid(f"a limit of thoughts must be 1 to {RING}, got {limit}")
    return [
        ThoughtRecord(origin=origin, id=row_id, text=text, at=at)
        for origin, row_id, text, at in fetch(_THOUGHTS, agent=agent_id, limit=limit)
    ]

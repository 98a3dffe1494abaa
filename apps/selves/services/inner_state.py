"""Read an agent's drives and mood as of now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.tenants.statements import fetch
from arbor.errors import NotFound
from arbor.heartbeat.views import DriveView, MoodView
from arbor.selves.drives import Drive, in_touch, next_urgent_at, read_drives
from arbor.selves.emotions import baseline_of, in_words, read_mood

_STATE = """
SELECT s.beats, s.last_user_contact_at, s.drives::json, s.mood::json, (
    SELECT string_agg(content, ' ') FROM selves_identityaspect i WHERE i.tenant_id = s.tenant_id
        AND i.agent_id = s.agent_id AND i.status = 'held' AND i.kind = 'emotional_baseline'
)
FROM agents_agentstate s WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s
"""


@dataclass(frozen=True, kw_only=True)
class InnerState:
    """An agent's drives and mood, and the time when the next drive becomes urgent, if any."""

    beats: int
    drives: Sequence[DriveView]
    mood: MoodView
    next_urgent_at: datetime | None

    @property
    def feeling(self) -> str:
        """Return the mood in words."""
        return in_words(self.mood.valence, self.mood.arousal)


def read_inner_state(*, agent_id: UUID, now: datetime) -> InnerState:
    """Read the inner state of an agent of the current tenant. One statement. Raises NotFound."""
    rows = fetch(_STATE, agent=agent_id)
    if not rows:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    ((beats, contact, stored, felt, tone),) = rows
    drives = in_touch(read_drives(stored, now), contact)
    urgent = drives.urgent(now)
    mood = read_mood(felt, baseline=baseline_of([tone or ""]), now=now)
    following = next_urgent_at(drives, now)
    return InnerState(
        beats=beats,
        drives=[
            DriveView(name=drive, level=drives.level(drive, now), urgent=drive in urgent) for drive in Drive
        ],
        mood=MoodView(valence=mood.valence, arousal=mood.arousal),
        next_urgent_at=following[0] if following else None,
    )

"""Read an agent's drives and mood as of now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.agents.models import AgentState
from apps.selves.models import IdentityAspect
from arbor.errors import NotFound
from arbor.heartbeat.views import DriveView, MoodView
from arbor.selves.drives import Drive, next_urgent_at, read_drives, satisfy_by_contact
from arbor.selves.emotions import Mood, baseline_of, describe_mood, read_mood
from arbor.selves.values import AspectKind, BeliefStatus


@dataclass(frozen=True, kw_only=True)
class InnerState:
    """An agent's drives and mood, and the time at which the next drive becomes urgent, if any."""

    drives: Sequence[DriveView]
    mood: MoodView
    next_urgent_at: datetime | None

    @property
    def feeling(self) -> str:
        """Return the mood in words."""
        return describe_mood(self.mood.valence, self.mood.arousal)


def read_inner_state(*, agent_id: UUID, now: datetime) -> InnerState:
    """Read the inner state of an agent of the current tenant. Two queries. Raises NotFound."""
    state: AgentState | None = AgentState.objects.filter(agent_id=agent_id).first()
    if state is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    drives = satisfy_by_contact(read_drives(state.drives, now), state.last_user_contact_at)
    urgent = drives.urgent(now)
    mood = mood_of(agent_id, state.mood, now)
    following = next_urgent_at(drives, now)
    return InnerState(
        drives=[
            DriveView(name=drive, level=drives.level(drive, now), urgent=drive in urgent) for drive in Drive
        ],
        mood=MoodView(valence=mood.valence, arousal=mood.arousal),
        next_urgent_at=following[0] if following else None,
    )


def mood_of(agent_id: UUID, stored: Mapping[str, Any] | None, now: datetime) -> Mood:
    """Return an agent's mood now. One query, for the baseline."""
    tones = IdentityAspect.objects.filter(
        agent_id=agent_id, kind=AspectKind.EMOTIONAL_BASELINE, status=BeliefStatus.HELD
    )
    return read_mood(stored, baseline=baseline_of(tones.values_list("content", flat=True)), now=now)

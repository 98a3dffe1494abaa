"""Read single beliefs."""

from __future__ import annotations

from uuid import UUID

from apps.selves.models import Belief
from arbor.errors import NotFound
from arbor.selves.values import Standing


def belief_of(*, agent_id: UUID, belief_id: UUID) -> Belief:
    """Return a belief that the agent has not dropped. One query. Raises NotFound."""
    held: Belief | None = (
        Belief.objects.filter(id=belief_id, agent_id=agent_id).exclude(status=Standing.DROPPED).first()
    )
    if held is None:
        raise NotFound(f"there is no belief {belief_id} of this agent")
    return held

"""Limit how fast an agent changes its self; people are not limited."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.selves.models import SelfChange
from apps.selves.services.changes import ASPECT
from arbor.selves.proposals import check_pace

#: The prefix of an agent's own decisions, the only ones that are limited.
HEARTBEAT = "heartbeat:"


def keep_pace(
    *, agent_id: UUID, decided_by: str, what: str, target_id: UUID | None = None, now: datetime
) -> None:
    """Raise LimitReached for an agent's own change of its self that is too soon. One statement.

    The identity rests as a whole after a change; a belief or a preference, `target_id`, by itself.
    """
    if not decided_by.startswith(HEARTBEAT):
        return
    made = list(
        SelfChange.objects.filter(
            agent_id=agent_id, decided_by__startswith=HEARTBEAT, at__gt=now - timedelta(days=1)
        ).values_list("what", "target_id", "at")
    )
    same = [
        at
        for kind, target, at in made
        if kind == what and (what == ASPECT or (target_id is not None and target == target_id))
    ]
    check_pace([at for _, _, at in made], same, now)

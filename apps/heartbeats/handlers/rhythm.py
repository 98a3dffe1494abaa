"""Next: when the agent beats again."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from apps.heartbeats.models import PerceptKind, Trigger
from apps.heartbeats.services.pulse import rhythm_of
from apps.heartbeats.services.schedule import JITTER
from apps.selves.services.views import contact_of
from arbor.heartbeat.rhythm import NextBeat, next_beat
from arbor.heartbeat.situation import Situation
from arbor.pipeline.engine import Context, NodeResult, Phase
from arbor.selves.drives import URGENT, WAKING, Drives, in_touch, next_urgent_at, read_drives


class PlanNext:
    """Plans the next beat; the statement that lets go of the agent writes it."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the next beat's time, and what it stands for, into the context."""
        if _left_unread(context["situation"]):
            at_once = {
                "due_at": context["situation"].environment.now.isoformat(),
                "trigger": Trigger.MESSAGE.value,
            }
            return NodeResult(updates={"next": at_once, "pulse": None})
        following = next_beat(
            rhythm_of(context["pulse"]),
            now=context["situation"].environment.now,
            idle_beats=0,
            shift=random.uniform(-JITTER, JITTER),  # noqa: S311 (spreads a fleet, hides nothing)
            urgent_at=urgent_at(context),
        )
        return NodeResult(updates={"next": next_as_json(following), "pulse": None})


def _left_unread(situation: Situation) -> bool:
    """Tell whether users wrote more than the beat has taken in: the next one follows at once."""
    taken_in = sum(each.kind == PerceptKind.USER_MESSAGE for each in situation.percepts)
    return situation.environment.user_messages > taken_in


def next_as_json(following: NextBeat) -> dict[str, Any]:
    """Return a planned beat as the context holds it."""
    trigger = Trigger.DRIVE if following.by_drive else Trigger.TIMER
    return {"due_at": following.due_at.isoformat(), "trigger": trigger.value}


def urgent_at(context: Context) -> datetime | None:
    """Return when the next drive becomes urgent, if one will."""
    now = context["situation"].environment.now
    found = next_urgent_at(_drives(context, now), now)
    return found[0] if found else None


def is_urged(context: Context) -> bool:
    """Tell whether a drive that may wake the agent is urgent now."""
    now = context["situation"].environment.now
    drives = _drives(context, now)
    return any(drives.level(drive, now) >= URGENT for drive in WAKING)


def _drives(context: Context, now: datetime) -> Drives:
    """Return the drives as this beat leaves them, or as it found them; who has been in touch since counts."""
    drives = read_drives(context.get("state", {}).get("drives") or context["pulse"]["drives"], now)
    return in_touch(drives, contact_of(context.get("self")))

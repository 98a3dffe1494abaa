"""Looking once more at the world and oneself: free, and it changes nothing (seed 004, 3.2.1)."""

from __future__ import annotations

from apps.heartbeats.acts.desk import Desk, answer
from apps.heartbeats.models import Percept
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult

#: Of what has arrived since the beat began, what is read out, and how much of each.
_ARRIVED = 5
_ARRIVED_LENGTH = 500


def observe(desk: Desk, decision: Decision) -> ActionResult:
    """Look at the environment again: what has arrived meanwhile stays for the next beat, which will take it in."""
    situation, environment = desk.situation, desk.situation.environment
    seen = [percept.id for percept in situation.percepts]
    arrived = list(
        Percept.objects.filter(agent_id=desk.agent_id, heartbeat_id=None)
        .exclude(id__in=seen)
        .order_by("at")[:_ARRIVED]
    )
    user = "is waiting" if environment.user_waiting else "is not waiting"
    since = environment.hours_since_user
    lines = [
        f"It is {desk.now:%Y-%m-%d %H:%M} UTC. {situation.energy:g} of {situation.max_energy:g} {situation.energy_unit}"
        " were there when this turn began.",
        f"A user {user}; "
        + ("none has ever been in touch." if since is None else f"the last contact was {since:.1f} h ago."),
        *(f"Arrived meanwhile, {each.kind}: {each.content[:_ARRIVED_LENGTH]}" for each in arrived),
    ]
    summary = f"looked around: {len(arrived)} new since the beat began"
    return answer(decision, ActionOutcome.SUCCESS, summary, brought="\n".join(lines))

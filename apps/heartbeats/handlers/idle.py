"""Idle: a beat at which nothing is to be done, or may be, ends here: no model is asked, and a receipt says why."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.agents.services.state import write_state
from apps.heartbeats.handlers.rhythm import is_urged, next_as_json, urgent_at
from apps.heartbeats.models import Trigger
from apps.heartbeats.services.pulse import rhythm_of
from apps.heartbeats.services.schedule import JITTER
from arbor.goals.injection import Rule, calls_for_work
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.rhythm import NextBeat, Stirrings, idle_reason, next_beat, night_reason
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.usage import Degradation, renewed_at, withheld
from arbor.pipeline.engine import Context, NodeResult, Phase

#: What brings a beat about without anybody having asked for it.
_BY_ITSELF = frozenset({Trigger.TIMER.value, Trigger.DRIVE.value})
#: A cycle is asked for, but ends where nothing is left to do.
_ENDS_WHEN_IDLE = _BY_ITSELF | {Trigger.CYCLE.value}


class Idle:
    """Tells whether the beat goes on. One statement when it does not, none when it does."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put `idle`, the reason, into the context; empty when the beat goes on."""
        situation: Situation = context["situation"]
        pulse: Mapping[str, Any] = context["pulse"]
        now = situation.environment.now
        state = context.get("state", {})
        reason, until = _why(context, situation, pulse)
        # What plan_next needs of it; the rest has been read.
        kept = {name: pulse[name] for name in ("interval_s", "policy", "drives")}
        if not reason:
            return NodeResult(updates={"idle": "", "pulse": kept, "state": {**state, "idle_beats": 0}})
        idle_beats = pulse["idle_beats"] + 1
        columns = {
            "idle_beats": idle_beats,
            "stale_beats": situation.stale_beats + 1,
            "notices": state.get("notices", []),
        }
        write_state(agent_id=UUID(context["agent_id"]), columns=columns)
        following = next_beat(
            rhythm_of(pulse),
            now=now,
            idle_beats=idle_beats,
            shift=random.uniform(-JITTER, JITTER),  # noqa: S311 (spreads a fleet, hides nothing)
            urgent_at=urgent_at(context),
        )
        if until is not None and following.due_at < until:
            # Not all that wait for the new day in one moment.
            following = NextBeat(due_at=until + rhythm_of(pulse).interval * random.uniform(0, JITTER))  # noqa: S311
        return NodeResult(
            updates={
                "idle": reason,
                "pulse": None,
                "next": next_as_json(following),
                # A receipt: it has no number, used no energy, and asked no model.
                "record": {"number": 0},
            },
            changed=(reason,),
        )


def _why(context: Context, situation: Situation, pulse: Mapping[str, Any]) -> tuple[str, datetime | None]:
    """Return why the beat ends here, and before when there is no use in another; an empty reason when it goes on."""
    now = situation.environment.now
    asked_for = context.get("trigger", Trigger.TIMER.value) not in _BY_ITSELF
    level = situation.degradation
    reason = withheld(
        level,
        user_waiting=situation.environment.user_waiting,
        asked_for=asked_for,
        serves_goal=bool(_work(situation)),
        now=now,
    )
    if reason:
        return reason, renewed_at(now) if level is Degradation.HALT else None
    reason = night_reason(
        rhythm_of(pulse).hours, now=now, asked_for=asked_for or situation.environment.user_waiting
    )
    if reason:
        return reason, None
    return idle_reason(
        _stirrings(context, situation, pulse), reflect_every=settings.ARBOR_REFLECT_EVERY
    ), None


def _stirrings(context: Context, situation: Situation, pulse: Mapping[str, Any]) -> Stirrings:
    return Stirrings(
        asked_for=context.get("trigger", Trigger.TIMER.value) not in _ENDS_WHEN_IDLE,
        percepts=len(situation.percepts),
        work=_work(situation),
        proposals=len(situation.proposals),
        urgent_drive=is_urged(context),
        consolidation=mode_of(situation) is Mode.CONSOLIDATION,
        since_reflection=_since_reflection(pulse["beats"]),
    )


def _work(situation: Situation) -> int:
    """Return how many goals and steps are to be worked on; a goal to spend less is no reason to spend."""
    saving = {goal.id for goal in situation.goals if goal.rule == Rule.SURVIVAL}
    goals = sum(calls_for_work(goal.layer, goal.rule) for goal in situation.active_goals)
    return goals + sum(intent.goal_id not in saving for intent in situation.pending_intents)


def _since_reflection(beats: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how many beats ago the agent reflected, 1 for the last one; receipts count as beats."""
    for place, beat in enumerate(beats, start=1):
        if beat["status"] == "done" and beat["mode"] == Mode.REFLECTION:
            return place
    return None

"""What a heartbeat's page shows: why it did that. A fixed number of queries; looking changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.console.call_page import Call, read_call
from apps.console.pipeline_picture import Picture
from apps.console.stored import dicts_in, pretty, text_of
from apps.console.trace_page import Stage, draw_walk, read_stages
from apps.goals.models import Goal
from apps.heartbeats.models import ExternalCall, Heartbeat, LedgerEntry
from apps.heartbeats.services.trace import steps_of
from arbor.heartbeat.decision import Verdict
from arbor.heartbeat.energy import MAX_ENERGY
from arbor.models.handles import Provider


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One proposed action and what became of it."""

    action: str
    params: str
    verdict: str
    ran: bool
    reason: str
    cost: float
    outcome: str
    result: str
    reasoning: str
    goal: Goal | None


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that happened to a goal."""

    goal: Goal | None
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatPage:
    """A heartbeat, as its page shows it."""

    beat: Heartbeat
    picture: Picture | None
    stages: Sequence[Stage]
    total_ms: float
    calls: Sequence[Call]
    deeds: Sequence[Deed]
    changes: Sequence[Change]
    dropped: Sequence[dict[str, str]]
    situation: str
    before: Heartbeat | None
    after: Heartbeat | None
    energy_max: float = MAX_ENERGY

    @property
    def is_reflex(self) -> bool:
        """Tell whether rules decided, not a language model."""
        return self.beat.model.startswith(f"{Provider.REFLEX}/")

    @property
    def spent(self) -> float:
        """Return the energy that actions cost."""
        return sum(deed.cost for deed in self.deeds if deed.ran)


def read_heartbeat(beat: Heartbeat) -> HeartbeatPage:
    """Read the trace of a heartbeat of the current tenant."""
    steps = steps_of(beat)
    calls = list(ExternalCall.objects.filter(heartbeat_id=beat.id).order_by("requested_at"))
    paid = {
        entry.call_id: entry
        for entry in LedgerEntry.objects.filter(call_id__in=[call.id for call in calls])
        if calls
    }
    goals = _goals(beat)
    stages, total = read_stages(beat, steps, calls)
    neighbours = Heartbeat.objects.filter(agent_id=beat.agent_id).only(
        "tenant_id", "number", "status", "started_at"
    )
    return HeartbeatPage(
        beat=beat,
        picture=draw_walk(beat, steps, calls),
        stages=stages,
        total_ms=total,
        calls=[read_call(call, paid.get(call.id)) for call in calls],
        deeds=[_deed(each, goals) for each in dicts_in(beat.actions)],
        changes=[
            Change(
                goal=goals.get(str(each.get("goal_id", ""))),
                kind=str(each.get("kind", "")),
                text=str(each.get("change", "")),
            )
            for each in dicts_in(beat.goal_changes)
        ],
        dropped=[
            {
                "path": str(each.get("path", "")),
                "value": text_of(each.get("value")),
                "reason": text_of(each.get("reason")),
            }
            for each in dicts_in(beat.dropped)
        ],
        situation=pretty(beat.situation) if beat.situation else "",
        before=neighbours.filter(started_at__lt=beat.started_at).order_by("-started_at").first(),
        after=neighbours.filter(started_at__gt=beat.started_at).order_by("started_at").first(),
    )


def _goals(beat: Heartbeat) -> dict[str, Goal]:
    named = {
        str(each.get("goal_id") or "") for each in [*dicts_in(beat.actions), *dicts_in(beat.goal_changes)]
    }
    ids = []
    for each in named:
        try:
            ids.append(UUID(each))
        except ValueError:
            # A model may name a goal that never was: the page shows its text all the same.
            continue
    found = Goal.objects.filter(id__in=ids).only("tenant_id", "title", "state") if ids else []
    return {str(goal.id): goal for goal in found}


def _deed(stored: Mapping[str, Any], goals: Mapping[str, Goal]) -> Deed:
    verdict = str(stored.get("verdict", ""))
    cost = stored.get("cost")
    params = stored.get("params")
    return Deed(
        action=str(stored.get("action", "")),
        params=", ".join(f"{name}: {text_of(value)}" for name, value in params.items())
        if isinstance(params, dict)
        else text_of(params),
        verdict=verdict,
        ran=verdict == Verdict.RUN,
        reason=text_of(stored.get("reason")),
        cost=cost if isinstance(cost, int | float) else 0,
        outcome=str(stored.get("outcome", "")),
        result=text_of(stored.get("summary")),
        reasoning=text_of(stored.get("reasoning")),
        goal=goals.get(str(stored.get("goal_id", ""))),
    )

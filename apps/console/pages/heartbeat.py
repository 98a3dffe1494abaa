"""Read a heartbeat's page by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from apps.calls.models import ExternalCall, LedgerEntry
from apps.console.nodes import NamedNode, find_nodes, parse_id
from apps.console.pages.call import Call, read_call
from apps.console.pages.trace import Stage, draw_run, read_stages
from apps.console.pictures.pipeline import DrawnPipeline
from apps.console.stored_json import pretty, read_dicts, text_of
from apps.goals.models import Goal
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports.trace import steps_of
from arbor.heartbeat.budgets import BudgetKind
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.focus import explain_mode, mode_of
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.situation import Situation
from arbor.models.handles import is_reflex
from arbor.quotations import counted
from arbor.selves.emotions import describe_mood


@dataclass(frozen=True, kw_only=True)
class Param:
    """One parameter of an action; an id of a node is shown as the node's text, with its page."""

    name: str
    text: str
    page: str = ""


@dataclass(frozen=True, kw_only=True)
class ActionRow:
    """One proposed action with its decision and outcome."""

    action: str
    params: Sequence[Param]
    verdict: str
    ran: bool
    reason: str
    cost: float
    outcome: str
    result: str
    reasoning: str
    goal: Goal | None


@dataclass(frozen=True, kw_only=True)
class GoalChangeRow:
    """One change of a goal."""

    goal: Goal | None
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatPage:
    """The data of a heartbeat's page."""

    heartbeat: Heartbeat
    picture: DrawnPipeline | None
    stages: Sequence[Stage]
    total_ms: float
    calls: Sequence[Call]
    actions: Sequence[ActionRow]
    changes: Sequence[GoalChangeRow]
    dropped: Sequence[dict[str, str]]
    situation: str
    before: Heartbeat | None
    after: Heartbeat | None
    #: The reason of the mode; empty if it cannot be derived from the situation.
    mode_reason: str
    #: The unit of the action budget.
    unit: str

    @property
    def is_reflex(self) -> bool:
        """Return whether the reflex policy decided, not a language model."""
        return is_reflex(self.heartbeat.model)

    @property
    def dropped_items(self) -> str:
        """Return the number of listed dropped items in words; more were dropped if an entry counts further ones."""
        listed = sum(not Dropped(**item).counts_others for item in self.dropped)
        return f"{'more than ' if listed < len(self.dropped) else ''}{counted(listed, 'item')}"

    @property
    def spent(self) -> float:
        """Return the cost of the actions that ran."""
        return sum(action.cost for action in self.actions if action.ran)

    @property
    def mood(self) -> str:
        """Return the mood after the heartbeat in words; empty if it was not stored completely."""
        valence, arousal = self.heartbeat.emotional_valence, self.heartbeat.arousal
        return "" if valence is None or arousal is None else describe_mood(valence, arousal)


def read_heartbeat(heartbeat: Heartbeat) -> HeartbeatPage:
    """Read a heartbeat's page in the current tenant."""
    steps = steps_of(heartbeat)
    calls = list(ExternalCall.objects.filter(heartbeat_id=heartbeat.id).order_by("requested_at"))
    paid = {
        entry.call_id: entry for entry in LedgerEntry.objects.filter(call_id__in=[call.id for call in calls])
    }
    goals = _goals(heartbeat)
    actions = read_dicts(heartbeat.actions)
    named = _named(heartbeat, actions)
    stages, total = read_stages(heartbeat, steps, calls)
    others = Heartbeat.objects.filter(agent_id=heartbeat.agent_id).only(
        "tenant_id", "number", "status", "started_at"
    )
    return HeartbeatPage(
        heartbeat=heartbeat,
        picture=draw_run(heartbeat, steps, calls),
        stages=stages,
        total_ms=total,
        calls=[read_call(call, paid.get(call.id)) for call in calls],
        actions=[_action_row(action, goals, named) for action in actions],
        changes=[
            GoalChangeRow(
                goal=goals.get(str(change.get("goal_id", ""))),
                kind=str(change.get("kind", "")),
                text=str(change.get("change", "")),
            )
            for change in read_dicts(heartbeat.goal_changes)
        ],
        dropped=[
            {
                "path": str(item.get("path", "")),
                "value": text_of(item.get("value")),
                "reason": text_of(item.get("reason")),
            }
            for item in read_dicts(heartbeat.dropped)
        ],
        situation=pretty(heartbeat.situation) if heartbeat.situation else "",
        before=others.filter(started_at__lt=heartbeat.started_at).order_by("-started_at").first(),
        after=others.filter(started_at__gt=heartbeat.started_at).order_by("started_at").first(),
        mode_reason=_mode_reason(heartbeat),
        unit=heartbeat.energy_unit or BudgetKind.ENERGY.value,
    )


def _mode_reason(heartbeat: Heartbeat) -> str:
    try:
        situation = Situation.model_validate(heartbeat.situation)
    except ValidationError:
        # The heartbeat ended before it had a situation, or another version of Arbor stored it.
        return ""
    # Another version of Arbor chose a different mode, by rules that are unknown here.
    return explain_mode(situation) if mode_of(situation) == heartbeat.mode else ""


def _goals(heartbeat: Heartbeat) -> dict[str, Goal]:
    named = {
        str(item.get("goal_id") or "")
        for item in [*read_dicts(heartbeat.actions), *read_dicts(heartbeat.goal_changes)]
    }
    # A model may name goals that do not exist; the page then shows the text only.
    ids = [row_id for text in named if (row_id := parse_id(text)) is not None]
    rows = Goal.objects.filter(id__in=ids).only("tenant_id", "title", "state") if ids else []
    return {str(goal.id): goal for goal in rows}


def _named(heartbeat: Heartbeat, actions: Sequence[Mapping[str, Any]]) -> dict[str, NamedNode]:
    """Return the nodes of the agent whose ids are parameters of actions, by id. One query."""
    ids = {
        row_id
        for action in actions
        if isinstance(action.get("params"), dict)
        for value in action["params"].values()
        for item in (value if isinstance(value, list) else [value])
        if (row_id := parse_id(item)) is not None
    }
    return {str(node.id): node for node in find_nodes(heartbeat.agent_id, ids)}


def _params(params: Any, named: Mapping[str, NamedNode]) -> list[Param]:
    if not isinstance(params, dict):
        return [Param(name="given", text=text_of(params))] if params else []
    return [
        Param(name=str(name), text=node.text if node else text_of(item), page=node.page if node else "")
        for name, value in params.items()
        for item in (value if isinstance(value, list) else [value])
        if item not in (None, "")
        for node in (named.get(str(parse_id(item))),)
    ]


def _action_row(
    stored: Mapping[str, Any], goals: Mapping[str, Goal], named: Mapping[str, NamedNode]
) -> ActionRow:
    verdict = str(stored.get("verdict", ""))
    cost = stored.get("cost")
    return ActionRow(
        action=str(stored.get("action", "")),
        params=_params(stored.get("params"), named),
        verdict=verdict,
        ran=verdict == DecisionVerdict.RUN,
        reason=text_of(stored.get("reason")),
        cost=cost if isinstance(cost, int | float) else 0,
        outcome=str(stored.get("outcome", "")),
        result=text_of(stored.get("summary")),
        reasoning=text_of(stored.get("reasoning")),
        goal=goals.get(str(stored.get("goal_id", ""))),
    )

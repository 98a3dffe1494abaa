"""Views of goals, plans, intents and issues, built from rows.

The rows have the columns of `apps.heartbeats.services.situations.goal_situation.GOAL_COLUMNS`: a goal is an array in the order of
`_view_goal`, an intent or a plan is a mapping by the field names of its view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

from arbor.agents.genome import AgentGenome, AgentTraits
from arbor.goals.goal_rules import BALANCED_RISK, Circumstances
from arbor.goals.intents import IntentStatus, is_stale_lock
from arbor.goals.ordering import PriorityInputs, compute_priority
from arbor.goals.plans import PlanStatus
from arbor.goals.priority import PriorityWeights
from arbor.goals.review import ReviewedGoal, flag_goal, review
from arbor.goals.satisfaction import read_experienced
from arbor.goals.values import GoalLayer, GoalSource, GoalState, GoalType
from arbor.heartbeat.views import GoalView, IntentView, IssueView, PlanView
from arbor.memory.detail_text import detail_lines
from arbor.memory.values import MemoryType


class GoalFields(TypedDict):
    """Fields of a situation; goals and issues most important first."""

    goals: list[GoalView]
    intents: list[IntentView]
    plans: list[PlanView]
    issues: list[IssueView]


def view_goals(columns: Mapping[str, Any], *, traits: AgentTraits | None, now: datetime) -> GoalFields:
    """Return the fields of a situation about goals; `columns` has the columns of `GOAL_COLUMNS`, and maybe active clusters."""
    priority_inputs = read_priority_inputs(columns, traits=traits, now=now)
    plans = view_plans(columns)
    waiting = {
        plan.goal_id: plan.waits_for[0]
        for plan in plans
        if plan.status is PlanStatus.ACTIVE and plan.waits_for
    }
    pairs = [_view_goal(row, priority_inputs, waiting) for row in columns.get("goals", ())]
    pairs.sort(key=lambda pair: (-pair[0].priority, pair[0].id))
    clusters = [
        " ".join([cluster["name"], *cluster.get("keywords", ())]) for cluster in columns.get("clusters", ())
    ]
    issues = review([reviewed for _, reviewed in pairs], cluster_names=clusters, now=now)
    return GoalFields(
        goals=[view for view, _ in pairs],
        # The steps of a plan wait with it.
        intents=[
            _view_intent(row, now)
            for row in columns.get("intents", ())
            if not (row.get("planned") and row["goal_id"] in waiting)
        ],
        plans=plans,
        issues=[IssueView(advice=issue.advice, text=issue.text, goal_id=issue.goal_id) for issue in issues],
    )


def view_plans(columns: Mapping[str, Any]) -> list[PlanView]:
    return [PlanView.model_validate(row) for row in columns.get("plans", ())]


def read_priority_inputs(
    columns: Mapping[str, Any], *, traits: AgentTraits | None, now: datetime
) -> PriorityInputs:
    """Return the agent's inputs of the priority formula."""
    return PriorityInputs(
        weights=PriorityWeights.of(traits) if traits else PriorityWeights(),
        learned=columns.get("learned") or {},
        experienced=read_experienced(columns.get("experienced") or {}),
        now=now,
    )


def circumstances_of(
    columns: Mapping[str, Any], genome: AgentGenome | None, *, exhausted_heartbeats: int
) -> Circumstances:
    """Return the inputs of the goal rules that no situation shows; `columns` has the `CIRCUMSTANCE_COLUMNS`."""
    successes, dealings = columns["reputation"]
    return Circumstances(
        ended_rules=frozenset(columns["ended_rules"] or ()),
        role=genome.role if genome else None,
        risk_tolerance=genome.traits.risk_tolerance if genome else BALANCED_RISK,
        stale_heartbeats=columns["stale_heartbeats"],
        exhausted_heartbeats=exhausted_heartbeats,
        reputation=successes / dealings if dealings else None,
        dealings=dealings,
    )


def _view_goal(
    row: Sequence[Any], priority_inputs: PriorityInputs, waiting: Mapping[str, str]
) -> tuple[GoalView, ReviewedGoal]:
    id_, title, description, state, layer, source, fraction, deadline_at, touched_at, parent_id = row[:10]
    stated_reward, effort, valence, rule, notes, blocker, contradiction, is_present = row[10:18]
    intents, intents_open, intents_done, actions, plan, plan_reason, type_, stated = row[18:]
    blocker = blocker or waiting.get(id_, "")
    deadline = None if deadline_at is None else datetime.fromisoformat(deadline_at)
    goal_source = GoalSource(source)
    reviewed = ReviewedGoal(
        id=id_,
        title=title,
        state=GoalState(state),
        touched_at=datetime.fromisoformat(touched_at),
        layer=GoalLayer(layer),
        deadline=deadline,
        blocker=blocker,
        contradiction=contradiction or "",
        intents=intents,
        intents_open=intents_open,
        intents_done=intents_done,
        plan=PlanStatus(plan) if plan else None,
        plan_reason=plan_reason or "",
        present_memories=int(is_present),
    )
    priority = compute_priority(
        priority_inputs,
        goal_source,
        fraction=fraction,
        deadline=deadline,
        stated_reward=stated_reward,
        actions=actions,
        stated=stated,
    )
    view = GoalView(
        id=id_,
        title=title,
        description=description,
        state=reviewed.state,
        layer=reviewed.layer,
        type=GoalType(type_),
        source=goal_source,
        priority=round(priority, 4),
        fraction=fraction,
        notes=[*dict.fromkeys(notes)][::-1],
        deadline=deadline,
        flags=[flag.value for flag in flag_goal(reviewed, priority_inputs.now)],
        parent_id=parent_id,
        blocked_by=blocker,
        effort=effort,
        emotional_valence=valence,
        rule=rule,
    )
    return view, reviewed


def _view_intent(row: Mapping[str, Any], now: datetime) -> IntentView:
    """Return an intent; a stale lock does not count."""
    if row["status"] == IntentStatus.LOCKED:
        since = row["locked_at"]
        locked_at = None if since is None else datetime.fromisoformat(since)
        if is_stale_lock(locked_at, now=now, holder_runs=row["held"]):
            row = {**row, "status": IntentStatus.PENDING}
    conditions = {name: row.get(name) or "" for name in ("precondition", "postcondition")}
    content, detail = row.get("procedure") or ("", {})
    procedure = [content, *detail_lines(MemoryType.PROCEDURAL, detail)] if row.get("procedure") else []
    return IntentView.model_validate({**row, **conditions, "procedure": procedure})

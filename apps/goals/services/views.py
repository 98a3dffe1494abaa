"""An agent's goals, plans and intents as a heartbeat sees them, and what a look at them finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.goals.services.loading import read_experienced
from apps.goals.services.sight import moment, see_goals
from arbor.agents.genome import AgentGenome, AgentTraits
from arbor.goals.injection import BALANCED, Circumstances
from arbor.goals.intents import IntentStatus, is_stale_lock
from arbor.goals.ordering import Scale, weigh
from arbor.goals.plans import PlanStatus
from arbor.goals.priority import PriorityWeights
from arbor.goals.review import Reviewed, flag_goal, review
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.goal_views import GoalView, IntentView, IssueView, PlanView


def goal_views(*, agent_id: UUID, traits: AgentTraits | None, now: datetime) -> list[GoalView]:
    """Return the open goals, most important first. One query."""
    views: list[GoalView] = view_goals(see_goals(agent_id), traits=traits, now=now)["goals"]
    return views


def plan_views(*, agent_id: UUID) -> list[PlanView]:
    """Return the active plans and drafts. One query."""
    return [PlanView.model_validate(each) for each in see_goals(agent_id).get("plans", ())]


def view_goals(seen: Mapping[str, Any], *, traits: AgentTraits | None, now: datetime) -> dict[str, Any]:
    """Return what a situation says of goals, given by the columns of `GOALS_SEEN`: goals, intents, plans and issues.

    Goals and issues come most important first; `seen["themes"]`, if it is there, are what the mind is on.
    """
    scale = scale_of(seen, traits=traits, now=now)
    looked = []
    for row in seen.get("goals", ()):
        reviewed = _reviewed(row)
        looked.append((_view(row, reviewed, scale), reviewed))
    looked.sort(key=lambda pair: (-pair[0].priority, pair[0].id))
    issues = review([each for _, each in looked], themes=_themes(seen.get("themes", ())), now=now)
    return {
        "goals": [view for view, _ in looked],
        "intents": _intents(seen.get("intents", ()), now),
        "plans": [PlanView.model_validate(plan) for plan in seen.get("plans", ())],
        "issues": [
            IssueView(advice=issue.advice, text=issue.text, goal_id=issue.goal_id) for issue in issues
        ],
    }


def scale_of(seen: Mapping[str, Any], *, traits: AgentTraits | None, now: datetime) -> Scale:
    """Return what an agent's goals are weighed by; `learned` and `experienced` are columns of `GOALS_SEEN`."""
    return Scale(
        weights=PriorityWeights.of(traits) if traits else PriorityWeights(),
        learned=seen.get("learned") or {},
        experienced=read_experienced(seen.get("experienced") or {}),
        now=now,
    )


def circumstances_of(seen: Mapping[str, Any], genome: AgentGenome | None) -> Circumstances:
    """Return what the rules of injection need besides what the situation shows."""
    well, dealings = seen["standing"]
    return Circumstances(
        role=genome.role if genome else None,
        risk_tolerance=genome.traits.risk_tolerance if genome else BALANCED,
        stale_beats=seen["stale_beats"],
        exhausted_beats=seen["exhausted_beats"],
        standing=well / dealings if dealings else None,
        dealings=dealings,
    )


def _view(row: Mapping[str, Any], goal: Reviewed, scale: Scale) -> GoalView:
    source = GoalSource(row["source"])
    found = weigh(
        scale,
        source,
        fraction=row["fraction"],
        deadline=goal.deadline,
        stated_reward=row["expected_reward"],
        actions=row["actions"],
    )
    return GoalView(
        id=goal.id,
        title=goal.title,
        description=row["description"],
        state=goal.state,
        layer=GoalLayer(row["layer"]),
        source=source,
        priority=round(found, 4),
        fraction=row["fraction"],
        notes=row["notes"][::-1],
        deadline=goal.deadline,
        flags=[str(flag) for flag in flag_goal(goal, scale.now)],
        parent_id=row["parent_id"],
        blocked_by=goal.blocker,
        effort=row["effort"],
        emotional_valence=row["emotional_valence"],
        rule=row["rule"],
    )


def _reviewed(row: Mapping[str, Any]) -> Reviewed:
    touched_at = moment(row["touched_at"])
    assert touched_at is not None
    return Reviewed(
        id=str(row["id"]),
        title=row["title"],
        state=GoalState(row["state"]),
        touched_at=touched_at,
        layer=GoalLayer(row["layer"]),
        deadline=moment(row["deadline"]),
        blocker=row["blocker"],
        contradiction=row["contradiction"] or "",
        intents=row["intents"],
        intents_open=row["intents_open"],
        intents_done=row["intents_done"],
        plan=PlanStatus(row["plan"]) if row["plan"] else None,
        plan_reason=row["plan_reason"] or "",
        present_memories=row["present_memories"],
    )


def _intents(rows: Iterable[Mapping[str, Any]], now: datetime) -> list[IntentView]:
    """Return the intents; a lock whose heartbeat is gone does not count."""
    views = []
    for row in rows:
        free = row["status"] == IntentStatus.LOCKED and is_stale_lock(
            moment(row["locked_at"]), now=now, holder_runs=row["held"]
        )
        views.append(
            IntentView.model_validate({**row, "status": IntentStatus.PENDING if free else row["status"]})
        )
    return views


def _themes(themes: Iterable[Mapping[str, Any]]) -> list[str]:
    return [" ".join([theme["name"], *theme.get("keywords", ())]) for theme in themes]

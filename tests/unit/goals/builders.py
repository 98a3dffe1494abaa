"""Rows of backlogs for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from arbor.goals.backlog import Backlog
from arbor.goals.hierarchy import ChildGoal
from arbor.goals.plans import PlanDraft, PlanStatus, StepDraft, StepStatus
from arbor.goals.rows import BacklogRows, GoalRow, IntentRow, PlanRow, StepRow
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.ids import uuid7

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONG_AGO = datetime(2026, 4, 1, 12, tzinfo=UTC)
AGENT = uuid7()
HEARTBEAT = uuid7()


def goal_row(title: str = "Map", **changes: Any) -> GoalRow:
    return GoalRow(
        **{
            "id": uuid7(),
            "agent_id": AGENT,
            "title": title,
            "state": GoalState.ACTIVE,
            "layer": GoalLayer.OBJECTIVE,
            "source": GoalSource.USER_REQUEST,
            "touched_at": LONG_AGO,
            **changes,
        }
    )


def intent_row(goal: GoalRow, **changes: Any) -> IntentRow:
    return IntentRow(
        **{
            "id": uuid7(),
            "agent_id": AGENT,
            "goal_id": goal.id,
            "action": "recall",
            "description": "Recall the river.",
            **changes,
        }
    )


def plan_rows(goal: GoalRow, *texts: str, **changes: Any) -> tuple[PlanRow, list[StepRow]]:
    """Return a plan of a goal, active by default, with steps that wait."""
    plan = PlanRow(
        **{"id": uuid7(), "agent_id": AGENT, "goal_id": goal.id, "status": PlanStatus.ACTIVE, **changes}
    )
    steps = [
        StepRow(id=uuid7(), plan_id=plan.id, position=position, action="recall", description=text)
        for position, text in enumerate(texts, start=1)
    ]
    return plan, steps


def backlog_of(
    *goals: GoalRow,
    intents: Iterable[IntentRow] = (),
    plans: Iterable[tuple[PlanRow, list[StepRow]]] = (),
    running: Iterable[IntentRow] = (),
    ended: Mapping[UUID, list[ChildGoal]] | None = None,
    heartbeat_id: UUID | None = HEARTBEAT,
) -> Backlog:
    """Return a backlog with these rows, changed by a heartbeat by default; an open heartbeat has locked the running intents."""
    planned = list(plans)
    rows = BacklogRows(
        goals={goal.id: goal for goal in goals},
        plans={plan.id: plan for plan, _ in planned},
        steps=[step for _, steps in planned for step in steps],
        intents={intent.id: intent for intent in intents},
        running_intents=frozenset(intent.id for intent in running),
        ended_children=ended or {},
    )
    return Backlog(AGENT, rows, now=NOW, heartbeat_id=heartbeat_id)


def draft_of(*texts: str, **changes: Any) -> PlanDraft:
    return PlanDraft(
        steps=[StepDraft(action="recall", description=text) for text in texts],
        **changes,
    )


def commit_steps(steps: Iterable[StepRow]) -> list[StepRow]:
    """Set the status of steps to committed, and return the steps."""
    rows = list(steps)
    for step in rows:
        step.status = StepStatus.COMMITTED
    return rows

"""Goals: what the beat did to them, as the reply says and as the actions turned out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from apps.goals.models import Goal
from apps.goals.services.backlog import Backlog
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.reply import Decomposition, GoalUpdate, NewGoal, Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.pipeline.engine import Context, NodeResult, Phase


class Goals:
    """Applies the reply's goal updates, new goals and decompositions, and the outcome of intents."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Change the backlog; an item the backlog refuses is dropped with its reason, the others stand."""
        reply: Reply = context["reply"]
        results: list[ActionResult] = context["results"]
        served = [result for result in results if result.intent_id]
        if not (served or reply.goal_updates or reply.new_goals or reply.decompositions):
            return NodeResult()
        backlog = Backlog.lock(UUID(context["agent_id"]), now=self._clock.now())
        changes = _Changes(backlog, UUID(context["heartbeat_id"]))
        for result in served:
            changes.apply(f"actions[{result.index}].intent_id", changes.intent, result)
        for place, decomposition in enumerate(reply.decompositions):
            changes.apply(f"decompositions[{place}]", changes.decompose, decomposition)
        for place, goal in enumerate(reply.new_goals):
            changes.apply(f"new_goals[{place}]", changes.add, goal)
        for place, update in enumerate(reply.goal_updates):
            changes.apply(f"goal_updates[{place}]", changes.update, update)
        backlog.save()
        record = {
            **context["record"],
            "goal_changes": [each.model_dump(mode="json") for each in changes.made],
            "dropped": [*context["record"].get("dropped", []), *changes.dropped],
        }
        return NodeResult(
            updates={"record": record},
            changed=tuple(f"{each.title}: {each.kind} {each.change}".strip() for each in changes.made),
        )


class _Changes:
    """Applies one item at a time, and keeps account."""

    def __init__(self, backlog: Backlog, heartbeat_id: UUID) -> None:
        self._backlog = backlog
        self._heartbeat_id = heartbeat_id
        self.made: list[GoalChange] = []
        self.dropped: list[dict[str, Any]] = []

    def apply[T: BaseModel](self, path: str, change: Callable[[T], None], item: T) -> None:
        """Apply a change; what the backlog refuses is listed, never silently lost."""
        try:
            change(item)
        except ArborError as error:
            self.dropped.append({"path": path, "value": item.model_dump_json(), "reason": str(error)})
            self._refuse(item, str(error))

    def intent(self, result: ActionResult) -> None:
        """Note how an intent's action turned out."""
        failed = result.outcome in (ActionOutcome.FAILURE, ActionOutcome.BLOCKED)
        final = result.outcome is ActionOutcome.BLOCKED and result.action not in ACTIONS
        intent = self._backlog.attempt(
            str(result.intent_id), error=result.summary if failed else "", final=final
        )
        goal = self._backlog.goal(intent.goal_id)
        self._note(goal, GoalChangeKind.PROGRESSED, f"the step {intent.description!r} is {intent.status}")

    def decompose(self, decomposition: Decomposition) -> None:
        """Commit to steps."""
        goal = self._backlog.goal(decomposition.goal_id)
        for intention in decomposition.intentions:
            self._backlog.commit(goal.id, action=intention.action, description=intention.description)
        steps = "; ".join(f"{each.action}: {each.description}" for each in decomposition.intentions)
        self._note(goal, GoalChangeKind.PLANNED, steps)

    def add(self, new: NewGoal) -> None:
        """Take up a goal."""
        goal = self._backlog.add(
            title=new.title,
            description=new.description,
            layer=new.layer,
            source=new.source,
            parent_id=new.parent_goal_id,
        )
        self._note(goal, GoalChangeKind.CREATED, f"it is {goal.state}")

    def update(self, update: GoalUpdate) -> None:
        """Note progress and move a goal, in this order: what is moved may be closed."""
        if update.progress is not None or update.note:
            goal = self._backlog.progress(
                update.goal_id,
                fraction=update.progress,
                note=update.note or "",
                heartbeat_id=self._heartbeat_id,
            )
            note = f": {update.note}" if update.note else ""
            self._note(goal, GoalChangeKind.PROGRESSED, f"{goal.fraction:.0%} done{note}")
            if goal.state == GoalState.COMPLETED:
                self._note(goal, GoalChangeKind.COMPLETED, "")
                return
        if update.state is not None and update.state != self._backlog.goal(update.goal_id).state:
            goal = self._backlog.move(update.goal_id, update.state, reason=update.reason or "")
            kind = _KIND_OF_STATE.get(GoalState(goal.state), GoalChangeKind.MOVED)
            self._note(goal, kind, update.reason or f"it is {goal.state}")

    def _note(self, goal: Goal, kind: GoalChangeKind, change: str) -> None:
        self.made.append(GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change))

    def _refuse(self, item: BaseModel, reason: str) -> None:
        goal_id = str(getattr(item, "goal_id", None) or "")
        title = getattr(item, "title", "") or self._backlog.title_of(goal_id) or goal_id
        self.made.append(GoalChange(goal_id=goal_id, title=title, kind=GoalChangeKind.REFUSED, change=reason))


_KIND_OF_STATE = {
    GoalState.COMPLETED: GoalChangeKind.COMPLETED,
    GoalState.ABANDONED: GoalChangeKind.ABANDONED,
}

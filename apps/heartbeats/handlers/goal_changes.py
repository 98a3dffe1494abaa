"""What a heartbeat does to the backlog, one item at a time, and the account of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from apps.goals.services.backlogs import lock_backlog, save_backlog
from arbor.errors import ArborError, Invalid, NotFound
from arbor.goals.commitments import require_active
from arbor.goals.injection import Injected
from arbor.goals.intents import NO_WORK, carries_out
from arbor.goals.plans import MAX_DEPENDENCIES, PlanDraft, StepDraft
from arbor.goals.requests import NewGoalRequest
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.reflex_deeds import STAND_INS
from arbor.heartbeat.reply import Decomposition, GoalUpdate, NewGoal
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.ids import read_id
from arbor.pipeline.engine import Context, NodeResult


class Changes:
    """Applies one item at a time, and keeps account."""

    def __init__(self, context: Context, now: datetime) -> None:
        self._context = context
        self._backlog = lock_backlog(
            UUID(context["agent_id"]), now=now, heartbeat_id=UUID(context["heartbeat_id"])
        )
        earlier = [
            change
            for record in (context.get("record", {}), context.get("earlier_record", {}))
            for change in record.get("goal_changes", [])
        ]
        #: Goals on which this heartbeat is counted as spent already, in this turn or an earlier one.
        self._served = {each["goal_id"] for each in earlier if each["kind"] in _SERVING}
        self._told = frozenset(self._served)
        #: Goals that actions were for, by none of their steps, with the names of these actions.
        self._meant: dict[UUID, tuple[GoalRow, list[str]]] = {}
        #: Intents that were tried, and those that were let go without a try, by their ids.
        self._tried: set[str] = set()
        self._let_go: set[str] = set()
        self._made: list[GoalChange] = []
        self._dropped: list[dict[str, Any]] = []

    def apply[T: BaseModel](self, path: str, change: Callable[[T], None], item: T) -> None:
        """Apply a change; what the backlog refuses is listed, never silently lost."""
        try:
            change(item)
        except ArborError as error:
            self._dropped.append({"path": path, "value": item.model_dump_json(), "reason": str(error)})
            self._refuse(item, str(error))

    def save(self) -> NodeResult:
        """Write everything, and put the account on the heartbeat's record, after what is there of it."""
        self._note_meant()
        save_backlog(self._backlog)
        record: Mapping[str, Any] = self._context.get("record", {})
        made = [each.model_dump(mode="json") for each in self._made]
        return NodeResult(
            updates={
                "record": {
                    **record,
                    "goal_changes": [*record.get("goal_changes", []), *made],
                    "dropped": [*record.get("dropped", []), *self._dropped],
                }
            },
            changed=tuple(f"{each.title}: {each.kind} {each.change}".strip() for each in self._made),
        )

    def intent(self, result: ActionResult) -> None:
        """Note how an intent's action turned out.

        Raises NotFound where it is not open any more, and Invalid where another action than the step's was done: it is let
        go untried. What was done then counts for the goal that the action names.
        """
        try:
            intent = self._backlog.intent(str(result.intent_id))
        except NotFound:
            if is_work(result):
                self.serve(result)
            raise
        if not self._carries_out(result.action, intent.action):
            self.put_off(result)
            if is_work(result):
                self.serve(result)
            raise Invalid(f"the step is {intent.action}; {result.action} does not carry it out")
        failed = result.outcome in (ActionOutcome.FAILURE, ActionOutcome.BLOCKED)
        final = result.outcome is ActionOutcome.BLOCKED and result.action not in ACTIONS
        self._tried.add(str(intent.id))
        self._serve(intent.goal_id)
        self._backlog.attempt(
            intent.id,
            error=result.summary if failed else "",
            final=final,
            part=result.outcome is ActionOutcome.PARTIAL,
        )
        goal = self._backlog.goal(intent.goal_id)
        self._note(goal, GoalChangeKind.PROGRESSED, f"the step {intent.description!r} is {intent.status}")

    def serve(self, result: ActionResult) -> None:
        """Count what an action did for an open goal without being a step of it; a goal that is not there is listed."""
        try:
            goal = self._backlog.goal(str(result.goal_id))
        except NotFound as error:
            path = f"actions[{result.index}].goal_id"
            self._dropped.append({"path": path, "value": result.goal_id, "reason": str(error)})
            return
        self._serve(goal.id)
        self._meant.setdefault(goal.id, (goal, []))[1].append(result.action)

    def put_off(self, result: ActionResult) -> None:
        """Let an intent wait on that was locked, and whose action was not possible yet: nothing was tried."""
        key = str(read_id(str(result.intent_id)))
        self._let_go.add(key)
        self._backlog.put_off(key, counted=key in self._context.get("counted", []))

    @property
    def untried(self) -> set[str]:
        """Intents that were let go, and of which nothing was tried, by their ids."""
        return self._let_go - self._tried

    def decompose(self, decomposition: Decomposition) -> None:
        """Plan steps; the next of them are committed to."""
        draft = PlanDraft(
            steps=[
                StepDraft(
                    action=each.action,
                    description=each.description,
                    precondition=each.precondition or "",
                    postcondition=each.postcondition or "",
                    estimated_ticks=each.estimated_ticks,
                )
                for each in decomposition.intentions
            ],
            estimated_ticks=decomposition.estimated_ticks,
            estimated_cost=decomposition.estimated_cost,
            risk=decomposition.risk,
            dependencies=decomposition.dependencies,
        )
        goal = self._backlog.goal(decomposition.goal_id)
        # A person may plan ahead; what an agent plans, it goes on to do.
        require_active(goal)
        self._serve(goal.id)
        plan, made = self._backlog.plan(goal.id, draft)
        self._drop_dependencies([each for each in draft.dependencies if each not in plan.dependencies])
        steps = "; ".join(f"{step.action}: {step.description}" for step in made)
        self._note(goal, GoalChangeKind.PLANNED, steps)

    def add(self, new: NewGoal) -> None:
        """Take up a goal."""
        goal = self._backlog.add(
            NewGoalRequest(
                title=new.title,
                description=new.description,
                layer=new.layer,
                source=new.source,
                parent_id=new.parent_goal_id,
                deadline=new.deadline,
                expected_reward=new.expected_reward,
            )
        )
        self._note(goal, GoalChangeKind.CREATED, f"it is {goal.state}")

    def inject(self, injected: Injected) -> GoalRow:
        """Take up a goal that came by itself."""
        goal = self._backlog.add(
            NewGoalRequest(
                title=injected.title,
                description=injected.description,
                layer=injected.layer,
                source=injected.source,
                rule=injected.rule.value,
            )
        )
        self._note(
            goal,
            GoalChangeKind.CREATED,
            f"it is {goal.state}; it came by itself ({injected.rule})",
            by_rule=True,
        )
        return goal

    def conclude(self, goal_id: str, why: str) -> None:
        """Close a goal that came by itself, now that what made it is over."""
        goal = self._backlog.goal(goal_id)
        if goal.state != GoalState.ACTIVE:
            self._backlog.move(goal_id, GoalState.ABANDONED, reason=why, by_rule=True)
            self._note(goal, GoalChangeKind.ABANDONED, why, by_rule=True)
        else:
            self._backlog.move(goal_id, GoalState.COMPLETED, by_rule=True)
            self._note(goal, GoalChangeKind.COMPLETED, why, by_rule=True)
        self._note_reached()

    def update(self, update: GoalUpdate) -> None:
        """Note progress, what stands in its way, and a move, in this order: what is moved may be closed."""
        if update.progress is not None or update.note:
            self._serve(self._backlog.goal(update.goal_id).id)
            goal = self._backlog.progress(update.goal_id, fraction=update.progress, note=update.note or "")
            note = f": {update.note}" if update.note else ""
            self._note(goal, GoalChangeKind.PROGRESSED, f"{goal.fraction:.0%} done{note}")
            if goal.state == GoalState.COMPLETED:
                self._note(goal, GoalChangeKind.COMPLETED, "")
                self._note_reached()
                return
        if update.blocked_by is not None:
            self._block(update.goal_id, update.blocked_by)
        if update.state is not None and update.state != self._backlog.goal(update.goal_id).state:
            goal = self._backlog.move(update.goal_id, update.state, reason=update.reason or "")
            kind = _KIND_OF_STATE.get(GoalState(goal.state), GoalChangeKind.MOVED)
            self._note(goal, kind, update.reason or f"it is {goal.state}")
        self._note_reached()

    def _serve(self, goal_id: UUID) -> None:
        """Count this heartbeat as spent on the goal, once."""
        if str(goal_id) not in self._served:
            self._served.add(str(goal_id))
            self._backlog.serve(goal_id)

    def _carries_out(self, action: str, step: str) -> bool:
        by_rule = self._context["situation"].model_is_reflex
        return carries_out(
            action, step, offered=self._context["allowed"], stand_ins=STAND_INS if by_rule else ()
        )

    def _note_meant(self) -> None:
        """Tell what was done for goals of which this heartbeat has nothing else to tell that it is spent on."""
        told = self._told | {each.goal_id for each in self._made if each.kind in _SERVING}
        for goal, actions in self._meant.values():
            if str(goal.id) not in told:
                names = ", ".join(dict.fromkeys(name.replace("_", " ") for name in actions))
                self._note(goal, GoalChangeKind.PROGRESSED, f"by {names}")

    def _block(self, goal_id: str, by: str) -> None:
        before = self._backlog.goal(goal_id)
        waited = bool(before.blocked_by or before.blocked_by_goal_id)
        goal = self._backlog.block(goal_id, by)
        if by.strip():
            what = self._backlog.title_of(by.strip()) or by.strip()
            self._note(goal, GoalChangeKind.BLOCKED, f"it waits for {what}")
        elif waited:
            self._note(goal, GoalChangeKind.PROGRESSED, "nothing stands in its way any more")

    def _note_reached(self) -> None:
        """Tell of goals that are reached because all their parts are."""
        for goal in self._backlog.reached:
            self._note(goal, GoalChangeKind.COMPLETED, "all its parts are done")
        self._backlog.reached.clear()

    def _note(self, goal: GoalRow, kind: GoalChangeKind, change: str, *, by_rule: bool = False) -> None:
        self._made.append(
            GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change, by_rule=by_rule)
        )

    def _drop_dependencies(self, left_out: list[str]) -> None:
        if left_out:
            reason = f"a plan depends on at most {MAX_DEPENDENCIES} things; it has so many already"
            self._dropped.append(
                {"path": "decompositions.dependencies", "value": "; ".join(left_out), "reason": reason}
            )

    def _refuse(self, item: BaseModel, reason: str) -> None:
        goal_id = str(getattr(item, "goal_id", None) or self._goal_of(getattr(item, "intent_id", None)))
        title = getattr(item, "title", "") or self._backlog.title_of(goal_id) or goal_id
        self._made.append(
            GoalChange(goal_id=goal_id, title=title, kind=GoalChangeKind.REFUSED, change=reason)
        )

    def _goal_of(self, intent_id: str | None) -> str:
        try:
            return str(self._backlog.intent(intent_id).goal_id) if intent_id else ""
        except NotFound:
            return ""


def is_work(result: ActionResult) -> bool:
    """Tell whether an action did something for the goal that it names."""
    worked = result.outcome in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL)
    return bool(result.goal_id) and worked and result.action not in NO_WORK


_KIND_OF_STATE = {
    GoalState.COMPLETED: GoalChangeKind.COMPLETED,
    GoalState.ABANDONED: GoalChangeKind.ABANDONED,
}
#: What a heartbeat is spent on a goal with.
_SERVING = (GoalChangeKind.PROGRESSED, GoalChangeKind.PLANNED, GoalChangeKind.COMPLETED)

"""The plans of an agent's goals and their steps, the next of which are committed as intents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile
from uuid import UUID

from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound
from arbor.goals.commitments import OPEN_INTENTS, Commitments
from arbor.goals.conditions import find_unmet, names_goal, unmet
from arbor.goals.drafts import extend_plan, new_plan, new_steps, unplanned_drafts
from arbor.goals.intents import (
    MAX_ATTEMPTS,
    IntentStatus,
    is_used_up,
    move_intent,
    status_after_failure,
    status_after_part,
)
from arbor.goals.plans import (
    MAX_STEPS,
    OPEN_STEPS,
    PlanDraft,
    PlanStatus,
    StepDraft,
    StepStatus,
    check_draft,
    is_carried_out,
    move_plan,
    next_to_commit,
)
from arbor.goals.rows import (
    BacklogRows,
    ChangeLog,
    GoalPerceptKind,
    GoalRow,
    IntentRow,
    PerceptRow,
    PlanRow,
    StepRow,
)
from arbor.goals.values import GoalState
from arbor.ids import uuid7
from arbor.values import replace

_OPEN_PLANS = frozenset({PlanStatus.DRAFT, PlanStatus.ACTIVE})


class Steps:
    """Open plans and steps of one backlog, changed in memory."""

    def __init__(
        self, agent_id: UUID, rows: BacklogRows, log: ChangeLog, commitments: Commitments, now: datetime
    ) -> None:
        self._agent_id = agent_id
        self._goals = rows.goals
        self._plans = rows.plans
        self._steps = rows.steps
        self._log = log
        self._commitments = commitments
        self._now = now

    def plan_of(self, goal: GoalRow) -> PlanRow | None:
        """Return a goal's active plan, if it has one."""
        return next(
            (
                plan
                for plan in self._plans.values()
                if plan.goal_id == goal.id and plan.status == PlanStatus.ACTIVE
            ),
            None,
        )

    def plan(
        self, goal: GoalRow, draft: PlanDraft, *, as_draft: bool = False
    ) -> tuple[PlanRow, list[StepRow]]:
        """Create a goal's active plan or extend it; the next steps of an active goal become intents.

        Raises Invalid for a draft without steps or with wrong values, AlreadyExists when every drafted step is planned
        already, LimitReached for too many steps.
        """
        check_draft(draft)
        needs = [
            text for text in draft.dependencies if not names_goal(text, goal_id=goal.id, title=goal.title)
        ]
        draft = replace(draft, dependencies=needs)
        plan = None if as_draft else self.plan_of(goal)
        planned = self._steps_of(plan) if plan else []
        new_drafts = unplanned_drafts(draft.steps, [step for step in planned if step.status in OPEN_STEPS])
        if not new_drafts:
            raise AlreadyExists("these steps are planned already")
        if len(planned) + len(new_drafts) > MAX_STEPS:
            raise LimitReached(
                f"a plan has at most {MAX_STEPS} steps; this one would have {len(planned) + len(new_drafts)}"
            )
        if plan is None:
            status = PlanStatus.DRAFT if as_draft else PlanStatus.ACTIVE
            plan = new_plan(self._agent_id, goal.id, draft, status)
            self._plans[plan.id] = plan
            self._log.new(plan)
        else:
            extend_plan(plan, draft)
            self._log.changed(plan)
        created = self._add(plan, new_drafts, first=max((step.position for step in planned), default=0) + 1)
        self.commit_next(goal)
        return plan, created

    def start(self, plan_id: UUID) -> PlanRow:
        """Make a draft the goal's active plan; raises AlreadyExists when it has one."""
        plan = self._open_plan(plan_id)
        goal = self._goals[plan.goal_id]
        if self.plan_of(goal) is not None:
            raise AlreadyExists(f"{goal.title!r} has an active plan already; abandon that one first")
        plan.status = move_plan(plan.status, PlanStatus.ACTIVE)
        self._log.changed(plan)
        self.commit_next(goal)
        return plan

    def abandon(self, plan_id: UUID, reason: str) -> PlanRow:
        """Abandon a plan and its open steps; raises Invalid without a reason."""
        if not reason.strip():
            raise Invalid("giving a plan up needs a reason")
        plan = self._open_plan(plan_id)
        self._abandon_plan(plan, reason.strip())
        return plan

    def commit_next(self, goal: GoalRow) -> None:
        """Commit to the next steps of an active goal's plan while there is room."""
        plan = self.plan_of(goal)
        if plan is None or goal.state != GoalState.ACTIVE or unmet(plan.dependencies, plan.met):
            return
        steps = list(takewhile(lambda step: not self._waits_for_goal(step, goal), self._steps_of(plan)))
        committed = sum(intent.goal_id == goal.id for intent in self._commitments.all_open())
        indexes = next_to_commit(
            [(step.status, bool(step.precondition)) for step in steps], committed=committed
        )
        for step in (steps[index] for index in indexes):
            step.status = StepStatus.COMMITTED
            self._log.changed(step)
            self._commitments.commit(goal, step)

    def mark_dependency_met(self, goal: GoalRow, text: str) -> None:
        """Record that a dependency of a goal's active plan is met. Raises Invalid for a text that names no unmet dependency."""
        plan = self.plan_of(goal)
        if plan is None:
            raise Invalid(f"{goal.title!r} has no active plan that could wait for {text!r}")
        dependency = find_unmet(text, dependencies=plan.dependencies, met=plan.met)
        plan.met = [*plan.met, dependency]
        self._log.changed(plan)
        self.commit_next(goal)

    def free_steps(self, goal: GoalRow) -> None:
        """Commit to the next steps of all other goals' plans after a goal has ended: one may have waited for it by its precondition.

        A completed goal is recorded as met in the plans that depend on it.
        """
        is_completed = goal.state == GoalState.COMPLETED
        for plan in self._plans.values():
            if plan.status not in _OPEN_PLANS:
                continue
            waiting = unmet(plan.dependencies, plan.met) if is_completed else []
            met = [text for text in waiting if names_goal(text, goal_id=goal.id, title=goal.title)]
            if met:
                plan.met = [*plan.met, *met]
                self._log.changed(plan)
            if plan.goal_id != goal.id:
                self.commit_next(self._goals[plan.goal_id])

    def unmet_dependencies(self, intent: IntentRow) -> list[str]:
        """Return the unmet dependencies of the plan to which an intent belongs."""
        step = self._step_of(intent)
        plan = self._plans.get(step.plan_id) if step else None
        return unmet(plan.dependencies, plan.met) if plan else []

    def is_waiting(self, intent_id: UUID) -> bool:
        """Return whether an open intent belongs to a plan with unmet dependencies."""
        intent = next((row for row in self._commitments.all_open() if row.id == intent_id), None)
        return intent is not None and bool(self.unmet_dependencies(intent))

    def record_attempt(self, intent: IntentRow, *, error: str, final: bool, part: bool) -> None:
        """Record the result of one attempt at an intent, as in `Backlog.record_attempt`, and update its plan."""
        if intent.status == IntentStatus.PENDING:
            intent.status = move_intent(IntentStatus.PENDING, IntentStatus.LOCKED)
            intent.ticks_used += 1
        ticks, limit = intent.ticks_used, intent.tick_limit
        # A part that the estimate foresees is no failure, of which there may be three.
        is_foreseen = part and status_after_part(ticks_used=ticks, limit=limit) is IntentStatus.PENDING
        if error or not is_foreseen:
            intent.attempts += 1
        if error:
            to = status_after_failure(intent.attempts, final=final, ticks_used=ticks, limit=limit)
        else:
            to = status_after_part(ticks_used=ticks, limit=limit) if part else IntentStatus.COMPLETED
            step = self._step_of(intent)
            if part and step is not None and step.postcondition and intent.attempts < MAX_ATTEMPTS:
                # A part of a step does not establish the postcondition.
                to = IntentStatus.PENDING
        intent.status = move_intent(intent.status, to)
        intent.last_error = error
        self._commitments.unlock(intent)
        if to in OPEN_INTENTS:
            return
        intent.ended_at = self._now
        if to is IntentStatus.COMPLETED:
            self._complete_step(intent)
            return
        # An intent that used up its attempts, or cannot succeed, has failed, however long that took.
        used_up = is_used_up(ticks, limit) and intent.attempts < MAX_ATTEMPTS and not final
        why = f"its limit of heartbeats, {limit}, was reached; {error}" if used_up else error
        self._fail_step(intent, why, GoalPerceptKind.TIMEOUT if used_up else GoalPerceptKind.ACTION_RESULT)

    def drop(self, goal: GoalRow) -> int:
        """Abandon the plans and intents of a closed goal; return the number of intents."""
        why = f"its goal is {goal.state}"
        for plan in self._plans.values():
            if plan.goal_id == goal.id and plan.status in _OPEN_PLANS:
                self._abandon_plan(plan, why)
        for intent in self._commitments.all_open():
            if intent.goal_id == goal.id:
                self._commitments.abandon(intent, why)
        return self._commitments.count_abandoned(goal, why)

    def notify(
        self,
        content: str,
        goal: GoalRow,
        intent: IntentRow | None = None,
        *,
        kind: GoalPerceptKind = GoalPerceptKind.ACTION_RESULT,
    ) -> None:
        """Add a percept for the agent's next heartbeat about the end of a goal, plan or intent."""
        about = {"goal": str(goal.id)} | ({"intent": str(intent.id)} if intent else {})
        self._log.new(
            PerceptRow(id=uuid7(), agent_id=self._agent_id, kind=kind, content=content, detail=about)
        )

    def _waits_for_goal(self, step: StepRow, goal: GoalRow) -> bool:
        """Return whether a step that is not committed yet has a precondition that names another open goal."""
        return (
            step.status is StepStatus.WAITING
            and bool(step.precondition)
            and any(
                other.id != goal.id
                and other.state.is_open
                and names_goal(step.precondition, goal_id=other.id, title=other.title)
                for other in self._goals.values()
            )
        )

    def _complete_step(self, intent: IntentRow) -> None:
        step = self._step_of(intent)
        if step is None:
            return
        step.status = StepStatus.COMPLETED
        self._log.changed(step)
        plan = self._plans[step.plan_id]
        if is_carried_out([planned.status for planned in self._steps_of(plan)]):
            plan.status, plan.ended_at = move_plan(plan.status, PlanStatus.COMPLETED), self._now
            self._log.changed(plan)
        else:
            self.commit_next(self._goals[plan.goal_id])

    def _fail_step(self, intent: IntentRow, why: str, kind: GoalPerceptKind) -> None:
        """Abandon the plan of a step that failed for good, and notify the agent."""
        step, goal = self._step_of(intent), self._goals[intent.goal_id]
        what = f"the step {intent.description!r} ({intent.action}) towards {goal.title!r}"
        text = f"You gave up {what}: {why.rstrip('.')}."
        if step is not None:
            plan = self._plans[step.plan_id]
            self._abandon_plan(plan, f"step {step.position} failed for good: {why}")
            text += " Its plan is given up with it; the goal needs another."
        self.notify(text, goal, intent, kind=kind)

    def _abandon_plan(self, plan: PlanRow, reason: str) -> None:
        plan.status, plan.ended_at = move_plan(plan.status, PlanStatus.ABANDONED), self._now
        plan.reason = reason
        self._log.changed(plan)
        steps = {step.id: step for step in self._steps_of(plan)}
        for step in steps.values():
            if step.status in OPEN_STEPS:
                step.status = StepStatus.ABANDONED
                self._log.changed(step)
        for intent in self._commitments.all_open():
            if intent.step_id in steps:
                goal = self._goals[plan.goal_id]
                why = f"its plan is given up: {reason}" if goal.state.is_open else f"its goal is {goal.state}"
                self._commitments.abandon(intent, why)

    def _open_plan(self, plan_id: UUID) -> PlanRow:
        plan = self._plans.get(plan_id)
        if plan is None or plan.status not in _OPEN_PLANS:
            raise NotFound(f"there is no open plan {plan_id}")
        return plan

    def _add(self, plan: PlanRow, drafts: Iterable[StepDraft], *, first: int) -> list[StepRow]:
        created = new_steps(plan.id, drafts, first=first)
        for step in created:
            self._steps.append(step)
            self._log.new(step)
        return created

    def _steps_of(self, plan: PlanRow) -> list[StepRow]:
        return sorted(
            (step for step in self._steps if step.plan_id == plan.id), key=lambda step: step.position
        )

    def _step_of(self, intent: IntentRow) -> StepRow | None:
        return next((step for step in self._steps if step.id == intent.step_id), None)

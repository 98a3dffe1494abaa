"""The plans of an agent's goals, their steps, and those of them that are committed as intents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from apps.goals.models import Goal, Intent, Plan, PlanStep
from apps.goals.services.loading import OPEN_INTENTS, Loaded
from apps.goals.services.plan_rows import extend, not_planned_yet, plan_row, step_rows
from apps.goals.services.unit import Unit
from apps.heartbeats.models import Percept, PerceptKind
from apps.tenants.scope import current_tenant
from arbor.errors import AlreadyExists, Invalid, LimitReached, NotFound, TransitionIllegal
from arbor.goals.intents import (
    MAX_ATTEMPTS,
    IntentStatus,
    after_failure,
    after_part,
    is_used_up,
    move_intent,
    tick_limit,
)
from arbor.goals.plans import (
    MAX_STEPS,
    PlanDraft,
    PlanStatus,
    StepDraft,
    StepStatus,
    check_draft,
    is_carried_out,
    move_plan,
    next_to_commit,
)
from arbor.goals.values import GoalState


class Steps:
    """Plans, steps and intents that are open, changed in memory."""

    def __init__(self, agent_id: UUID, loaded: Loaded, unit: Unit, now: datetime) -> None:
        self._agent_id = agent_id
        self._goals = loaded.goals
        self._intents = loaded.intents
        self._plans = loaded.plans
        self._steps = loaded.steps
        self._unit = unit
        self._now = now

    def intent(self, intent_id: UUID | None) -> Intent:
        """Return an open intent; raises NotFound."""
        intent = self._intents.get(intent_id) if intent_id else None
        if intent is None or intent.status not in OPEN_INTENTS:
            raise NotFound(f"there is no open intent {intent_id}")
        return intent

    def plan_of(self, goal: Goal, status: PlanStatus = PlanStatus.ACTIVE) -> Plan | None:
        """Return a goal's plan of a status, if it has one; of several drafts, the first."""
        return next(
            (each for each in self._plans.values() if each.goal_id == goal.id and each.status == status), None
        )

    def plan(self, goal: Goal, draft: PlanDraft, *, as_draft: bool = False) -> tuple[Plan, list[PlanStep]]:
        """Make a goal's active plan, or extend the one it has; the next steps become intents if the goal is active.

        Raises Invalid for a draft without steps or with wrong values, AlreadyExists when every step of it is planned
        already, LimitReached for too many steps.
        """
        check_draft(draft)
        plan = None if as_draft else self.plan_of(goal)
        mine = self._of(plan) if plan else []
        fresh = not_planned_yet(draft.steps, [step for step in mine if step.status in _OPEN_STEPS])
        if not fresh:
            raise AlreadyExists("these steps are planned already")
        if len(mine) + len(fresh) > MAX_STEPS:
            raise LimitReached(
                f"a plan has at most {MAX_STEPS} steps; this one would have {len(mine) + len(fresh)}"
            )
        if plan is None:
            plan = self._new_plan(goal, draft, PlanStatus.DRAFT if as_draft else PlanStatus.ACTIVE)
        else:
            extend(plan, draft)
            self._unit.changed(plan)
        made = self._add(plan, fresh, first=max((step.position for step in mine), default=0) + 1)
        self.commit_next(goal)
        return plan, made

    def start(self, plan_id: UUID) -> Plan:
        """Make a draft the goal's active plan; raises AlreadyExists when it has one."""
        plan = self._open_plan(plan_id)
        goal = self._goals[plan.goal_id]
        if self.plan_of(goal) is not None:
            raise AlreadyExists(f"{goal.title!r} has an active plan already; abandon that one first")
        plan.status = move_plan(PlanStatus(plan.status), PlanStatus.ACTIVE)
        self._unit.changed(plan)
        self.commit_next(goal)
        return plan

    def abandon(self, plan_id: UUID, reason: str) -> Plan:
        """Give a plan up, and the steps of it that are open."""
        if not reason.strip():
            raise Invalid("giving a plan up needs a reason")
        plan = self._open_plan(plan_id)
        self._give_up(plan, reason.strip())
        return plan

    def commit(self, goal: Goal, step: PlanStep | None, draft: StepDraft) -> Intent:
        """Commit to a step of an active goal; raises TransitionIllegal for one that is not."""
        require_active(goal)
        intent = Intent(
            tenant_id=current_tenant(),
            agent_id=self._agent_id,
            goal=goal,
            step=step,
            action=draft.action,
            description=draft.description,
            tick_limit=tick_limit(draft.estimated_ticks),
        )
        self._intents[intent.id] = intent
        self._unit.new(intent)
        return intent

    def commit_next(self, goal: Goal) -> None:
        """Commit to the next steps of an active goal's plan, as many as there is room for."""
        plan = self.plan_of(goal)
        if plan is None or goal.state != GoalState.ACTIVE:
            return
        steps = self._of(plan)
        committed = sum(each.goal_id == goal.id for each in self._open_intents())
        places = next_to_commit(
            [(StepStatus(step.status), bool(step.precondition)) for step in steps], committed=committed
        )
        for step in (steps[place] for place in places):
            step.status = StepStatus.COMMITTED
            self._unit.changed(step)
            self.commit(
                goal,
                step,
                StepDraft(
                    action=step.action, description=step.description, estimated_ticks=step.estimated_ticks
                ),
            )

    def attempt(self, intent: Intent, *, error: str, final: bool, part: bool) -> None:
        """Note how one try at an intent ended, and what that means for its plan."""
        if intent.status == IntentStatus.PENDING:
            intent.status = move_intent(IntentStatus.PENDING, IntentStatus.LOCKED)
            intent.ticks_used += 1
        intent.attempts += 1
        ticks, limit = intent.ticks_used, intent.tick_limit
        if error:
            to = after_failure(intent.attempts, final=final, ticks_used=ticks, limit=limit)
        else:
            to = after_part(ticks_used=ticks, limit=limit) if part else IntentStatus.COMPLETED
        intent.status = move_intent(IntentStatus(intent.status), to)
        intent.last_error = error
        intent.locked_by, intent.locked_at = None, None
        self._unit.changed(intent)
        if to in OPEN_INTENTS:
            return
        intent.ended_at = self._now
        if to is IntentStatus.COMPLETED:
            self._done(intent)
        else:
            # What failed as often as it may, or cannot work, has failed, however long that took.
            used_up = is_used_up(ticks, limit) and intent.attempts < MAX_ATTEMPTS and not final
            why = f"all {limit} heartbeats that it may take were spent; {error}" if used_up else error
            self._failed(intent, why, PerceptKind.TIMEOUT if used_up else PerceptKind.ACTION_RESULT)

    def put_off(self, intent: Intent, *, counted: bool) -> None:
        """Let a locked intent go without a try: neither the try nor the heartbeat counts.

        `counted` tells that the lock counted the heartbeat; an earlier try in the same heartbeat did otherwise.
        """
        if intent.status != IntentStatus.LOCKED:
            return
        intent.status = move_intent(IntentStatus.LOCKED, IntentStatus.PENDING)
        if counted:
            intent.ticks_used = max(0, intent.ticks_used - 1)
        intent.locked_by, intent.locked_at = None, None
        self._unit.changed(intent)

    def drop(self, goal: Goal) -> int:
        """Let go of everything that served a goal which is closed; return how many intents that were."""
        why = f"its goal is {goal.state}"
        for plan in [each for each in self._plans.values() if each.goal_id == goal.id]:
            if plan.status in _OPEN_PLANS:
                self._give_up(plan, why)
        left = [each for each in self._open_intents() if each.goal_id == goal.id]
        for intent in left:
            self._end(intent, IntentStatus.ABANDONED, why)
        return sum(each.goal_id == goal.id and each.last_error == why for each in self._intents.values())

    def _done(self, intent: Intent) -> None:
        step = self._step(intent)
        if step is None:
            return
        step.status = StepStatus.COMPLETED
        self._unit.changed(step)
        plan = self._plans[step.plan_id]
        if is_carried_out([StepStatus(each.status) for each in self._of(plan)]):
            plan.status, plan.ended_at = move_plan(PlanStatus(plan.status), PlanStatus.COMPLETED), self._now
            self._unit.changed(plan)
        else:
            self.commit_next(self._goals[plan.goal_id])

    def _failed(self, intent: Intent, why: str, kind: PerceptKind = PerceptKind.ACTION_RESULT) -> None:
        """A step failed for good: without it, the plan does not hold. The agent is told at its next beat."""
        self._unit.changed(intent)
        step, goal = self._step(intent), self._goals[intent.goal_id]
        told = f"You gave up the step {intent.description!r} ({intent.action}) towards {goal.title!r}: {why}."
        if step is not None:
            plan = self._plans[step.plan_id]
            self._give_up(plan, f"step {step.position} failed for good: {why}")
            told += " Its plan is given up with it; the goal needs another."
        self.tell(told, goal, intent, kind=kind)

    def tell(
        self,
        content: str,
        goal: Goal,
        intent: Intent | None = None,
        *,
        kind: PerceptKind = PerceptKind.ACTION_RESULT,
    ) -> None:
        """Let the agent perceive, at its next beat, how something that it had set going has ended."""
        about = {"goal": str(goal.id)} | ({"intent": str(intent.id)} if intent else {})
        self._unit.new(
            Percept(
                tenant_id=current_tenant(),
                agent_id=self._agent_id,
                kind=kind,
                content=content,
                detail=about,
            )
        )

    def _give_up(self, plan: Plan, reason: str) -> None:
        plan.status, plan.ended_at = move_plan(PlanStatus(plan.status), PlanStatus.ABANDONED), self._now
        plan.reason = reason
        self._unit.changed(plan)
        steps = {step.id: step for step in self._of(plan)}
        for step in steps.values():
            if step.status in _OPEN_STEPS:
                step.status = StepStatus.ABANDONED
                self._unit.changed(step)
        for intent in [each for each in self._open_intents() if each.step_id in steps]:
            goal = self._goals[plan.goal_id]
            closed = not GoalState(goal.state).is_open
            why = f"its goal is {goal.state}" if closed else f"its plan is given up: {reason}"
            self._end(intent, IntentStatus.ABANDONED, why)

    def _end(self, intent: Intent, to: IntentStatus, why: str) -> None:
        intent.status, intent.last_error, intent.ended_at = to, why, self._now
        intent.locked_by, intent.locked_at = None, None
        self._unit.changed(intent)

    def _open_plan(self, plan_id: UUID) -> Plan:
        plan = self._plans.get(plan_id)
        if plan is None or plan.status not in _OPEN_PLANS:
            raise NotFound(f"there is no open plan {plan_id}")
        return plan

    def _new_plan(self, goal: Goal, draft: PlanDraft, status: PlanStatus) -> Plan:
        plan = plan_row(self._agent_id, goal, draft, status)
        self._plans[plan.id] = plan
        self._unit.new(plan)
        return plan

    def _add(self, plan: Plan, drafts: Iterable[StepDraft], *, first: int) -> list[PlanStep]:
        made = step_rows(plan, drafts, first=first)
        for step in made:
            self._steps.append(step)
            self._unit.new(step)
        return made

    def _of(self, plan: Plan) -> list[PlanStep]:
        return sorted(
            (step for step in self._steps if step.plan_id == plan.id), key=lambda step: step.position
        )

    def _step(self, intent: Intent) -> PlanStep | None:
        return next((step for step in self._steps if step.id == intent.step_id), None)

    def _open_intents(self) -> list[Intent]:
        return [each for each in self._intents.values() if each.status in OPEN_INTENTS]


_OPEN_STEPS = (StepStatus.WAITING, StepStatus.COMMITTED)
_OPEN_PLANS = (PlanStatus.DRAFT, PlanStatus.ACTIVE)


def require_active(goal: Goal) -> None:
    """Raise TransitionIllegal for a goal that is not worked on."""
    if goal.state != GoalState.ACTIVE:
        raise TransitionIllegal(f"only an active goal is broken into intents; {goal.title!r} is {goal.state}")

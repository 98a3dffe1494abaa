"""How goals end, and what that is to the goals they are parts of."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import structlog

from apps.goals.models import Goal, Satisfaction
from apps.goals.services.loading import Loaded
from apps.goals.services.steps import Steps
from apps.goals.services.unit import Unit
from apps.tenants.scope import current_tenant
from arbor.goals.hierarchy import Child, fraction_of, is_reached
from arbor.goals.satisfaction import satisfaction
from arbor.goals.values import GoalSource, GoalState

log = structlog.get_logger(__name__)


class Endings:
    """Closes goals of one backlog, in memory."""

    def __init__(
        self,
        agent_id: UUID,
        loaded: Loaded,
        unit: Unit,
        steps: Steps,
        now: datetime,
        *,
        by_person: bool,
    ) -> None:
        self._agent_id = agent_id
        self._loaded = loaded
        self._goals = loaded.goals
        self._unit = unit
        self._steps = steps
        self._now = now
        self._by_person = by_person
        self._signals: list[tuple[Goal, Satisfaction]] = []
        self.reached: list[Goal] = []

    def close(self, goal: Goal, reason: str, *, by_rule: bool = False) -> None:
        """Let go of what served a goal that is completed or given up, note what it was worth, and lift what it is part of.

        What a rule closes was neither reached nor given up: nothing is learned from it.
        """
        if not by_rule:
            self._appraise(goal)
        if goal.state == GoalState.COMPLETED:
            goal.fraction, goal.completed_at = 1.0, self._now
        else:
            goal.abandoned_at, goal.abandonment_reason = self._now, reason
        self._release(goal)
        dropped = self._steps.drop(goal)
        if self._by_person:
            self._tell_of_end(goal, dropped)
        self.lift(goal)

    def _appraise(self, goal: Goal) -> None:
        signal = satisfaction(
            GoalSource(goal.source),
            completed=goal.state == GoalState.COMPLETED,
            fraction=goal.fraction,
            stated=goal.expected_reward,
            experienced=self._loaded.experienced.get(GoalSource(goal.source)),
            effort=goal.effort,
        )
        row = Satisfaction(
            tenant_id=current_tenant(),
            agent_id=self._agent_id,
            goal=goal,
            outcome=signal.outcome.value,
            reward_actual=signal.reward_actual,
            reward_expected=signal.reward_expected,
            reputation_delta=signal.reputation_delta,
            novelty=signal.novelty,
            effort=signal.effort,
        )
        self._unit.new(row)
        self._signals.append((goal, row))

    def _tell_of_end(self, goal: Goal, dropped: int) -> None:
        """What a person closed, the agent hears of."""
        why = f": {goal.abandonment_reason}" if goal.abandonment_reason else ""
        steps = f" {dropped} open steps towards it were dropped." if dropped else ""
        self._steps.tell(f"Your goal {goal.title!r} was {goal.state} by a person{why}.{steps}", goal)

    def _release(self, goal: Goal) -> None:
        for other in self._goals.values():
            if other.blocked_by_goal_id == goal.id:
                other.blocked_by_goal = None
                self._unit.changed(other)

    def lift(self, goal: Goal) -> None:
        """Carry what happened to a goal on to what it is a part of, upwards."""
        self._follow_parts(goal.parent_id)

    def take_out(self, whole_id: UUID | None) -> None:
        """Let a goal be what the parts that remain make of it, now that one was taken out."""
        self._follow_parts(whole_id, without_parts=0.0)

    def _follow_parts(self, whole_id: UUID | None, *, without_parts: float | None = None) -> None:
        """Complete a goal that is reached by its parts, else let it be as far as they are.

        `without_parts` is how far it is where no part counts; None: it stays as it is.
        """
        whole = self._goals.get(whole_id) if whole_id else None
        if whole is None or not GoalState(whole.state).is_open:
            return
        children = self.children(whole)
        if is_reached(children):
            whole.state = GoalState.COMPLETED
            self._touch(whole)
            self.reached.append(whole)
            self.close(whole, "")
            return
        found = fraction_of(children)
        fraction = without_parts if found is None else found
        if fraction is not None and not whole.fraction_by_hand and fraction != whole.fraction:
            whole.fraction = fraction
            self._touch(whole)
            self.lift(whole)

    def children(self, parent: Goal) -> list[Child]:
        """Return a goal's parts, those that ended included."""
        here = [
            Child(state=GoalState(each.state), fraction=each.fraction)
            for each in self._goals.values()
            if each.parent_id == parent.id
        ]
        return [*here, *self._loaded.ended_children.get(parent.id, ())]

    def report(self) -> None:
        """Log each goal that ended by somebody's doing, with what it was worth."""
        for goal, signal in self._signals:
            log.info(
                "goal_closed",
                goal_id=str(goal.id),
                state=str(goal.state),
                outcome=signal.outcome,
                reward=signal.reward_actual,
                expected=round(signal.reward_expected, 3),
                novelty=signal.novelty,
                effort=signal.effort,
            )
        self._signals.clear()

    def _touch(self, goal: Goal) -> None:
        goal.touched_at = self._now
        self._unit.changed(goal)

"""Close goals, and update the goals that they are parts of."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from arbor.goals.hierarchy import ChildGoal, fraction_of, is_reached
from arbor.goals.rows import BacklogRows, ChangeLog, GoalRow, SatisfactionRow
from arbor.goals.satisfaction import satisfaction
from arbor.goals.steps import Steps
from arbor.goals.values import GoalState
from arbor.ids import uuid7
from arbor.quotations import counted


class Endings:
    """Closes goals of one backlog, in memory.

    `outside_heartbeat`: a person or a workflow closes them, and the agent is notified.
    """

    def __init__(
        self,
        agent_id: UUID,
        rows: BacklogRows,
        log: ChangeLog,
        steps: Steps,
        now: datetime,
        *,
        outside_heartbeat: bool,
    ) -> None:
        self._agent_id = agent_id
        self._rows = rows
        self._log = log
        self._steps = steps
        self._now = now
        self._outside_heartbeat = outside_heartbeat
        self.reached: list[GoalRow] = []

    def close(self, goal: GoalRow, reason: str, *, by_rule: bool = False, closer: str = "a person") -> None:
        """Abandon the plans and steps of a closed goal, record its satisfaction, and update its parent.

        A goal that a rule closes has no satisfaction: the agent neither reached it nor gave it up. Without a closer, the
        agent is not notified.
        """
        if not by_rule:
            self._appraise(goal)
        if goal.state == GoalState.COMPLETED:
            goal.fraction, goal.completed_at = 1.0, self._now
        else:
            goal.abandoned_at, goal.abandonment_reason = self._now, reason
        self._unblock_others(goal)
        dropped = self._steps.drop(goal)
        self._steps.free_steps(goal)
        if self._outside_heartbeat and closer:
            why = f": {goal.abandonment_reason.rstrip('.')}" if goal.abandonment_reason else ""
            count = counted(dropped, "open step towards it was", "open steps towards it were")
            steps = f" {count} dropped." if dropped else ""
            self._steps.notify(f"Your goal {goal.title!r} was {goal.state} by {closer}{why}.{steps}", goal)
        self.update_parents(goal)

    def update_parents(self, goal: GoalRow) -> None:
        """Update the goals above a changed goal."""
        self._update_parent(goal.parent_id)

    def update_former_parent(self, parent_id: UUID | None) -> None:
        """Recompute a goal from its remaining parts after a part was moved out."""
        self._update_parent(parent_id, fraction_if_none=0.0)

    def children(self, parent: GoalRow) -> list[ChildGoal]:
        """Return a goal's parts, closed ones included."""
        parts = [
            ChildGoal(state=goal.state, fraction=goal.fraction)
            for goal in self._rows.goals.values()
            if goal.parent_id == parent.id
        ]
        return [*parts, *self._rows.ended_children.get(parent.id, ())]

    def _appraise(self, goal: GoalRow) -> None:
        result = satisfaction(
            goal.source,
            completed=goal.state == GoalState.COMPLETED,
            fraction=goal.fraction,
            stated=goal.expected_reward,
            experienced=self._rows.experienced.get(goal.source),
            effort=goal.effort,
        )
        row = SatisfactionRow(
            id=uuid7(),
            agent_id=self._agent_id,
            goal_id=goal.id,
            outcome=result.outcome,
            reward_actual=result.reward_actual,
            reward_expected=result.reward_expected,
            reputation_delta=result.reputation_delta,
            novelty=result.novelty,
            effort=result.effort,
        )
        self._log.new(row)
        self._log.closed(goal, row)

    def _unblock_others(self, goal: GoalRow) -> None:
        for other in self._rows.goals.values():
            if other.blocked_by_goal_id == goal.id:
                other.blocked_by_goal_id = None
                self._log.changed(other)

    def _update_parent(self, goal_id: UUID | None, *, fraction_if_none: float | None = None) -> None:
        """Complete a goal that its parts have reached, else set its fraction to theirs.

        `fraction_if_none` is the fraction where no part counts; None: the fraction stays as it is.
        """
        goal = self._rows.goals.get(goal_id) if goal_id else None
        if goal is None or not goal.state.is_open:
            return
        children = self.children(goal)
        if is_reached(children):
            goal.state = GoalState.COMPLETED
            self._touch(goal)
            self.reached.append(goal)
            self.close(goal, "", closer="its parts")
            return
        mean = fraction_of(children)
        fraction = fraction_if_none if mean is None else mean
        if fraction is not None and not goal.fraction_by_hand and fraction != goal.fraction:
            goal.fraction = fraction
            self._touch(goal)
            self.update_parents(goal)

    def _touch(self, goal: GoalRow) -> None:
        goal.touched_at = self._now
        self._log.changed(goal)

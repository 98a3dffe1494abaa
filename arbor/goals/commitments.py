"""The intents of one backlog, changed in memory: committed, locked, unlocked, abandoned."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from arbor.errors import NotFound, TransitionIllegal
from arbor.goals.intents import IntentStatus, is_stale_lock, move_intent, tick_limit
from arbor.goals.rows import BacklogRows, ChangeLog, GoalRow, IntentRow, StepRow
from arbor.goals.values import GoalState
from arbor.ids import read_id, uuid7

OPEN_INTENTS = frozenset({IntentStatus.PENDING, IntentStatus.LOCKED})


class Commitments:
    """The open intents of one backlog."""

    def __init__(self, agent_id: UUID, rows: BacklogRows, log: ChangeLog, now: datetime) -> None:
        self._agent_id = agent_id
        self._intents = rows.intents
        self._running = rows.running_intents
        self._log = log
        self._now = now

    def intent(self, intent_id: str | UUID) -> IntentRow:
        """Return an open intent; raises NotFound."""
        key = read_id(intent_id)
        intent = self._intents.get(key) if key else None
        if intent is None or intent.status not in OPEN_INTENTS:
            raise NotFound(f"there is no open intent {intent_id}")
        return intent

    def all_open(self) -> list[IntentRow]:
        """Return the open intents."""
        return [intent for intent in self._intents.values() if intent.status in OPEN_INTENTS]

    def count_abandoned(self, goal: GoalRow, why: str) -> int:
        """Count a goal's intents that this unit of work abandoned for a reason."""
        return sum(
            intent.goal_id == goal.id and intent.last_error == why for intent in self._intents.values()
        )

    def commit(self, goal: GoalRow, step: StepRow) -> None:
        """Commit to a step of an active goal."""
        intent = IntentRow(
            id=uuid7(),
            agent_id=self._agent_id,
            goal_id=goal.id,
            step_id=step.id,
            action=step.action,
            description=step.description,
            tick_limit=tick_limit(step.estimated_ticks),
            procedure_id=step.procedure_id,
        )
        self._intents[intent.id] = intent
        self._log.new(intent)

    def lock(self, intent_id: UUID, heartbeat_id: UUID, *, again: bool) -> None:
        """Lock an intent for a heartbeat, if the intent is pending or its lock is stale.

        The heartbeat counts as spent on the intent, unless `again`.
        """
        intent = self._intents.get(intent_id)
        if intent is None or not self._is_free(intent, heartbeat_id):
            return
        intent.status = IntentStatus.LOCKED
        intent.locked_by, intent.locked_at = heartbeat_id, self._now
        if not again:
            intent.ticks_used += 1
        self._log.changed(intent)

    def release_untried(self, intent: IntentRow, *, counted: bool) -> None:
        """Unlock a locked intent that was not tried: neither the attempt nor the heartbeat counts.

        `counted`: the lock counted the heartbeat; after an earlier attempt in the same heartbeat it did not.
        """
        if intent.status != IntentStatus.LOCKED:
            return
        intent.status = move_intent(IntentStatus.LOCKED, IntentStatus.PENDING)
        if counted:
            intent.ticks_used = max(0, intent.ticks_used - 1)
        self.unlock(intent)

    def abandon(self, intent: IntentRow, why: str) -> None:
        """Abandon an open intent."""
        intent.status, intent.last_error, intent.ended_at = IntentStatus.ABANDONED, why, self._now
        self.unlock(intent)

    def unlock(self, intent: IntentRow) -> None:
        """Release an intent from its heartbeat."""
        intent.locked_by, intent.locked_at = None, None
        self._log.changed(intent)

    def _is_free(self, intent: IntentRow, heartbeat_id: UUID) -> bool:
        if intent.status == IntentStatus.LOCKED:
            return intent.locked_by != heartbeat_id and is_stale_lock(
                intent.locked_at, now=self._now, holder_runs=intent.id in self._running
            )
        return intent.status == IntentStatus.PENDING


def require_active(goal: GoalRow) -> None:
    """Raise TransitionIllegal for a goal that is not active."""
    if goal.state != GoalState.ACTIVE:
        raise TransitionIllegal(f"only an active goal is broken into intents; {goal.title!r} is {goal.state}")

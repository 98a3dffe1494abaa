"""An agent's open goals and intents as one unit of work: loaded and locked once, changed in memory, written once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Self
from uuid import UUID

from apps.goals.models import Goal, Intent, ProgressNote
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch, fetch_rows, insert_rows, update_rows
from arbor.errors import Invalid, NotFound, TransitionIllegal
from arbor.goals.intents import IntentStatus, after_failure, move_intent
from arbor.goals.values import (
    BacklogCounts,
    GoalLayer,
    GoalSource,
    GoalState,
    admit,
    default_state,
    move,
    require_room,
)

OPEN_STATES = tuple(state for state in GoalState if state.is_open)
OPEN_INTENTS = (IntentStatus.PENDING, IntentStatus.LOCKED)
TITLE_LENGTH = 300
_LOCK = "SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s FOR NO KEY UPDATE"
_OPEN_GOALS = "agent_id = %(agent)s AND state = ANY(%(states)s) ORDER BY id FOR UPDATE"
_OPEN_INTENTS = "agent_id = %(agent)s AND status = ANY(%(statuses)s) ORDER BY id"


class Backlog:
    """The open goals and intents of one agent, inside a tenant's transaction."""

    def __init__(
        self, agent_id: UUID, goals: Iterable[Goal], intents: Iterable[Intent], now: datetime
    ) -> None:
        self._agent_id = agent_id
        self._now = now
        self._goals = {goal.id: goal for goal in goals}
        self._intents = {intent.id: intent for intent in intents}
        self._new: list[Goal | Intent | ProgressNote] = []
        self._changed_goals: dict[UUID, Goal] = {}
        self._changed_intents: dict[UUID, Intent] = {}

    @classmethod
    def lock(cls, agent_id: UUID, *, now: datetime) -> Self:
        """Load the backlog and lock it until the transaction ends. Three queries."""
        # Locked goals cannot keep a new one out, so whoever changes the backlog holds the agent's row first.
        fetch(_LOCK, agent=agent_id)
        goals = fetch_rows(Goal, _OPEN_GOALS, agent=agent_id, states=[state.value for state in OPEN_STATES])
        intents = fetch_rows(
            Intent, _OPEN_INTENTS, agent=agent_id, statuses=[status.value for status in OPEN_INTENTS]
        )
        return cls(agent_id, goals, intents, now)

    @property
    def counts(self) -> BacklogCounts:
        """How many goals are in each open state."""
        states = [goal.state for goal in self._goals.values()]
        return BacklogCounts(**{state.value: states.count(state) for state in OPEN_STATES})

    def goal(self, goal_id: str | UUID) -> Goal:
        """Return an open goal; raises NotFound."""
        key = _uuid(goal_id)
        goal = self._goals.get(key) if key else None
        if goal is None or not GoalState(goal.state).is_open:
            raise NotFound(f"there is no open goal {goal_id}")
        return goal

    def title_of(self, goal_id: str | UUID) -> str:
        """Return an open goal's title, or nothing for one that is not there."""
        key = _uuid(goal_id)
        return self._goals[key].title if key in self._goals else ""

    def intent(self, intent_id: str | UUID) -> Intent:
        """Return an open intent; raises NotFound."""
        key = _uuid(intent_id)
        intent = self._intents.get(key) if key else None
        if intent is None:
            raise NotFound(f"there is no open intent {intent_id}")
        return intent

    def add(
        self,
        *,
        title: str,
        description: str = "",
        layer: GoalLayer = GoalLayer.OBJECTIVE,
        source: GoalSource = GoalSource.CURIOSITY,
        state: GoalState | None = None,
        parent_id: str | UUID | None = None,
        deadline: datetime | None = None,
        blocked_by: str = "",
    ) -> Goal:
        """Add a goal, in the wanted state or the next lower one with room.

        Raises Invalid for a title that is empty or too long, AlreadyExists, LimitReached, NotFound for the parent.
        """
        title = title.strip()
        if not title or len(title) > TITLE_LENGTH or "\0" in title:
            raise Invalid(f"a goal's title has 1 to {TITLE_LENGTH} characters, got {len(title)}")
        parent = self.goal(parent_id) if parent_id else None
        wanted = state or default_state(source, GoalState(parent.state) if parent else None)
        titles = [goal.title for goal in self._goals.values() if GoalState(goal.state).is_open]
        goal = Goal(
            tenant_id=current_tenant(),
            agent_id=self._agent_id,
            parent=parent,
            title=title,
            description=description,
            state=admit(title, wanted, counts=self.counts, open_titles=titles),
            layer=layer,
            source=source,
            deadline=deadline,
            blocked_by=blocked_by,
            touched_at=self._now,
        )
        self._goals[goal.id] = goal
        self._new.append(goal)
        return goal

    def move(self, goal_id: str | UUID, to: GoalState, *, reason: str = "") -> Goal:
        """Move a goal to another state.

        Raises TransitionIllegal, LimitReached when the state is full, Invalid for giving up without a reason.
        """
        goal = self.goal(goal_id)
        move(GoalState(goal.state), to)
        require_room(to, self.counts)
        if to is GoalState.ABANDONED and not reason.strip():
            raise Invalid("giving a goal up needs a reason")
        goal.state = to
        if to is GoalState.COMPLETED:
            goal.fraction, goal.completed_at = 1.0, self._now
        if to is GoalState.ABANDONED:
            goal.abandoned_at, goal.abandonment_reason = self._now, reason.strip()
        if not to.is_open:
            self._drop_intents(goal)
        self._touch(goal)
        return goal

    def progress(
        self,
        goal_id: str | UUID,
        *,
        fraction: float | None = None,
        note: str = "",
        heartbeat_id: UUID | None = None,
    ) -> Goal:
        """Note how a goal is going; `fraction` is the share done, 0 to 1. At 1 an active goal is completed."""
        goal = self.goal(goal_id)
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise Invalid(f"a goal's progress is 0 to 1, got {fraction}")
            goal.fraction = fraction
        if note.strip():
            text = note.strip().replace("\0", "")
            self._new.append(
                ProgressNote(tenant_id=current_tenant(), goal=goal, text=text, heartbeat_id=heartbeat_id)
            )
        self._touch(goal)
        if fraction == 1 and goal.state == GoalState.ACTIVE:
            self.move(goal.id, GoalState.COMPLETED)
        return goal

    def commit(self, goal_id: str | UUID, *, action: str, description: str) -> Intent:
        """Commit to a step of an active goal. Raises TransitionIllegal for a goal that is not active."""
        goal = self.goal(goal_id)
        if goal.state != GoalState.ACTIVE:
            raise TransitionIllegal(
                f"only an active goal is broken into intents; {goal.title!r} is {goal.state}"
            )
        intent = Intent(
            tenant_id=current_tenant(),
            agent_id=self._agent_id,
            goal=goal,
            action=action,
            description=description,
        )
        self._intents[intent.id] = intent
        self._new.append(intent)
        return intent

    def attempt(self, intent_id: str | UUID, *, error: str = "", final: bool = False) -> Intent:
        """Note how one try at an intent ended: `error` is empty when it worked; `final` says trying again is no use."""
        intent = self.intent(intent_id)
        if intent.status == IntentStatus.PENDING:
            intent.status = move_intent(IntentStatus.PENDING, IntentStatus.LOCKED)
        intent.attempts += 1
        to = after_failure(intent.attempts, final=final) if error else IntentStatus.COMPLETED
        intent.status = move_intent(IntentStatus(intent.status), to)
        intent.last_error = error
        if to not in OPEN_INTENTS:
            intent.ended_at = self._now
        self._changed_intents[intent.id] = intent
        return intent

    def save(self) -> None:
        """Write what changed: at most one statement per kind of row, and two for the rows that changed."""
        new_ids = {row.id for row in self._new}
        # Goals first: the others refer to them.
        for kind in (Goal, Intent, ProgressNote):
            insert_rows([row for row in self._new if isinstance(row, kind)])
        goals = [goal for goal in self._changed_goals.values() if goal.id not in new_ids]
        intents = [intent for intent in self._changed_intents.values() if intent.id not in new_ids]
        update_rows(goals, _GOAL_FIELDS)
        update_rows(intents, _INTENT_FIELDS)
        self._new.clear()
        self._changed_goals.clear()
        self._changed_intents.clear()

    def _touch(self, goal: Goal) -> None:
        goal.touched_at = self._now
        self._changed_goals[goal.id] = goal

    def _drop_intents(self, goal: Goal) -> None:
        for intent in self._intents.values():
            if intent.goal_id == goal.id and intent.status in OPEN_INTENTS:
                intent.status = IntentStatus.ABANDONED
                intent.last_error = f"its goal is {goal.state}"
                intent.ended_at = self._now
                self._changed_intents[intent.id] = intent


_GOAL_FIELDS = ("state", "fraction", "touched_at", "completed_at", "abandoned_at", "abandonment_reason")
_INTENT_FIELDS = ("status", "attempts", "last_error", "ended_at")


def _uuid(text: str | UUID) -> UUID | None:
    if isinstance(text, UUID):
        return text
    try:
        return UUID(text)
    except ValueError:
        return None

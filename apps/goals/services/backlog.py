"""An agent's open goals, plans and intents as one unit of work: loaded and locked once, changed in memory, written once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from apps.goals.models import Goal, Intent, Plan, PlanStep, ProgressNote
from apps.goals.services.endings import Endings
from apps.goals.services.loading import OPEN_STATES, Loaded, load
from apps.goals.services.steps import Steps
from apps.goals.services.unit import Unit
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, LimitReached, NotFound
from arbor.goals.feeling import FURTHER_ON, STEP_FAILED, felt_after
from arbor.goals.hierarchy import require_place
from arbor.goals.plans import PlanDraft, StepDraft
from arbor.goals.values import (
    MAX_NEW_PER_BEAT,
    BacklogCounts,
    GoalLayer,
    GoalSource,
    GoalState,
    admit,
    default_state,
    move,
    require_room,
)
from arbor.ids import read_id

TITLE_LENGTH = 300
BLOCKER_LENGTH = 500


class Backlog:
    """The open goals of one agent and what serves them, inside a tenant's transaction.

    `heartbeat_id` is the beat that changes it; none: a person does.
    """

    def __init__(
        self, agent_id: UUID, loaded: Loaded, *, now: datetime, heartbeat_id: UUID | None = None
    ) -> None:
        self._agent_id = agent_id
        self._now = now
        self._heartbeat_id = heartbeat_id
        self._goals = loaded.goals
        self._unit = Unit()
        self.steps = Steps(agent_id, loaded, self._unit, now)
        self._endings = Endings(agent_id, loaded, self._unit, self.steps, now, by_person=heartbeat_id is None)

    @classmethod
    def lock(cls, agent_id: UUID, *, now: datetime, heartbeat_id: UUID | None = None) -> Self:
        """Load the backlog and lock it until the transaction ends. Three queries."""
        return cls(agent_id, load(agent_id), now=now, heartbeat_id=heartbeat_id)

    @property
    def counts(self) -> BacklogCounts:
        """How many goals are in each open state."""
        states = [goal.state for goal in self._goals.values()]
        return BacklogCounts(**{state.value: states.count(state) for state in OPEN_STATES})

    @property
    def reached(self) -> list[Goal]:
        """Goals that were completed because all their parts are; whoever has told of them clears the list."""
        return self._endings.reached

    def goal(self, goal_id: str | UUID) -> Goal:
        """Return an open goal; raises NotFound."""
        key = read_id(goal_id)
        goal = self._goals.get(key) if key else None
        if goal is None or not GoalState(goal.state).is_open:
            raise NotFound(f"there is no open goal {goal_id}")
        return goal

    def title_of(self, goal_id: str | UUID) -> str:
        """Return a goal's title, or nothing for one that is not there."""
        key = read_id(goal_id)
        return self._goals[key].title if key in self._goals else ""

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
        expected_reward: float | None = None,
        rule: str = "",
    ) -> Goal:
        """Add a goal, in the wanted state or the next lower one with room.

        Raises Invalid for a title that is empty or too long, or a place too deep, AlreadyExists, LimitReached, NotFound
        for the parent.
        """
        title = title.strip()
        if not title or len(title) > TITLE_LENGTH or "\0" in title + description:
            raise Invalid(f"a goal's title has 1 to {TITLE_LENGTH} characters, got {len(title)}")
        if expected_reward is not None and not 0 <= expected_reward <= 1:
            raise Invalid(f"what a goal is expected to be worth is 0 to 1, got {expected_reward}")
        self._require_place_in_beat()
        parent = self.goal(parent_id) if parent_id else None
        if parent is not None:
            require_place(None, parent.id, self._parents())
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
            expected_reward=expected_reward,
            heartbeat_id=self._heartbeat_id,
            rule=rule,
            touched_at=self._now,
        )
        self._set_blocker(goal, blocked_by)
        self._goals[goal.id] = goal
        self._unit.new(goal)
        self._endings.lift(goal)
        return goal

    def move(self, goal_id: str | UUID, to: GoalState, *, reason: str = "", by_rule: bool = False) -> Goal:
        """Move a goal to another state; a goal that is closed takes what served it along, and lifts what it is a part of.

        `by_rule`: a rule does it, not the agent nor a person. Raises TransitionIllegal, LimitReached when the state is full,
        Invalid for giving up without a reason.
        """
        goal = self.goal(goal_id)
        move(GoalState(goal.state), to)
        require_room(to, self.counts)
        if to is GoalState.ABANDONED and not reason.strip():
            raise Invalid("giving a goal up needs a reason")
        goal.state = to
        self._touch(goal)
        if not to.is_open:
            self._endings.close(goal, reason.strip(), by_rule=by_rule)
        elif to is GoalState.ACTIVE:
            self.steps.commit_next(goal)
        return goal

    def progress(self, goal_id: str | UUID, *, fraction: float | None = None, note: str = "") -> Goal:
        """Note how a goal is going; `fraction` is the share done, 0 to 1. At 1 it is completed, wherever it stands."""
        goal = self.goal(goal_id)
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise Invalid(f"a goal's progress is 0 to 1, got {fraction}")
            if fraction > goal.fraction:
                goal.emotional_valence = felt_after(goal.emotional_valence, FURTHER_ON)
            goal.fraction = fraction
            # What somebody said of a goal with parts stands, whatever its parts come to.
            goal.fraction_by_hand = bool(self._endings.children(goal))
        if note.strip():
            text = note.strip().replace("\0", "")
            self._unit.new(
                ProgressNote(
                    tenant_id=current_tenant(),
                    goal=goal,
                    text=text,
                    heartbeat_id=self._heartbeat_id,
                )
            )
        self._touch(goal)
        if fraction == 1:
            # No move: a goal that waits would have to become active first, and there may be no room for what is done.
            goal.state = GoalState.COMPLETED
            self._endings.close(goal, "")
        else:
            self._endings.lift(goal)
        return goal

    def block(self, goal_id: str | UUID, by: str) -> Goal:
        """Note what a goal waits for: the id of another open goal, or words; empty: nothing any more.

        Raises Invalid for a goal that would wait for itself, directly or through others, or words that are too long.
        """
        goal = self.goal(goal_id)
        self._set_blocker(goal, by)
        self._touch(goal)
        return goal

    def place(self, goal_id: str | UUID, parent_id: str | UUID | None) -> Goal:
        """Make a goal a part of another, or of none; raises Invalid for a cycle, or too deep a place."""
        goal = self.goal(goal_id)
        parent = self.goal(parent_id) if parent_id else None
        if parent is not None:
            require_place(goal.id, parent.id, self._parents())
        before = goal.parent_id
        goal.parent = parent
        self._touch(goal)
        self._endings.take_out(before)
        self._endings.lift(goal)
        return goal

    def due(self, goal_id: str | UUID, deadline: datetime | None) -> Goal:
        """Set or take away a goal's deadline."""
        goal = self.goal(goal_id)
        goal.deadline = deadline
        self._touch(goal)
        return goal

    def serve(self, goal_id: str | UUID) -> None:
        """Count a heartbeat that was spent on a goal, if it is still open: it is touched by that."""
        key = read_id(goal_id)
        if key in self._goals:
            self._goals[key].effort += 1
            self._touch(self._goals[key])

    def plan(
        self, goal_id: str | UUID, draft: PlanDraft, *, as_draft: bool = False
    ) -> tuple[Plan, list[PlanStep]]:
        """Plan a goal: make its active plan or extend it; an active goal's next steps become intents."""
        goal = self.goal(goal_id)
        plan, made = self.steps.plan(goal, draft, as_draft=as_draft)
        self._touch(goal)
        return plan, made

    def commit(self, goal_id: str | UUID, *, action: str, description: str) -> Intent:
        """Commit to a step of an active goal. Raises TransitionIllegal for a goal that is not active."""
        return self.steps.commit(self.goal(goal_id), None, StepDraft(action=action, description=description))

    def intent(self, intent_id: str | UUID) -> Intent:
        """Return an open intent; raises NotFound."""
        return self.steps.intent(read_id(intent_id))

    def attempt(
        self, intent_id: str | UUID, *, error: str = "", final: bool = False, part: bool = False
    ) -> Intent:
        """Note how one try at an intent ended.

        `error` is empty when it worked; `final` says trying again is no use; `part` that only a part of it was done.
        """
        intent = self.intent(intent_id)
        self.steps.attempt(intent, error=error, final=final, part=part)
        if error and intent.goal_id in self._goals:
            goal = self._goals[intent.goal_id]
            goal.emotional_valence = felt_after(goal.emotional_valence, STEP_FAILED)
            self._unit.changed(goal)
        return intent

    def put_off(self, intent_id: str | UUID, *, counted: bool) -> Intent:
        """Let an intent wait on that was not tried; `counted`: the heartbeat counts as spent on it, and shall not."""
        intent = self.intent(intent_id)
        self.steps.put_off(intent, counted=counted)
        return intent

    def save(self) -> None:
        """Write what changed: at most two statements."""
        self._unit.save()
        self._endings.report()

    def _require_place_in_beat(self) -> None:
        if self._heartbeat_id is None:
            return
        made = sum(goal.heartbeat_id == self._heartbeat_id for goal in self._goals.values())
        if made >= MAX_NEW_PER_BEAT:
            raise LimitReached(f"one heartbeat takes up at most {MAX_NEW_PER_BEAT} new goals")

    def _touch(self, goal: Goal) -> None:
        goal.touched_at = self._now
        self._unit.changed(goal)

    def _parents(self) -> Mapping[UUID, UUID | None]:
        return {
            goal.id: goal.parent_id if goal.parent_id in self._goals else None
            for goal in self._goals.values()
            if GoalState(goal.state).is_open
        }

    def _set_blocker(self, goal: Goal, by: str) -> None:
        by = by.strip()
        key: Any = read_id(by) if by else None
        if key is None:
            if len(by) > BLOCKER_LENGTH or "\0" in by:
                raise Invalid(f"what a goal waits for has up to {BLOCKER_LENGTH} characters, got {len(by)}")
            goal.blocked_by, goal.blocked_by_goal = by, None
            return
        blocker = above = self.goal(key)
        while above.id != goal.id and above.blocked_by_goal_id in self._goals:
            above = self._goals[above.blocked_by_goal_id]
        if above.id == goal.id:
            raise Invalid("a goal cannot wait for itself, nor for one that waits for it")
        goal.blocked_by, goal.blocked_by_goal = "", blocker

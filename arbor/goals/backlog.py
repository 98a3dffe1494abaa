"""The open goals, plans and intents of one agent as a unit of work: changed in memory, written at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from uuid import UUID

from arbor.errors import Invalid, LimitReached, NotFound
from arbor.goals.commitments import Commitments
from arbor.goals.endings import Endings
from arbor.goals.hierarchy import chain, require_place
from arbor.goals.plans import PlanDraft
from arbor.goals.rows import (
    BacklogChanges,
    BacklogRows,
    ChangeLog,
    GoalRow,
    IntentRow,
    NoteRow,
    PlanRow,
    StepRow,
)
from arbor.goals.steps import Steps
from arbor.goals.values import (
    FEELING_OF_FAILED_STEP,
    FEELING_OF_PROGRESS,
    MAX_NEW_PER_HEARTBEAT,
    NOTE_LENGTH,
    BacklogCounts,
    GoalState,
    NewGoalRequest,
    admitted_state,
    check_new_goal,
    default_state,
    move,
    move_feeling,
    require_layer,
    require_room,
)
from arbor.ids import read_id, uuid7
from arbor.memory.content import check_line
from arbor.models.json_text import storable

BLOCKER_LENGTH = 500


class Backlog:
    """The open goals of one agent, their plans and their intents.

    `heartbeat_id` is the heartbeat that changes the backlog; None: a person does.
    """

    def __init__(
        self, agent_id: UUID, rows: BacklogRows, *, now: datetime, heartbeat_id: UUID | None = None
    ) -> None:
        self.agent_id = agent_id
        self._now = now
        self._heartbeat_id = heartbeat_id
        self._goals = rows.goals
        self._log = ChangeLog()
        self._commitments = Commitments(agent_id, rows, self._log, now)
        self._steps = Steps(agent_id, rows, self._log, self._commitments, now)
        self._endings = Endings(
            agent_id, rows, self._log, self._steps, now, outside_heartbeat=heartbeat_id is None
        )

    @property
    def counts(self) -> BacklogCounts:
        """Return how many goals are in each open state."""
        states = [goal.state for goal in self._goals.values()]
        return BacklogCounts(
            active=states.count(GoalState.ACTIVE),
            queued=states.count(GoalState.QUEUED),
            backburner=states.count(GoalState.BACKBURNER),
        )

    @property
    def reached(self) -> list[GoalRow]:
        """Return the goals that were completed by their parts; the caller clears the list once it has reported them."""
        return self._endings.reached

    def goal(self, goal_id: str | UUID) -> GoalRow:
        """Return an open goal; raises NotFound."""
        key = read_id(goal_id)
        goal = self._goals.get(key) if key else None
        if goal is None or not goal.state.is_open:
            raise NotFound(f"there is no open goal {goal_id}")
        return goal

    def title_of(self, goal_id: str | UUID) -> str:
        """Return a goal's title, or an empty text for an unknown goal."""
        key = read_id(goal_id)
        return self._goals[key].title if key in self._goals else ""

    def add(self, request: NewGoalRequest) -> GoalRow:
        """Add a goal, in the wanted state or the next lower one with room.

        Raises Invalid for a wrong value or a place too deep, AlreadyExists for the title of an open goal, LimitReached,
        TransitionIllegal for a closed state, NotFound for the parent or for a blocker's id.
        """
        title = check_new_goal(request)
        self._require_room_in_heartbeat()
        parent = self.goal(request.parent_id) if request.parent_id else None
        if parent is not None:
            require_place(None, parent.id, self._parents())
        state = request.state or default_state(request.source, parent.state if parent else None)
        others = [goal for goal in self._goals.values() if goal.state.is_open]
        titles = [other.title for other in others]
        admitted = admitted_state(title, state, counts=self.counts, open_titles=titles)
        require_layer(request.layer, [other.layer for other in others])
        goal = GoalRow(
            id=uuid7(),
            agent_id=self.agent_id,
            parent_id=parent.id if parent else None,
            title=title,
            description=request.description,
            state=admitted,
            layer=request.layer,
            source=request.source,
            type=request.type,
            priority=request.priority,
            deadline=request.deadline,
            expected_reward=request.expected_reward,
            heartbeat_id=self._heartbeat_id,
            rule=request.rule,
            touched_at=self._now,
        )
        self._set_blocker(goal, request.blocked_by)
        self._goals[goal.id] = goal
        self._log.new(goal)
        self._endings.update_parents(goal)
        return goal

    def move(self, goal_id: str | UUID, to: GoalState, *, reason: str = "", by_rule: bool = False) -> GoalRow:
        """Move a goal to another state; closing it drops its plans and intents, and updates the goal it is a part of.

        `by_rule`: a rule moves the goal, not the agent or a person. Raises NotFound, TransitionIllegal, LimitReached when the state
        is full, Invalid for abandoning without a reason.
        """
        goal = self.goal(goal_id)
        move(goal.state, to)
        require_room(to, self.counts)
        if to is GoalState.ABANDONED and not reason.strip():
            raise Invalid("giving a goal up needs a reason")
        goal.state = to
        self._touch(goal)
        if not to.is_open:
            self._endings.close(goal, reason.strip(), by_rule=by_rule)
        elif to is GoalState.ACTIVE:
            self._steps.commit_next(goal)
        return goal

    def end(self, goal_id: str | UUID, *, abandoned: str = "", closer: str) -> GoalRow:
        """Close a goal whose cause has ended: abandoned for a reason, or completed, whatever its state.

        The agent is notified of who abandoned its goal. Raises NotFound.
        """
        goal = self.goal(goal_id)
        # No move: a queued goal would have to become active first, and there may be no room.
        goal.state = GoalState.ABANDONED if abandoned else GoalState.COMPLETED
        self._touch(goal)
        self._endings.close(goal, abandoned, closer=closer if abandoned else "")
        return goal

    def progress(self, goal_id: str | UUID, *, fraction: float | None = None, note: str = "") -> GoalRow:
        """Record a goal's progress; `fraction` is the share done, 0 to 1. At 1 the goal is completed, whatever its state.

        Raises NotFound, and Invalid for another fraction or too long a note.
        """
        goal = self.goal(goal_id)
        text = storable(note.strip())
        check_line("a goal's note", text, NOTE_LENGTH)
        if fraction is not None:
            if not 0 <= fraction <= 1:
                raise Invalid(f"a goal's progress is 0 to 1, got {fraction}")
            if fraction > goal.fraction:
                goal.emotional_valence = move_feeling(goal.emotional_valence, FEELING_OF_PROGRESS)
            goal.fraction = fraction
            # A fraction set by hand takes precedence over the mean of a goal's parts.
            goal.fraction_by_hand = bool(self._endings.children(goal))
        if text:
            self._log.new(NoteRow(id=uuid7(), goal_id=goal.id, text=text, heartbeat_id=self._heartbeat_id))
        self._touch(goal)
        if fraction == 1:
            # No move: a queued goal would have to become active first, and there may be no room.
            goal.state = GoalState.COMPLETED
            self._endings.close(goal, "")
        else:
            self._endings.update_parents(goal)
        return goal

    def block(self, goal_id: str | UUID, by: str) -> GoalRow:
        """Set a goal's blocker: the id of another open goal, or words; empty: none.

        Raises Invalid for a goal that would wait for itself, directly or through others, and for words that are too long.
        """
        goal = self.goal(goal_id)
        self._set_blocker(goal, by)
        self._touch(goal)
        return goal

    def place(self, goal_id: str | UUID, parent_id: str | UUID | None) -> GoalRow:
        """Make a goal a part of another goal, or of none; raises Invalid for a cycle, or for too deep a place."""
        goal = self.goal(goal_id)
        parent = self.goal(parent_id) if parent_id else None
        if parent is not None:
            require_place(goal.id, parent.id, self._parents())
        before = goal.parent_id
        goal.parent_id = parent.id if parent else None
        self._touch(goal)
        self._endings.update_former_parent(before)
        self._endings.update_parents(goal)
        return goal

    def set_deadline(self, goal_id: str | UUID, deadline: datetime | None) -> GoalRow:
        """Set or remove a goal's deadline."""
        goal = self.goal(goal_id)
        goal.deadline = deadline
        self._touch(goal)
        return goal

    def count_heartbeat(self, goal_id: str | UUID) -> None:
        """Count a heartbeat spent on an open goal, and touch the goal."""
        key = read_id(goal_id)
        if key in self._goals:
            self._goals[key].effort += 1
            self._touch(self._goals[key])

    def plan(
        self, goal_id: str | UUID, draft: PlanDraft, *, as_draft: bool = False
    ) -> tuple[PlanRow, list[StepRow]]:
        """Create a goal's active plan or extend it; an active goal's next steps become intents."""
        goal = self.goal(goal_id)
        plan, created = self._steps.plan(goal, draft, as_draft=as_draft)
        self._touch(goal)
        return plan, created

    def mark_dependency_met(self, goal_id: str | UUID, dependency: str) -> GoalRow:
        """Record that a dependency of a goal's active plan is met; the last one commits the next steps. Raises Invalid."""
        goal = self.goal(goal_id)
        self._steps.mark_dependency_met(goal, dependency)
        self._touch(goal)
        return goal

    def unmet_dependencies(self, intent_id: UUID) -> list[str]:
        """Return the unmet dependencies of the plan to which an open intent belongs."""
        return self._steps.unmet_dependencies(self._commitments.intent(intent_id))

    def start(self, plan_id: UUID) -> PlanRow:
        """Make a draft the active plan of its goal; raises NotFound, AlreadyExists when the goal has one."""
        return self._steps.start(plan_id)

    def abandon(self, plan_id: UUID, reason: str) -> PlanRow:
        """Abandon a plan with its open steps; the agent is notified if a person does. Raises NotFound, Invalid."""
        plan = self._steps.abandon(plan_id, reason)
        if self._heartbeat_id is None:
            goal = self.goal(plan.goal_id)
            reason = plan.reason.rstrip(".")
            self._steps.notify(f"Your plan for {goal.title!r} was given up by a person: {reason}.", goal)
        return plan

    def intent(self, intent_id: str | UUID) -> IntentRow:
        """Return an open intent; raises NotFound."""
        return self._commitments.intent(intent_id)

    def lock_intents(self, intent_ids: Iterable[UUID], again: Collection[UUID] = ()) -> None:
        """Lock intents for this heartbeat, and count the heartbeat as spent on them, except on intents in `again`.

        An intent is locked if it is pending, or if its lock is stale (`is_stale_lock`), but not while its plan has unmet
        dependencies. Raises Invalid in a person's unit of work.
        """
        if self._heartbeat_id is None:
            raise Invalid("intents are locked by a heartbeat, not by a person")
        for intent_id in dict.fromkeys(intent_ids):
            if self._steps.is_waiting(intent_id):
                continue
            self._commitments.lock(intent_id, self._heartbeat_id, again=intent_id in again)

    def record_attempt(
        self, intent_id: str | UUID, *, error: str = "", final: bool = False, part: bool = False
    ) -> IntentRow:
        """Record the result of one attempt at an intent.

        `error` is empty for a success; `final`: a retry does not help; `part`: only a part was done.
        """
        intent = self.intent(intent_id)
        self._steps.record_attempt(intent, error=error, final=final, part=part)
        if error and intent.goal_id in self._goals:
            goal = self._goals[intent.goal_id]
            goal.emotional_valence = move_feeling(goal.emotional_valence, FEELING_OF_FAILED_STEP)
            self._log.changed(goal)
        return intent

    def release_untried(self, intent_id: str | UUID, *, counted: bool) -> IntentRow:
        """Unlock an intent that was not tried; `counted`: its lock counted this heartbeat, which is undone."""
        intent = self.intent(intent_id)
        self._commitments.release_untried(intent, counted=counted)
        return intent

    def changes(self) -> BacklogChanges:
        """Return the pending writes; false if nothing changed since the last `mark_saved`."""
        return self._log.changes(agent_id=self.agent_id, at=self._now)

    def mark_saved(self) -> None:
        """Clear the pending writes after they were saved."""
        self._log.clear()

    def _require_room_in_heartbeat(self) -> None:
        if self._heartbeat_id is None:
            return
        created = sum(goal.heartbeat_id == self._heartbeat_id for goal in self._goals.values())
        if created >= MAX_NEW_PER_HEARTBEAT:
            raise LimitReached(f"one heartbeat creates at most {MAX_NEW_PER_HEARTBEAT} new goals")

    def _touch(self, goal: GoalRow) -> None:
        goal.touched_at = self._now
        self._log.changed(goal)

    def _parents(self) -> Mapping[UUID, UUID | None]:
        return {
            goal.id: goal.parent_id if goal.parent_id in self._goals else None
            for goal in self._goals.values()
            if goal.state.is_open
        }

    def _set_blocker(self, goal: GoalRow, by: str) -> None:
        by = by.strip()
        key = read_id(by) if by else None
        if key is None:
            check_line("a goal's blocker", by, BLOCKER_LENGTH)
            goal.blocked_by, goal.blocked_by_goal_id = by, None
            return
        blocker = self.goal(key)
        blockers = {other.id: other.blocked_by_goal_id for other in self._goals.values()}
        if goal.id in chain(blocker.id, blockers):
            raise Invalid("a goal cannot wait for itself, nor for one that waits for it")
        goal.blocked_by, goal.blocked_by_goal_id = "", blocker.id

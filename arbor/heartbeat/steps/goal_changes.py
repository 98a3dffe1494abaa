"""Apply a heartbeat's changes to the backlog, item by item, and record them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from uuid import UUID

from pydantic import BaseModel

from arbor.errors import ArborError, Invalid, NotFound
from arbor.goals.backlog import Backlog
from arbor.goals.commitments import require_active
from arbor.goals.goal_rules import RuleGoal
from arbor.goals.intents import NO_WORK, carries_out
from arbor.goals.plans import MAX_DEPENDENCIES, PlanDraft, StepDraft
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalState, NewGoalRequest
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.reflex.choices import SUBSTITUTE_ACTIONS
from arbor.heartbeat.replies.items import Dropped, places
from arbor.heartbeat.replies.reply import Decomposition, GoalUpdate, ProposedGoal, Reply
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.state import HeartbeatState
from arbor.ids import read_id
from arbor.pipeline.engine import NodeResult
from arbor.quotations import quoted
from arbor.tools.names import is_tool_action
from arbor.values import replace

_KIND_OF_STATE = {
    GoalState.COMPLETED: GoalChangeKind.COMPLETED,
    GoalState.ABANDONED: GoalChangeKind.ABANDONED,
}
#: Changes that count a heartbeat for a goal.
_SERVING = (GoalChangeKind.PROGRESSED, GoalChangeKind.PLANNED, GoalChangeKind.COMPLETED)


class BacklogEditor:
    """Applies items to the locked backlog, and records the changes."""

    def __init__(
        self, heartbeat: HeartbeatState, backlog: Backlog, *, procedures: Collection[UUID] = frozenset()
    ) -> None:
        self._heartbeat = heartbeat
        self._reply = heartbeat.reply_or_empty
        self._action_paths = _action_paths(heartbeat)
        self._backlog = backlog
        #: The goals for which this heartbeat is counted already.
        self._served = {change.goal_id for change in heartbeat.whole.goal_changes if change.kind in _SERVING}
        self._recorded = frozenset(self._served)
        #: Goals that actions worked on without executing a step, with the names of the actions.
        self._worked_on: dict[UUID, tuple[GoalRow, list[str]]] = {}
        #: Ids of attempted intents, and of intents released without an attempt.
        self._tried: set[str] = set()
        self._released: set[str] = set()
        #: Procedures that were followed, and whether that worked.
        self._practised: list[tuple[UUID, bool]] = []
        #: The agent's procedures that the reply names.
        self._procedures = procedures
        self._changes: list[GoalChange] = []
        self._dropped: list[Dropped] = []

    def apply_result(self, change: Callable[[ActionResult], None], result: ActionResult) -> None:
        """Apply a change of the intent that an action names."""
        self.apply(f"{self._action_paths[result.index]}.intent_id", change, result)

    def apply[T: BaseModel](self, path: str, change: Callable[[T], None], item: T) -> None:
        """Apply a change; a refused one is listed as dropped."""
        try:
            change(item)
        except ArborError as error:
            self._drop(path, item.model_dump_json(), str(error))
            self._record_refusal(item, str(error))

    def result(self) -> NodeResult[HeartbeatState]:
        """Return the state with the record of the changes, and the backlog as an effect.

        Intents that this round trip counted and then released without an attempt count no longer.
        """
        self._record_work()
        heartbeat = self._heartbeat.with_dropped(self._dropped)
        heartbeat = heartbeat.with_present(goal_changes=[*heartbeat.present.goal_changes, *self._changes])
        uncounted = (self._released - self._tried) & set(heartbeat.counted)
        if uncounted:
            served = [intent_id for intent_id in heartbeat.served if intent_id not in uncounted]
            heartbeat = replace(heartbeat, served=served)
        changed = tuple(f"{change.title}: {change.kind} {change.change}".strip() for change in self._changes)
        heartbeat = heartbeat.with_effects(backlog=self._backlog, practised=tuple(self._practised))
        return NodeResult(state=heartbeat, changed=changed)

    def record_outcome(self, result: ActionResult) -> None:
        """Record the outcome of an intent's action.

        Raises NotFound if the intent is closed, and Invalid if the action does not execute the step or the plan of the step
        waits; the step is released then. In all cases an action that worked counts for the goal that it names.
        """
        try:
            intent = self._backlog.intent(str(result.intent_id))
        except NotFound:
            if is_work(result):
                self.count_action(result)
            raise
        fault = ""
        by_rule = self._heartbeat.situation.model_is_reflex
        substitutes = SUBSTITUTE_ACTIONS if by_rule else ()
        offered = self._heartbeat.allowed
        if not carries_out(result.action, intent.action, offered=offered, substitutes=substitutes):
            fault = f"the step is {intent.action}; {result.action} does not carry it out"
        elif waits := self._backlog.unmet_dependencies(intent.id):
            fault = f"the step waits until its plan has what it needs: {'; '.join(waits)}"
        if fault:
            self.release(result)
            if is_work(result):
                self.count_action(result)
            raise Invalid(fault)
        if result.goal_id and read_id(result.goal_id) != intent.goal_id:
            reason = f"the action carries out a step of the goal {intent.goal_id}, and counts for that one"
            self._drop(f"{self._action_paths[result.index]}.goal_id", result.goal_id, reason)
        # An unknown outcome completes no step; the agent decides whether to try again.
        failed = result.outcome not in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL)
        unknown = result.action not in ACTIONS and not is_tool_action(result.action)
        final = result.outcome is ActionOutcome.BLOCKED and unknown
        self._tried.add(str(intent.id))
        self._count_heartbeat(intent.goal_id)
        self._backlog.record_attempt(
            intent.id,
            error=result.summary if failed else "",
            final=final,
            part=result.outcome is ActionOutcome.PARTIAL,
        )
        # Other outcomes show neither that the procedure works nor that it does not.
        shows = result.outcome not in (ActionOutcome.PARTIAL, ActionOutcome.UNKNOWN)
        if intent.procedure_id is not None and shows:
            self._practised.append((intent.procedure_id, not failed))
        goal = self._backlog.goal(intent.goal_id)
        self._record(
            goal, GoalChangeKind.PROGRESSED, f"the step {quoted(intent.description)} is {intent.status}"
        )

    def count_action(self, result: ActionResult) -> None:
        """Count an action that executes no step for the open goal that it names; an unknown goal is listed as dropped."""
        try:
            goal = self._backlog.goal(str(result.goal_id))
        except NotFound as error:
            self._drop(f"{self._action_paths[result.index]}.goal_id", str(result.goal_id), str(error))
            return
        self._count_heartbeat(goal.id)
        self._worked_on.setdefault(goal.id, (goal, []))[1].append(result.action)

    def release(self, result: ActionResult) -> None:
        intent_id = str(result.intent_id)
        key = str(read_id(intent_id))
        self._released.add(key)
        self._backlog.release_untried(intent_id, counted=key in self._heartbeat.counted)

    def decompose(self, path: str, decomposition: Decomposition) -> None:
        """Store a plan and commit its next steps; a refused plan is listed as dropped."""
        self.apply(path, partial(self._plan, path), decomposition)

    def _plan(self, path: str, decomposition: Decomposition) -> None:
        intentions = decomposition.intentions
        step_paths = self._reply.paths_of(f"{path}.intentions", intentions)
        draft = PlanDraft(
            steps=[
                StepDraft(
                    action=step.action,
                    description=step.description,
                    precondition=step.precondition or "",
                    postcondition=step.postcondition or "",
                    estimated_ticks=step.estimated_ticks,
                    procedure_id=self._procedure(f"{step_path}.follows", step.follows),
                )
                for step_path, step in zip(step_paths, intentions, strict=True)
            ],
            estimated_ticks=decomposition.estimated_ticks,
            estimated_cost=decomposition.estimated_cost,
            risk=decomposition.risk,
            dependencies=decomposition.dependencies,
        )
        goal = self._backlog.goal(decomposition.goal_id)
        # Only people may plan goals that are not active.
        require_active(goal)
        plan, new_steps = self._backlog.plan(goal.id, draft)
        self._count_heartbeat(goal.id)
        left_out = [name for name in draft.dependencies if name not in plan.dependencies]
        if left_out:
            reason = f"a plan depends on at most {MAX_DEPENDENCIES} things, and not on its own goal"
            self._drop(f"{path}.dependencies", "; ".join(left_out), reason)
        steps = "; ".join(f"{step.action}: {step.description}" for step in new_steps)
        self._record(goal, GoalChangeKind.PLANNED, steps)

    def _procedure(self, path: str, named: str | None) -> UUID | None:
        """Return the id of the procedure that a step follows; one that is not the agent's is listed as dropped."""
        if not named:
            return None
        found = read_id(named)
        if found in self._procedures:
            return found
        reason = "a step follows a procedural memory of yours, by its id; there is none with this one"
        self._drop(path, named, reason)
        return None

    def add(self, new: ProposedGoal) -> None:
        goal = self._backlog.add(
            NewGoalRequest(**new.model_dump(exclude={"parent_goal_id"}), parent_id=new.parent_goal_id)
        )
        self._record(goal, GoalChangeKind.CREATED, f"it is {goal.state}")

    def inject(self, injected: RuleGoal) -> GoalRow:
        """Add a goal that a rule created."""
        goal = self._backlog.add(
            NewGoalRequest(
                title=injected.title,
                description=injected.description,
                layer=injected.layer,
                source=injected.source,
                rule=injected.rule.value,
            )
        )
        change = f"it is {goal.state}; it came by itself ({injected.rule})"
        self._record(goal, GoalChangeKind.CREATED, change, by_rule=True)
        return goal

    def conclude(self, goal_id: str, why: str) -> None:
        """Close a goal that a rule created, because its cause is over."""
        goal = self._backlog.goal(goal_id)
        if goal.state != GoalState.ACTIVE:
            self._backlog.move(goal_id, GoalState.ABANDONED, reason=why, by_rule=True)
            self._record(goal, GoalChangeKind.ABANDONED, why, by_rule=True)
        else:
            self._backlog.move(goal_id, GoalState.COMPLETED, by_rule=True)
            self._record(goal, GoalChangeKind.COMPLETED, why, by_rule=True)
        self._record_reached()

    def update(self, path: str, update: GoalUpdate) -> None:
        """Apply the parts of an update, so that a refused part leaves the others: a moved goal may be closed, so it is last."""
        update = self._without_own_state(path, update)
        parts = [*_parts_of(self._reply, update, path)]
        if len(parts) > 1 and self._backlog.title_of(update.goal_id):
            for part_path, part in parts:
                self.apply(part_path, self._update_part, part)
        elif parts:
            self.apply(path, self._update_part, update)

    def _without_own_state(self, path: str, update: GoalUpdate) -> GoalUpdate:
        """Return the update without the state that the goal has already; a reason of the state is listed as dropped."""
        with suppress(NotFound):
            if update.state is None or update.progress == 1:
                return update
            if update.state == self._backlog.goal(update.goal_id).state:
                rest = update.model_copy(update={"state": None, "reason": None})
                if update.reason or not [*_parts_of(self._reply, rest, path)]:
                    self._drop(f"{path}.state", update.state, f"the goal is {update.state} already")
                return rest
        return update

    def _update_part(self, update: GoalUpdate) -> None:
        if update.progress is not None or update.note:
            self._count_heartbeat(self._backlog.goal(update.goal_id).id)
            goal = self._backlog.progress(update.goal_id, fraction=update.progress, note=update.note or "")
            note = f": {update.note}" if update.note else ""
            self._record(goal, GoalChangeKind.PROGRESSED, f"{goal.fraction:.0%} done{note}")
            if goal.state == GoalState.COMPLETED:
                reason = update.reason if update.reason != update.note else ""
                self._record(goal, GoalChangeKind.COMPLETED, reason or "")
                self._record_reached()
                return
        if update.blocked_by is not None:
            self._block(update.goal_id, update.blocked_by)
        for text in update.met:
            goal = self._backlog.mark_dependency_met(update.goal_id, text)
            self._record(goal, GoalChangeKind.PROGRESSED, f"its plan no longer waits for {text}")
        if update.state is not None:
            goal = self._backlog.move(update.goal_id, update.state, reason=update.reason or "")
            kind = _KIND_OF_STATE.get(GoalState(goal.state), GoalChangeKind.MOVED)
            self._record(goal, kind, update.reason or f"it is {goal.state}")
        self._record_reached()

    def _count_heartbeat(self, goal_id: UUID) -> None:
        """Count this heartbeat as spent on the goal, once."""
        if str(goal_id) not in self._served:
            self._served.add(str(goal_id))
            self._backlog.count_heartbeat(goal_id)

    def _record_work(self) -> None:
        """Record actions for goals that no change in `_SERVING` records."""
        recorded = self._recorded | {change.goal_id for change in self._changes if change.kind in _SERVING}
        for goal, actions in self._worked_on.values():
            if str(goal.id) not in recorded:
                names = ", ".join(dict.fromkeys(name.replace("_", " ") for name in actions))
                self._record(goal, GoalChangeKind.PROGRESSED, f"by {names}")

    def _block(self, goal_id: str, by: str) -> None:
        before = self._backlog.goal(goal_id)
        was_blocked = bool(before.blocked_by or before.blocked_by_goal_id)
        goal = self._backlog.block(goal_id, by)
        if by.strip():
            what = self._backlog.title_of(by.strip()) or by.strip()
            self._record(goal, GoalChangeKind.BLOCKED, f"it waits for {what}")
        elif was_blocked:
            self._record(goal, GoalChangeKind.PROGRESSED, "nothing stands in its way any more")

    def _record_reached(self) -> None:
        """Record goals that are completed because all their parts are."""
        for goal in self._backlog.reached:
            self._record(goal, GoalChangeKind.COMPLETED, "all its parts are done")
        self._backlog.reached.clear()

    def _record(self, goal: GoalRow, kind: GoalChangeKind, change: str, *, by_rule: bool = False) -> None:
        self._changes.append(
            GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change, by_rule=by_rule)
        )

    def _drop(self, path: str, value: str, reason: str) -> None:
        self._dropped.append(Dropped(path=path, value=value, reason=reason))

    def _record_refusal(self, item: BaseModel, reason: str) -> None:
        goal_id, intent_id = getattr(item, "goal_id", None), getattr(item, "intent_id", None)
        if not goal_id and intent_id:
            with suppress(NotFound):
                goal_id = self._backlog.intent(intent_id).goal_id
        goal_id = str(goal_id or "")
        title = getattr(item, "title", "") or self._backlog.title_of(goal_id) or goal_id
        self._changes.append(
            GoalChange(goal_id=goal_id, title=title, kind=GoalChangeKind.REFUSED, change=reason)
        )


def _action_paths(heartbeat: HeartbeatState) -> dict[int, str]:
    """Return the paths of this round trip's actions by their index; an approved action is not in the reply, and has its name."""
    decisions = [record.decision for record in heartbeat.action_records]
    proposed = [decision.index for decision in decisions if not decision.by_approval]
    reply = heartbeat.reply_or_empty
    paths = reply.paths_of("actions", reply.actions)
    # In a merged reply, the actions of earlier round trips come first. A pipeline may have asked for another reply since.
    first = len(paths) - len(proposed)
    paths = paths[first:] if first >= 0 else places("actions", len(proposed))
    return dict(zip(proposed, paths, strict=True)) | {
        decision.index: f"approved {decision.action}" for decision in decisions if decision.by_approval
    }


def _parts_of(reply: Reply, update: GoalUpdate, path: str) -> Iterator[tuple[str, GoalUpdate]]:
    """Yield the parts of an update that can be refused one by one, by their paths; full progress is one part with its reason."""
    if update.progress == 1:
        yield f"{path}.progress", update
        return
    goal_id = update.goal_id
    if update.progress is not None or update.note:
        name = "note" if update.progress is None else "progress"
        yield f"{path}.{name}", GoalUpdate(goal_id=goal_id, progress=update.progress, note=update.note)
    if update.blocked_by is not None:
        yield f"{path}.blocked_by", GoalUpdate(goal_id=goal_id, blocked_by=update.blocked_by)
    for met_path, text in zip(reply.paths_of(f"{path}.met", update.met), update.met, strict=True):
        yield met_path, GoalUpdate(goal_id=goal_id, met=[text])
    if update.state is not None:
        yield f"{path}.state", GoalUpdate(goal_id=goal_id, state=update.state, reason=update.reason)


def is_work(result: ActionResult) -> bool:
    """Return whether an action worked for the goal that it names."""
    worked = result.outcome in (ActionOutcome.SUCCESS, ActionOutcome.PARTIAL)
    return bool(result.goal_id) and worked and result.action not in NO_WORK

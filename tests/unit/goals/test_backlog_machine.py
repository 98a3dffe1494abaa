"""Changes to a backlog by heartbeats and people in any order: it stays consistent, and none is left unsaved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from arbor.errors import ArborError
from arbor.goals.backlog import Backlog
from arbor.goals.commitments import OPEN_INTENTS
from arbor.goals.hierarchy import MAX_DEPTH, ChildGoal, chain, is_reached
from arbor.goals.plans import MAX_STEPS, OPEN_STEPS, PlanDraft, PlanStatus, StepDraft, StepStatus
from arbor.goals.rows import BacklogRows, GoalRow, IntentRow, PlanRow, StepRow
from arbor.goals.values import MAX_ACTIVE, MAX_OPEN, MAX_QUEUED, GoalSource, GoalState, NewGoalRequest
from arbor.ids import uuid7
from tests.unit.goals.builders import AGENT, NOW

#: Titles of which none says the same as another.
TITLES = (
    "Chart the reef",
    "Paint a boat",
    "Ask Ada about fees",
    "Learn knots",
    "Repair old nets",
    "Find the ferry",
    "Write to the pilot",
    "Count herons",
    "Bake bread",
    "Sell the old lamp",
    "Thank Marta",
    "Sort these shells",
    "Read about tides",
    "Mend my roof",
    "Plant an orchard",
    "Translate his poem",
)
OPEN_PLANS = (PlanStatus.DRAFT, PlanStatus.ACTIVE)
places = st.integers(0, len(TITLES) - 1)
open_states = st.sampled_from([state for state in GoalState if state.is_open])
steps = st.lists(
    st.builds(
        StepDraft,
        action=st.just("recall"),
        description=st.sampled_from(["Look", "Ask", "Wait", "Go", "Draw"]),
        precondition=st.sampled_from(["", TITLES[0]]),
        postcondition=st.sampled_from(["", "it is drawn"]),
        estimated_ticks=st.sampled_from([None, 1]),
    ),
    min_size=1,
    max_size=4,
)


class BacklogMachine(RuleBasedStateMachine):
    """The stored rows of one agent; each rule is one unit of work that loads and saves them."""

    @initialize(states=st.lists(open_states, min_size=3, max_size=len(TITLES)), drafted=steps)
    def begin(self, states: list[GoalState], drafted: list[StepDraft]) -> None:
        self.now = NOW
        self.goals: dict[UUID, GoalRow] = {}
        self.plans: dict[UUID, PlanRow] = {}
        self.steps: dict[UUID, StepRow] = {}
        self.intents: dict[UUID, IntentRow] = {}
        for title, state in zip(TITLES, states, strict=False):
            self.add(title, GoalSource.USER_REQUEST, None, state, by_heartbeat=False)
        # Every third plan waits for a boat, and every third is a draft.
        for place in range(len(states)):
            self.plan(place, drafted, ["a boat"] if place % 3 == 1 else [], as_draft=place % 3 == 2)

    # --- Goals -----------------------------------------------------------------------------------------------

    @rule(
        title=st.sampled_from(TITLES),
        source=st.sampled_from(GoalSource),
        below=st.none() | places,
        state=st.none() | open_states,
        by_heartbeat=st.booleans(),
    )
    def add(
        self, title: str, source: GoalSource, below: int | None, state: GoalState | None, by_heartbeat: bool
    ) -> None:
        parent = None if below is None else self._goal_id(below)
        new = NewGoalRequest(title=title, source=source, parent_id=parent, state=state)
        self._change(lambda backlog: backlog.add(new), by_heartbeat=by_heartbeat)

    @rule(place=places, to=st.sampled_from(GoalState), by_rule=st.booleans(), by_heartbeat=st.booleans())
    def move(self, place: int, to: GoalState, by_rule: bool, by_heartbeat: bool) -> None:
        goal = self._goal_id(place)
        self._change(
            lambda backlog: backlog.move(goal, to, reason="so", by_rule=by_rule), by_heartbeat=by_heartbeat
        )

    @rule(place=places, fraction=st.sampled_from([None, 0, 0.4, 1]))
    def progress(self, place: int, fraction: float | None) -> None:
        goal = self._goal_id(place)
        self._change(lambda backlog: backlog.progress(goal, fraction=fraction, note="done"))

    @rule(place=places, by=st.none() | places)
    def block(self, place: int, by: int | None) -> None:
        goal, blocker = self._goal_id(place), "" if by is None else str(self._goal_id(by))
        self._change(lambda backlog: backlog.block(goal, blocker))

    @rule(place=places, below=st.none() | places)
    def place_goal(self, place: int, below: int | None) -> None:
        goal, parent = self._goal_id(place), None if below is None else self._goal_id(below)
        self._change(lambda backlog: backlog.place(goal, parent))

    # --- Plans and intents -------------------------------------------------------------------------------------

    @rule(
        place=places,
        drafted=steps,
        needs=st.sampled_from([[], ["a boat"], [TITLES[1]]]),
        as_draft=st.booleans(),
    )
    def plan(self, place: int, drafted: list[StepDraft], needs: list[str], as_draft: bool) -> None:
        goal, draft = self._goal_id(place), PlanDraft(steps=drafted, dependencies=needs)
        self._change(lambda backlog: backlog.plan(goal, draft, as_draft=as_draft))

    @rule(place=places)
    def start(self, place: int) -> None:
        plan = self._id(self.plans, place)
        self._change(lambda backlog: backlog.start(plan))

    @rule(place=places)
    def abandon(self, place: int) -> None:
        plan = self._id(self.plans, place)
        self._change(lambda backlog: backlog.abandon(plan, "too long"))

    @rule(place=places)
    def meet_dependency(self, place: int) -> None:
        goal = self._goal_id(place)
        self._change(lambda backlog: backlog.mark_dependency_met(goal, "a boat"))

    @rule(place=places, error=st.sampled_from(["", "", "no wind"]), final=st.booleans(), part=st.booleans())
    def attempt(self, place: int, error: str, final: bool, part: bool) -> None:
        intent = self._id(self.intents, place)

        def lock_and_record(backlog: Backlog) -> None:
            backlog.lock_intents([intent])
            backlog.record_attempt(intent, error=error, final=final, part=part)

        self._change(lock_and_record, by_heartbeat=True)

    @rule(place=places, counted=st.booleans())
    def release(self, place: int, counted: bool) -> None:
        intent = self._id(self.intents, place)

        def lock_and_release(backlog: Backlog) -> None:
            backlog.lock_intents([intent])
            backlog.release_untried(intent, counted=counted)

        self._change(lock_and_release, by_heartbeat=True)

    # --- Invariants --------------------------------------------------------------------------------------------

    @invariant()
    def goals_are_within_limits(self) -> None:
        states = [goal.state for goal in self._open_goals()]
        assert states.count(GoalState.ACTIVE) <= MAX_ACTIVE
        assert states.count(GoalState.QUEUED) <= MAX_QUEUED
        assert len(states) <= MAX_OPEN

    @invariant()
    def open_goals_fit_their_parts(self) -> None:
        for goal in self._open_goals():
            parts = [
                ChildGoal(state=part.state, fraction=part.fraction)
                for part in self.goals.values()
                if part.parent_id == goal.id
            ]
            assert not is_reached(parts)
            assert 0 <= goal.fraction <= 1
            assert -1 <= goal.emotional_valence <= 1
            open_parents = {other.id: other.parent_id for other in self._open_goals()}
            assert sum(above in open_parents for above in chain(goal.id, open_parents)) <= MAX_DEPTH
            if goal.blocked_by_goal_id is not None:
                blockers = {other.id: other.blocked_by_goal_id for other in self._open_goals()}
                assert goal.blocked_by_goal_id in blockers
                assert goal.id not in chain(goal.blocked_by_goal_id, blockers)

    @invariant()
    def plans_and_intents_fit_their_goals(self) -> None:
        open_goals = {goal.id for goal in self._open_goals()}
        for plan in getattr(self, "plans", {}).values():
            own = [step.status for step in self.steps.values() if step.plan_id == plan.id]
            assert 1 <= len(own) <= MAX_STEPS
            assert set(plan.met) <= set(plan.dependencies)
            assert plan.status not in OPEN_PLANS or plan.goal_id in open_goals
            if plan.status == PlanStatus.COMPLETED:
                assert set(own) == {StepStatus.COMPLETED}
            if plan.status == PlanStatus.ACTIVE:
                assert OPEN_STEPS.intersection(own)
            if plan.status == PlanStatus.ABANDONED:
                assert OPEN_STEPS.isdisjoint(own)
        active = [plan.goal_id for plan in self._plans(PlanStatus.ACTIVE)]
        assert len(active) == len(set(active))
        committed = {
            step.id for step in getattr(self, "steps", {}).values() if step.status == StepStatus.COMMITTED
        }
        intents = [row for row in getattr(self, "intents", {}).values() if row.status in OPEN_INTENTS]
        assert sorted(row.step_id for row in intents if row.step_id) == sorted(committed)
        assert all(row.goal_id in open_goals for row in intents)

    # --- The stored rows -----------------------------------------------------------------------------------------

    def _change(self, change: Callable[[Backlog], object], *, by_heartbeat: bool = False) -> None:
        """Change the stored rows by a unit of work; a refused change may still have changed something before."""
        self.now += timedelta(minutes=2)
        rows = self._load()
        backlog = Backlog(AGENT, rows, now=self.now, heartbeat_id=uuid7() if by_heartbeat else None)
        with suppress(ArborError):
            change(backlog)
        changes = backlog.changes()
        self._store(self.goals, [*changes.new_goals, *changes.changed_goals])
        self._store(self.plans, [*changes.new_plans, *changes.changed_plans])
        self._store(self.steps, [*changes.new_steps, *changes.changed_steps])
        self._store(self.intents, [*changes.new_intents, *changes.changed_intents])
        # What was changed in memory is what was saved.
        assert {goal.id: goal for goal in rows.goals.values()}.items() <= self.goals.items()
        assert rows.plans.items() <= self.plans.items()
        assert {step.id: step for step in rows.steps}.items() <= self.steps.items()
        assert rows.intents.items() <= self.intents.items()

    def _load(self) -> BacklogRows:
        goals = {goal.id: deepcopy(goal) for goal in self._open_goals()}
        plans = {plan.id: deepcopy(plan) for plan in self._plans(*OPEN_PLANS)}
        ended: dict[UUID, list[ChildGoal]] = {}
        for goal in self.goals.values():
            if not goal.state.is_open and goal.parent_id in goals:
                ended.setdefault(goal.parent_id, []).append(ChildGoal(state=goal.state))
        return BacklogRows(
            goals=goals,
            plans=plans,
            steps=sorted(
                (deepcopy(step) for step in self.steps.values() if step.plan_id in plans),
                key=lambda step: step.position,
            ),
            intents={key: deepcopy(row) for key, row in self.intents.items() if row.status in OPEN_INTENTS},
            ended_children=ended,
        )

    @staticmethod
    def _store(stored: dict[UUID, Any], rows: Iterable[Any]) -> None:
        stored |= {row.id: deepcopy(row) for row in rows}

    def _open_goals(self) -> list[GoalRow]:
        return [goal for goal in getattr(self, "goals", {}).values() if goal.state.is_open]

    def _plans(self, *statuses: PlanStatus) -> list[PlanRow]:
        return [plan for plan in getattr(self, "plans", {}).values() if plan.status in statuses]

    def _goal_id(self, place: int) -> UUID:
        return self._id({goal.id: goal for goal in self._open_goals()}, place)

    @staticmethod
    def _id(rows: Any, place: int) -> UUID:
        ids = list(rows)
        return ids[place % len(ids)] if ids else uuid7()


def test_any_order_of_changes_leaves_a_backlog_consistent() -> None:
    run_state_machine_as_test(
        BacklogMachine,
        settings=settings(
            max_examples=80,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )

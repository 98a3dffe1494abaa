"""The reflex policy in random situations and over many heartbeats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState, default_state, move
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import BudgetBalance, EnergyBudget
from arbor.heartbeat.decision import DecisionLimits, decide
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.situation import Environment, LastHeartbeat, MemoryView, Mode, PerceptView, Situation
from arbor.heartbeat.views import GoalView, IntentView
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.memory.values import MemoryType
from tests.unit.heartbeat.builders import NOW, goal, intent, memory, reflex, situation
from tests.unit.heartbeat.replies.schema_check import REPLY_SCHEMA, fits

ALL = tuple(ACTIONS)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=80)
ids = st.uuids().map(str)
goals = st.builds(
    GoalView,
    id=ids,
    title=texts,
    description=texts,
    state=st.sampled_from([GoalState.ACTIVE, GoalState.QUEUED, GoalState.BACKBURNER]),
    layer=st.sampled_from(GoalLayer),
    source=st.sampled_from(GoalSource),
    priority=st.floats(0, 5),
    fraction=st.floats(0, 1),
    notes=st.lists(texts, max_size=3),
)
memories = st.builds(
    MemoryView, id=ids, type=st.sampled_from(MemoryType), content=texts, role=texts, at=st.just(NOW)
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    wanted = draw(st.lists(goals, max_size=4))
    aims = st.sampled_from([goal.id for goal in wanted]) if wanted else ids
    steps = st.builds(
        IntentView,
        id=ids,
        goal_id=aims,
        action=st.sampled_from([*ALL, "fly"]),
        description=texts,
        status=st.sampled_from(IntentStatus),
    )
    return situation(
        mode=draw(st.sampled_from(Mode)),
        heartbeat_number=draw(st.integers(1, 1_000)),
        energy=draw(st.floats(0, 20)),
        actions=ACTIONS.offers(draw(st.sets(st.sampled_from(ALL)))),
        goals=wanted,
        intents=draw(st.lists(steps, max_size=4)),
        recent=draw(st.lists(memories, max_size=3)),
        relevant=draw(st.lists(memories, max_size=3)),
        percepts=draw(
            st.lists(
                st.builds(PerceptView, id=ids, kind=st.just("user_message"), content=texts, at=st.just(NOW)),
                max_size=4,
            )
        ),
        working_memory=WorkingMemory(
            thoughts=[Thought(text=draw(texts), at=NOW)], curiosity=draw(st.lists(texts, max_size=2))
        ),
    )


@settings(max_examples=150)
@given(situations())
def test_every_reply_is_valid_permitted_paid_for_and_used_whole(view: Situation) -> None:
    reply = reflex(view)

    assert fits(reply, REPLY_SCHEMA)
    parsed = parse_reply(json.dumps(reply))
    assert (parsed.dropped, parsed.repairs) == ((), ())
    decisions = decide(
        parsed.reply.actions,
        DecisionLimits(
            allowed=[offer.name for offer in view.actions], energy=view.energy, budget=EnergyBudget()
        ),
    )
    assert [(decision.action, decision.reason) for decision in decisions if not decision.runs] == []


@settings(max_examples=30)
@given(situations())
def test_the_same_situation_gives_the_same_reply(view: Situation) -> None:
    assert reflex(view) == reflex(view)


@dataclass
class Life:
    """A minimal world in which replies have their effects."""

    goals: dict[str, GoalView]
    intents: dict[str, IntentView] = field(default_factory=dict)
    energy: float = 0.0
    heartbeat: int = 0
    modes: list[Mode] = field(default_factory=list)
    last: LastHeartbeat | None = None

    def live(self) -> Reply:
        """Run one heartbeat: apply the reply of the reflex policy and return it."""
        self.heartbeat += 1
        budget = EnergyBudget()
        self.energy = budget.begin(BudgetBalance(energy=self.energy))
        view = situation(
            heartbeat_number=self.heartbeat,
            environment=Environment(now=NOW),
            energy=self.energy,
            goals=[goal for goal in self.goals.values() if goal.state.is_open],
            intents=list(self.intents.values()),
            recent=[memory("pier"), memory("crane")],
            last_heartbeat=self.last,
        )
        view = view.model_copy(update={"mode": mode_of(view)})
        self.modes.append(view.mode)
        reply = parse_reply(json.dumps(reflex(view))).reply
        for decision in decide(reply.actions, DecisionLimits(allowed=ALL, energy=self.energy, budget=budget)):
            assert decision.runs, decision.reason
            self.energy = budget.spend(self.energy, decision.cost)
            if decision.intent_id:
                done = self.intents[decision.intent_id]
                self.intents[done.id] = done.model_copy(update={"status": IntentStatus.COMPLETED})
            if decision.action == "brainstorm_goals":
                for idea in decision.params["goals"]:
                    thought = goal(f"{len(self.goals)}", title=idea["title"], state=GoalState(idea["state"]))
                    self.goals[thought.id] = thought
            if decision.action == "reprioritize":
                self._move(decision.params["goal_id"], GoalState(decision.params["state"]))
        for plan in reply.decompositions:
            for step in plan.intentions:
                new = intent(
                    f"{len(self.intents)}",
                    goal_id=plan.goal_id,
                    action=step.action,
                    description=step.description,
                )
                self.intents[new.id] = new
        for update in reply.goal_updates:
            if update.progress is not None:
                touched = self.goals[update.goal_id]
                self.goals[touched.id] = touched.model_copy(update={"fraction": update.progress})
            if update.state is not None:
                self._move(update.goal_id, update.state)
        for wanted in reply.new_goals:
            new_goal = goal(f"{len(self.goals)}", title=wanted.title, state=default_state(wanted.source))
            self.goals[new_goal.id] = new_goal
        return reply

    def _move(self, goal_id: str, to: GoalState) -> None:
        moved = self.goals[goal_id]
        self.goals[goal_id] = moved.model_copy(update={"state": move(moved.state, to)})


def test_a_reflex_agent_completes_its_goals() -> None:
    first = goal("harbour", priority=3.0)
    second = goal("market", state=GoalState.QUEUED)
    life = Life({first.id: first, second.id: second})

    for _ in range(24):
        life.live()

    assert life.modes[:3] == [Mode.PLAN_EXECUTION, Mode.GOAL_PURSUIT, Mode.REFLECTION]
    assert life.modes[4] is Mode.CONSOLIDATION
    assert life.goals[first.id].state is GoalState.COMPLETED
    assert life.goals[first.id].fraction == 1.0
    assert life.goals[second.id].state is GoalState.COMPLETED
    assert len(life.goals) == 2
    assert all(intent.status is not IntentStatus.FAILED for intent in life.intents.values())

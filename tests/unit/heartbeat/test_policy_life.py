"""Many heartbeats of the reflex policy: goals are planned and completed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalState, default_state, move
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import ByEnergy
from arbor.heartbeat.decision import DecisionLimits, decide
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.situation import Environment, LastHeartbeat, Mode
from arbor.heartbeat.views import GoalView, IntentView
from tests.unit.heartbeat.builders import NOW, goal, intent, memory, reflex, situation

ALL = tuple(ACTIONS)


@dataclass
class Life:
    """The least world in which replies have their effects."""

    goals: dict[str, GoalView]
    intents: dict[str, IntentView] = field(default_factory=dict)
    energy: float = 0.0
    heartbeat: int = 0
    modes: list[Mode] = field(default_factory=list)
    last: LastHeartbeat | None = None

    def live(self) -> Reply:
        self.heartbeat += 1
        budget = ByEnergy()
        self.energy = budget.regenerate(self.energy)
        seen = situation(
            beat_number=self.heartbeat,
            environment=Environment(now=NOW),
            energy=self.energy,
            goals=[goal for goal in self.goals.values() if goal.state.is_open],
            intents=list(self.intents.values()),
            recent=[memory("pier"), memory("crane")],
            last_beat=self.last,
        )
        seen = seen.model_copy(update={"mode": mode_of(seen)})
        self.modes.append(seen.mode)
        reply = parse_reply(json.dumps(reflex(seen))).reply
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


def test_an_agent_on_reflex_completes_its_goals() -> None:
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

"""Builders of heartbeats, and fake answers to the needs of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from arbor.contacts.cooldown import ContactLimits
from arbor.goals.backlog import Backlog
from arbor.goals.goal_rules import Circumstances
from arbor.goals.ordering import PriorityInputs
from arbor.goals.priority import PriorityWeights
from arbor.goals.rows import BacklogRows, GoalRow, IntentRow
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.failure_modes import RecentActivity
from arbor.heartbeat.inputs import Moment, Opening, Rules, Selfhood
from arbor.heartbeat.needs import Embedding, OpenBacklog, PlacedMemories, Placing
from arbor.heartbeat.pacing import SchedulePolicy
from arbor.heartbeat.results import ActionOutcome, ActionRecord, ActionResult
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.authority import sign
from arbor.heartbeat.usage import BudgetLevel
from arbor.memory.importance import DEFAULT_WORDS
from arbor.memory.values import MemoryType, Recalled, ScoreComponents
from arbor.pipeline.engine import NodeResult
from tests.support.authority import EVERYTHING, SIGNER, authority_of, grants_of
from tests.unit.heartbeat.builders import NONCE, NOW, situation

TENANT, AGENT, HEARTBEAT, CALL = (UUID(int=number) for number in (1, 2, 3, 4))
HOUR = timedelta(hours=1)

RULES = Rules(
    reflect_every=4,
    reflect_pause=timedelta(hours=1),
    conversation_lifetime=timedelta(days=7),
    model_context=32_000,
    reply_tokens=2_000,
    tier_models={},
    default_model="openai/large",
    contact_limits=ContactLimits(),
    word_lists=DEFAULT_WORDS,
)


def rules_of(**changes: Any) -> Rules:
    return replace(RULES, **changes)


def moment_of(**changes: Any) -> Moment:
    values: dict[str, Any] = {
        "now": NOW,
        "rules": RULES,
        "nonce": NONCE,
        "authority": EVERYTHING,
        "signer": SIGNER,
    }
    return Moment(**(values | changes))


def permitting(*actions: str) -> Moment:
    """Return a moment of an agent that may do these actions alone."""
    return moment_of(authority=authority_of(*grants_of(*actions)))


def opening_of(**changes: Any) -> Opening:
    """Return the opening of a heartbeat without notices, mood or pending work."""
    values: dict[str, Any] = {
        "recent_activity": RecentActivity(),
        "level_before": BudgetLevel.NORMAL,
        "idle_heartbeats": 0,
        "buffer_item_count": 0,
        "mood": None,
        "circumstances": Circumstances(),
        "priority_inputs": PriorityInputs(weights=PriorityWeights(), now=NOW),
    }
    return Opening(**(values | changes))


def heartbeat_of(**changes: Any) -> HeartbeatState:
    """Return a new heartbeat that may use every action."""
    values: dict[str, Any] = {
        "moment": moment_of(),
        "situation": situation(),
        "tenant_id": TENANT,
        "agent_id": AGENT,
        "heartbeat_id": HEARTBEAT,
        "trigger": "timer",
        "selfhood": Selfhood(),
        "schedule": SchedulePolicy(interval=HOUR),
        "allowed": [*ACTIONS],
        "energy_start": 10.0,
        "model": "openai/large",
    }
    return HeartbeatState(**(values | changes))


def signed(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the heartbeat with its decisions signed, as the step `decide` leaves it."""
    return replace(heartbeat, signed=sign(heartbeat, heartbeat.decisions))


def decision_of(action: str, **params: Any) -> Decision:
    """Return a decision to run an action with these parameters."""
    return Decision(index=0, action=action, params=params, verdict=DecisionVerdict.RUN)


def permitted(action: str, **params: Any) -> Decision:
    """Return a permitted decision with complete parameters and the cost of the action."""
    spec = ACTIONS.get(action)
    assert spec is not None
    whole = spec.params.model_validate(params).model_dump(mode="json")
    return decision_of(action, **whole).model_copy(update={"cost": spec.cost})


def refusal_of(action: str, verdict: DecisionVerdict, reason: str = "", **params: Any) -> Decision:
    """Return a decision not to run an action."""
    return Decision(index=0, action=action, params=params, verdict=verdict, reason=reason)


def result_of(action: str, *, index: int = 0, **changes: Any) -> ActionResult:
    values: dict[str, Any] = {"outcome": ActionOutcome.SUCCESS, "summary": f"{action} worked"}
    return ActionResult(index=index, action=action, **(values | changes))


def action_record_of(
    action: str,
    *,
    index: int = 0,
    verdict: DecisionVerdict = DecisionVerdict.RUN,
    params: Any = None,
    **changes: Any,
) -> ActionRecord:
    """Return the record of a finished action; `changes` are fields of its result."""
    result = result_of(action, index=index, **changes)
    decision = Decision(
        index=index,
        action=action,
        params=params or {},
        verdict=verdict,
        goal_id=result.goal_id,
        intent_id=result.intent_id,
        cost=result.cost,
    )
    return ActionRecord(decision=decision, result=result)


def recalled_memory(number: int = 1, **changes: Any) -> Recalled:
    values: dict[str, Any] = {
        "id": UUID(int=100 + number),
        "type": MemoryType.EPISODIC,
        "content": f"memory {number}",
        "role": "",
        "session": "",
        "occurred_at": NOW,
        "importance": 0.5,
        "components": ScoreComponents(meaning=1 / number),
    }
    return Recalled(**(values | changes))


def goal_row(name: str = "reef", **changes: Any) -> GoalRow:
    values: dict[str, Any] = {
        "id": UUID(int=200 + len(name)),
        "agent_id": AGENT,
        "title": f"Chart the {name}",
        "state": GoalState.ACTIVE,
        "layer": GoalLayer.OBJECTIVE,
        "source": GoalSource.ROLE,
        "touched_at": NOW,
    }
    return GoalRow(**(values | changes))


def intent_row(goal: GoalRow, action: str = "recall", **changes: Any) -> IntentRow:
    values: dict[str, Any] = {
        "id": UUID(int=300),
        "agent_id": AGENT,
        "goal_id": goal.id,
        "action": action,
        "description": f"first, {action}",
    }
    return IntentRow(**(values | changes))


def backlog_of(*goals: GoalRow, intents: Sequence[IntentRow] = ()) -> Backlog:
    """Return the backlog of the heartbeat's agent."""
    rows = BacklogRows(
        goals={goal.id: goal for goal in goals}, intents={intent.id: intent for intent in intents}
    )
    return Backlog(AGENT, rows, now=NOW, heartbeat_id=HEARTBEAT)


def placed_as_new(need: Placing) -> PlacedMemories:
    """Answer a need for placing: each memory is new, and its id is derived from its position."""
    return PlacedMemories(ids=tuple(UUID(int=1000 + place) for place, _ in enumerate(need.memories)))


class Answers:
    """Answer the needs of steps by their type, and record the needs in order.

    An answer is a value, an exception to raise in the step, or a function of the need.
    """

    def __init__(self, answers: Mapping[type, Any] | None = None) -> None:
        self._answers: Mapping[type, Any] = {Embedding: {}, Placing: placed_as_new, **(answers or {})}
        self.needs: list[Any] = []

    @property
    def kinds(self) -> list[type]:
        """Return the types of the recorded needs, in order."""
        return [type(need) for need in self.needs]

    def run(self, work: Any) -> NodeResult[HeartbeatState]:
        """Run a step to its end and return its result."""
        if isinstance(work, NodeResult):
            return work
        try:
            need = next(work)
            while True:
                self.needs.append(need)
                answer = self._answers[type(need)]
                answer = answer(need) if callable(answer) else answer
                need = work.throw(answer) if isinstance(answer, Exception) else work.send(answer)
        except StopIteration as stop:
            result: NodeResult[HeartbeatState] = stop.value
            return result


def run_step(work: Any, answers: Mapping[type, Any] | None = None) -> NodeResult[HeartbeatState]:
    """Run a step with the default answers and these, by type of need; return its result."""
    return Answers(answers).run(work)


def run_with_backlog(
    step: Any, heartbeat: HeartbeatState, backlog: Backlog | None
) -> tuple[HeartbeatState, Answers]:
    """Run a step; without a backlog the step must not need one."""
    answers = Answers({OpenBacklog: backlog} if backlog is not None else {})
    return answers.run(step(heartbeat)).state, answers


def changes_of(heartbeat: HeartbeatState) -> list[tuple[str, str]]:
    return [(change.title, change.kind.value) for change in heartbeat.present.goal_changes]

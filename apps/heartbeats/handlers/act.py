"""Act: each decided action is carried out, in order, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.goals.services.backlog import Backlog
from apps.heartbeats.handlers.observe import BEATS_SESSION, model_in
from apps.memories.services.activation import note_recall
from apps.memories.services.appraisal import lasting
from apps.memories.services.embedding import Vectors
from apps.memories.services.graph import connect
from apps.memories.services.partial import on_the_tip_of_the_tongue
from apps.memories.services.recall import recall_in_scope
from apps.memories.services.remember import store
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.goals.values import GoalState
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.energy import EnergyBudget
from arbor.heartbeat.learning import learned
from arbor.heartbeat.results import ActionOutcome, ActionResult, refused
from arbor.heartbeat.situation import Situation
from arbor.memory.relations import NodeKind, Relation
from arbor.memory.retention import Retention
from arbor.memory.values import MemoryType, NewMemory
from arbor.memory.walks import NOTE_LENGTH
from arbor.pipeline.engine import Context, NodeResult, Phase

#: A lesson the agent drew itself is worth more to it than a thing it merely noted.
INSIGHT_IMPORTANCE = 0.7
#: What of a recalled memory fits into the line that the agent reads at its next beat.
_GLIMPSE = 160


class Act:
    """Carries out the decisions; an action that fails costs its energy and changes nothing else."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Put the results, and the energy that is left, into the context."""
        desk = _Desk(context, self._clock.now())
        decisions = [Decision.model_validate(each) for each in context["decisions"]]
        results = [desk.carry_out(decision) if decision.runs else refused(decision) for decision in decisions]
        for decision in decisions:
            if decision.verdict is Verdict.NOT_PERMITTED:
                _note_denial(context, decision)
        budget = EnergyBudget()
        energy = float(context["situation"]["energy"])
        for result in results:
            energy = budget.spend(energy, result.cost)
        entry = {
            **context["record"],
            "energy_end": energy,
            "actions": [
                _entry(decision, result) for decision, result in zip(decisions, results, strict=True)
            ],
        }
        changed = tuple(
            f"{result.action}: {result.summary}" for result in results if result.cost or result.memory_ids
        )
        return NodeResult(
            updates={"results": [each.model_dump(mode="json") for each in results], "record": entry},
            changed=changed,
        )


def _note_denial(context: Context, decision: Decision) -> None:
    record(
        action=AuditAction.DENIED,
        actor=f"agent:{context['situation']['public_id']}",
        agent_id=UUID(context["agent_id"]),
        message=f"{decision.action}: {decision.reason}",
        detail={"heartbeat_id": context["heartbeat_id"]},
    )


def _entry(decision: Decision, result: ActionResult) -> dict[str, Any]:
    return {
        **decision.model_dump(mode="json"),
        **result.model_dump(mode="json"),
        "verdict": decision.verdict.value,
    }


class _Desk:
    """What the actions of one beat work with."""

    def __init__(self, context: Context, now: datetime) -> None:
        self._agent_id = UUID(context["agent_id"])
        self._heartbeat_id = context["heartbeat_id"]
        self._vectors: dict[str, list[float]] = context["vectors"]
        self._model = model_in(context)
        self._now = now
        self._situation = Situation.model_validate(context["situation"])
        self._handlers: dict[str, Callable[[Decision], ActionResult]] = {
            "recall": self._recall,
            "remember": self._remember,
            "reflect": self._reflect,
            "connect": self._connect,
            "reprioritize": self._reprioritize,
            "rest": self._rest,
        }

    def carry_out(self, decision: Decision) -> ActionResult:
        """Carry out one action; what the domain refuses is its result, anything else is a fault and ends the beat."""
        try:
            return self._handlers[decision.action](decision)
        except ArborError as error:
            # Nothing was written: every rule is checked before the first statement that changes a row.
            return _result(decision, ActionOutcome.FAILURE, f"did not work: {error}")

    def _recall(self, decision: Decision) -> ActionResult:
        query = decision.params["query"]
        found = recall_in_scope(
            agent_id=self._agent_id,
            text=query,
            vector=self._vectors.get(query),
            model=self._model,
            limit=decision.params["limit"],
            # What was said and learned, not the beats that went over it: those would echo from beat to beat.
            without_session=BEATS_SESSION,
        )
        note_recall(agent_id=self._agent_id, recalled={memory.id: memory.score for memory in found})
        if not found:
            return _result(decision, ActionOutcome.PARTIAL, f"nothing came to mind about {query!r}")
        themes = on_the_tip_of_the_tongue(
            agent_id=self._agent_id,
            recalled=found,
            vector=self._vectors.get(query),
            model=self._model,
            without_session=BEATS_SESSION,
        )
        glimpses = "; ".join(memory.content[:_GLIMPSE] for memory in found[:3])
        unclear = f"; on the tip of the tongue: theme {'; '.join(each.name for each in themes)}"
        return _result(
            decision,
            ActionOutcome.SUCCESS,
            f"{len(found)} memories about {query!r}: {glimpses}{unclear if themes else ''}",
            [memory.id for memory in found],
        )

    def _remember(self, decision: Decision) -> ActionResult:
        params = decision.params
        memory = NewMemory(
            content=params["content"],
            type=MemoryType(params["type"]),
            importance=params["importance"],
            occurred_at=self._now,
            source=f"heartbeat:{self._heartbeat_id}",
        )
        memory = learned(memory, situation=self._situation)
        # What the agent chose to keep lasts; that something failed is soon stale.
        return self._keep(decision, lasting(memory, but={Retention.ERROR}), "kept")

    def _reflect(self, decision: Decision) -> ActionResult:
        memory = NewMemory(
            content=decision.params["insight"],
            type=MemoryType.SEMANTIC,
            importance=INSIGHT_IMPORTANCE,
            occurred_at=self._now,
            source=f"heartbeat:{self._heartbeat_id}",
            detail={"focus": decision.params["focus"]},
        )
        memory = learned(memory, situation=self._situation, concluded=True)
        return self._keep(decision, memory, "noticed")

    def _keep(self, decision: Decision, memory: NewMemory, verb: str) -> ActionResult:
        stored = store(
            agent_id=self._agent_id,
            memories=[memory],
            vectors=vectors_of([memory.content], self._vectors),
            model=self._model,
        )
        if not stored.stored:
            return _result(decision, ActionOutcome.PARTIAL, "that was known already", list(stored.ids))
        return _result(
            decision, ActionOutcome.SUCCESS, f"{verb}: {memory.content[:_GLIMPSE]}", list(stored.ids)
        )

    def _connect(self, decision: Decision) -> ActionResult:
        params = decision.params
        made = connect(
            agent_id=self._agent_id,
            source_id=params["from_id"],
            target_id=params["to_id"],
            relation=Relation(params["relation"]),
            note=decision.reasoning[:NOTE_LENGTH],
            origin=f"heartbeat:{self._heartbeat_id}",
        )
        memories = [end.id for end in (made.source, made.target) if end.kind is NodeKind.MEMORY]
        return _result(decision, ActionOutcome.SUCCESS, f"tied together as {made.relation}", memories)

    def _reprioritize(self, decision: Decision) -> ActionResult:
        backlog = Backlog.lock(self._agent_id, now=self._now)
        goal = backlog.move(decision.params["goal_id"], GoalState(decision.params["state"]))
        backlog.save()
        return _result(decision, ActionOutcome.SUCCESS, f"{goal.title!r} is {goal.state} now")

    def _rest(self, decision: Decision) -> ActionResult:
        return _result(decision, ActionOutcome.SUCCESS, "saved what energy is left")


def vectors_of(texts: Sequence[str], known: dict[str, list[float]]) -> Vectors | None:
    """Return the texts' vectors, or none if one is missing: upkeep embeds what is stored without."""
    if any(text not in known for text in texts):
        return None
    return np.asarray([known[text] for text in texts], dtype=np.float32)


def _result(
    decision: Decision, outcome: ActionOutcome, summary: str, memory_ids: Sequence[UUID] = ()
) -> ActionResult:
    return ActionResult(
        index=decision.index,
        action=decision.action,
        outcome=outcome,
        summary=summary,
        cost=decision.cost,
        memory_ids=[str(each) for each in memory_ids],
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
    )

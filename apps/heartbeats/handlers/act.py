"""Act: each decided action is carried out, in order, and says what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.acts import ACTS
from apps.heartbeats.acts.desk import Desk, answer
from apps.heartbeats.acts.inquiry import pending_work
from apps.heartbeats.handlers.terms import budget_in, model_in
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.heartbeat.decision import Decision, Verdict
from arbor.heartbeat.results import ActionOutcome, ActionResult, refused
from arbor.pipeline.engine import Context, NodeResult, Phase


class Act:
    """Carries out the decisions; an action that fails costs its energy and changes nothing else."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Put the results, and the energy that is left, into the context."""
        desk = desk_of(context, self._clock.now())
        decisions: list[Decision] = context["decisions"]
        results = [
            carry_out(desk, decision) if decision.runs else refused(decision) for decision in decisions
        ]
        for decision in decisions:
            if decision.verdict is Verdict.NOT_PERMITTED:
                _note_denial(context, decision)
        budget = budget_in(context)
        energy = context["situation"].energy
        for result in results:
            energy = budget.spend(energy, result.cost)
        # A beat may take several turns: it has rested as often as in all of them.
        rests = context.get("rests", 0) + sum(
            result.action == "rest" and result.outcome is ActionOutcome.SUCCESS for result in results
        )
        entry = {
            **context["record"],
            "energy_end": energy,
            "actions": [
                _entry(decision, result) for decision, result in zip(decisions, results, strict=True)
            ],
            "goal_changes": [
                # The record of a further turn begins with what the turns before did; this is about the present one.
                *(context["record"].get("goal_changes", []) if context["turn"] == 1 else ()),
                *(change.model_dump(mode="json") for change in desk.goal_changes),
            ],
        }
        work = pending_work(decisions, results)
        changed = tuple(
            f"{result.action}: {result.summary}" for result in results if result.cost or result.memory_ids
        )
        return NodeResult(
            updates={
                "results": results,
                "record": entry,
                "rests": rests,
                "state": {**context.get("state", {}), **desk.state, **budget.settle(energy, rests=rests)},
                "work": work,
                "work_left": len(work),
            },
            changed=changed,
        )


def _note_denial(context: Context, decision: Decision) -> None:
    record(
        action=AuditAction.DENIED,
        actor=f"agent:{context['situation'].public_id}",
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


def carry_out(desk: Desk, decision: Decision) -> ActionResult:
    """Carry out one action; what the domain refuses is its result, anything else is a fault and ends the beat."""
    try:
        return ACTS[decision.action](desk, decision)
    except ArborError as error:
        # Nothing was written: every rule is checked before the first statement that changes a row.
        return answer(decision, ActionOutcome.FAILURE, f"did not work: {error}")


def desk_of(context: Context, now: datetime) -> Desk:
    """Return what the actions of this beat work with."""
    return Desk(
        agent_id=UUID(context["agent_id"]),
        heartbeat_id=UUID(context["heartbeat_id"]),
        now=now,
        situation=context["situation"],
        vectors=context["vectors"],
        model=model_in(context),
    )

"""Which of the proposed actions run, and why the others do not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from arbor.heartbeat.actions import ActionRegistry
from arbor.heartbeat.energy import EnergyBudget
from arbor.heartbeat.reply import MAX_ACTIONS, ProposedAction, Reply


class Verdict(StrEnum):
    """What is decided about a proposed action. Everything but `run` costs nothing and does nothing."""

    #: It runs.
    RUN = "run"
    #: There is no such action.
    UNKNOWN = "unknown"
    #: The agent's template does not allow it.
    NOT_PERMITTED = "not_permitted"
    #: Its parameters are wrong.
    INVALID = "invalid"
    #: There is too little energy left.
    TOO_LITTLE_ENERGY = "too_little_energy"
    #: The beat has enough actions already.
    TOO_MANY = "too_many"


class Decision(BaseModel):
    """What is decided about one proposed action; JSON by `model_dump(mode="json")`.

    `params` are validated and complete when it runs, as proposed otherwise. `reason` says why it does not run.
    """

    model_config = ConfigDict(frozen=True)

    index: int
    action: str
    params: dict[str, Any]
    verdict: Verdict
    reason: str = ""
    #: Parameters that the action does not know, and ran without.
    ignored: list[str] = []
    cost: int = 0
    reasoning: str = ""
    goal_id: str | None = None
    intent_id: str | None = None

    @property
    def runs(self) -> bool:
        """Return whether the action is to be carried out."""
        return self.verdict is Verdict.RUN


def decide(
    proposed: Sequence[ProposedAction],
    *,
    registry: ActionRegistry,
    allowed: Collection[str],
    energy: float,
    budget: EnergyBudget,
    most: int = MAX_ACTIONS,
) -> tuple[Decision, ...]:
    """Decide about each proposed action, in order; energy is set aside for those that run.

    Checked in this order: known, permitted, parameters, room in the beat, energy. An action that is refused costs
    nothing, so a cheaper one after it may still run.
    """
    decisions: list[Decision] = []
    running = 0
    for index, action in enumerate(proposed):
        decision = _judge(index, action, registry, allowed)
        if decision.runs and running >= most:
            decision = _refuse(decision, Verdict.TOO_MANY, f"at most {most} actions run in one beat")
        elif decision.runs and not budget.affords(energy, decision.cost):
            reason = f"{action.action} costs {decision.cost}, {energy:g} energy is left"
            decision = _refuse(decision, Verdict.TOO_LITTLE_ENERGY, reason)
        elif decision.runs:
            running += 1
            energy = budget.spend(energy, decision.cost)
        decisions.append(decision)
    return tuple(decisions)


def texts_to_search(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the texts that the running actions search for, each once."""
    return tuple(dict.fromkeys(_params(decisions, _SEARCHED)))


def texts_to_store(decisions: Sequence[Decision], reply: Reply) -> tuple[str, ...]:
    """Return the texts that the running actions and the notes make memories of, each once."""
    notes = [note.text for note in reply.memory_notes]
    return tuple(dict.fromkeys([*_params(decisions, _STORED), *notes]))


def _params(decisions: Sequence[Decision], names: Mapping[str, str]) -> list[str]:
    return [
        str(decision.params[names[decision.action]])
        for decision in decisions
        if decision.runs and decision.action in names
    ]


# Which parameter of an action is searched for, and which is stored as a memory.
_SEARCHED = {"recall": "query"}
_STORED = {"remember": "content", "reflect": "insight"}


def _judge(
    index: int, action: ProposedAction, registry: ActionRegistry, allowed: Collection[str]
) -> Decision:
    decision = Decision(
        index=index,
        action=action.action,
        params=action.params,
        verdict=Verdict.RUN,
        reasoning=action.reasoning,
        goal_id=action.goal_id,
        intent_id=action.intent_id,
    )
    possible = ", ".join(name for name in registry if name in allowed) or "none"
    spec = registry.get(action.action)
    if spec is None:
        return _refuse(
            decision, Verdict.UNKNOWN, f"there is no action {action.action!r}; possible: {possible}"
        )
    if spec.name not in allowed:
        return _refuse(
            decision, Verdict.NOT_PERMITTED, f"your template does not allow {spec.name}; possible: {possible}"
        )
    # A strict schema makes the model write null for what it leaves out.
    given = {name: value for name, value in action.params.items() if value is not None}
    try:
        params = spec.params.model_validate(given)
    except ValidationError as error:
        return _refuse(decision, Verdict.INVALID, _explain(error))
    return decision.model_copy(
        update={
            "params": params.model_dump(mode="json"),
            "cost": spec.cost,
            "ignored": [name for name in given if name not in spec.params.model_fields],
        }
    )


def _refuse(decision: Decision, verdict: Verdict, reason: str) -> Decision:
    return decision.model_copy(update={"verdict": verdict, "reason": reason, "cost": 0})


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults)

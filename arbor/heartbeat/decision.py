"""Which of the proposed actions run, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from arbor.contacts.cooldown import REACH_OUT_USER
from arbor.heartbeat.actions import ActionRegistry
from arbor.heartbeat.budgets import Budget
from arbor.heartbeat.reply import MAX_ACTIONS, ProposedAction, Reply
from arbor.heartbeat.self_views import CrossedView

#: What people, the web, or later heartbeats are told by.
OUTWARD = frozenset(
    {REACH_OUT_USER, "reach_out_public", "inquire_shallow", "inquire_deep", "brainstorm_goals"}
)
# What the texts of an action are looked for in, at most: deeper than any action's parameters go.
_DEEPEST = 4

NOTHING_MISSING: Mapping[str, str] = {}


class Verdict(StrEnum):
    """What is decided about a proposed action. Everything but `run` costs nothing and does nothing."""

    #: It runs.
    RUN = "run"
    #: There is no such action.
    UNKNOWN = "unknown"
    #: The agent's template does not allow it.
    NOT_PERMITTED = "not_permitted"
    #: This installation cannot do it: something is not set up.
    UNAVAILABLE = "unavailable"
    #: It is possible, and not now: the agent reached out a short while ago.
    TOO_SOON = "too_soon"
    #: Its parameters are wrong.
    INVALID = "invalid"
    #: It crosses a boundary of the agent's.
    BOUNDARY = "boundary"
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
    #: Boundaries that it crosses, whether it runs or not.
    crossed: list[CrossedView] = []

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
    budget: Budget,
    missing: Mapping[str, str] = NOTHING_MISSING,
    cooling: Mapping[str, str] = NOTHING_MISSING,
    most: int = MAX_ACTIONS,
    first: int = 0,
    guarded: Callable[[Decision], Decision] | None = None,
) -> tuple[Decision, ...]:
    """Decide about each proposed action, in order; energy is set aside for those that run.

    `missing` says, by action, what this installation lacks for it, and `cooling` why it is too soon. `energy` is what the
    budget counts in; `first` is the number of the first action within its beat.
    Checked in this order: known, permitted, possible, parameters, boundaries (`guarded`), room in the beat, energy. An
    action that is refused costs nothing, so a cheaper one after it may still run.
    """
    decisions: list[Decision] = []
    running = 0
    for index, action in enumerate(proposed, first):
        decision = _judge(index, action, registry, allowed, budget, missing)
        if guarded is not None:
            decision = guarded(decision)
        if decision.runs and (reason := cooling.get(action.action) or _twice(action.action, decisions)):
            decision = _refuse(decision, Verdict.TOO_SOON, reason)
        elif decision.runs and running >= most:
            decision = _refuse(decision, Verdict.TOO_MANY, f"at most {most} actions run in one beat")
        elif decision.runs and not budget.affords(energy, decision.cost):
            reason = f"{action.action} costs {decision.cost}, {energy:g} {budget.unit} is left"
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


def texts_to_check(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return every text of the running actions that reach beyond the agent, each once: it is held against boundaries."""
    return tuple(
        dict.fromkeys(
            text
            for each in decisions
            if each.runs and each.action in OUTWARD
            for text in texts_of(each.params)
        )
    )


def texts_of(params: dict[str, Any]) -> Iterator[str]:
    """Yield every text among an action's parameters."""
    yield from _texts(params, _DEEPEST)


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from _texts(each, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each, depth - 1)


def _params(decisions: Sequence[Decision], names: Mapping[str, str]) -> list[str]:
    return [
        str(decision.params[names[decision.action]])
        for decision in decisions
        if decision.runs and decision.action in names and decision.params[names[decision.action]] is not None
    ]


# Which parameter of an action is searched for, and which is stored as a memory.
_SEARCHED = {"recall": "query", "inquire_deep": "question"}
_STORED = {"remember": "content", "reflect": "insight", "synthesize": "content", "maintain": "content"}


def _judge(
    index: int,
    action: ProposedAction,
    registry: ActionRegistry,
    allowed: Collection[str],
    budget: Budget,
    missing: Mapping[str, str],
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
    possible = ", ".join(name for name in registry if name in allowed and name not in missing) or "none"
    spec = registry.get(action.action)
    if spec is None:
        return _refuse(
            decision, Verdict.UNKNOWN, f"there is no action {action.action!r}; possible: {possible}"
        )
    if spec.name not in allowed:
        return _refuse(
            decision, Verdict.NOT_PERMITTED, f"your template does not allow {spec.name}; possible: {possible}"
        )
    if spec.name in missing:
        return _refuse(
            decision, Verdict.UNAVAILABLE, f"{spec.name} is not possible here: {missing[spec.name]}"
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
            "cost": budget.price(spec),
            "ignored": [name for name in given if name not in spec.params.model_fields],
        }
    )


def _twice(action: str, decisions: Sequence[Decision]) -> str:
    """Return why an action that runs once in a beat does not run again; empty if it may."""
    if action == REACH_OUT_USER and any(each.runs and each.action == action for each in decisions):
        return "one message to your user is enough for one beat"
    return ""


def _refuse(decision: Decision, verdict: Verdict, reason: str) -> Decision:
    return decision.model_copy(update={"verdict": verdict, "reason": reason, "cost": 0})


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults)

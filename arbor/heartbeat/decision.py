"""Decisions about proposed actions: run, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_USER
from arbor.errors import Invalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import Budget
from arbor.heartbeat.replies.reply import MAX_ACTIONS, ProposedAction, Reply
from arbor.heartbeat.situation import ActionOffer
from arbor.heartbeat.views import MatchedBoundary
from arbor.tools.names import is_tool_action
from arbor.tools.schemas import ARGUMENTS_DEPTH, read_arguments
from arbor.tools.validation import arguments_fault

#: Actions whose texts reach people, the web, or later heartbeats.
OUTWARD = frozenset(
    {
        REACH_OUT_USER,
        REACH_OUT_AGENT,
        "reach_out_public",
        "inquire_shallow",
        "inquire_deep",
        "brainstorm_goals",
    }
)
# The depth to which parameters are searched for texts: deeper than those of any action.
_MAX_DEPTH = ARGUMENTS_DEPTH + 1


class DecisionVerdict(StrEnum):
    """The decision about a proposed action. All members but `run` are refusals, which cost nothing."""

    #: The action runs.
    RUN = "run"
    #: A reflex stops the action, whatever else is permitted.
    REFLEX = "reflex"
    #: There is no such action.
    UNKNOWN = "unknown"
    #: The agent's template does not allow the action.
    NOT_PERMITTED = "not_permitted"
    #: This installation cannot run the action, because something is not set up.
    UNAVAILABLE = "unavailable"
    #: The cool-down since the last message has not passed.
    TOO_SOON = "too_soon"
    #: The parameters are wrong.
    INVALID = "invalid"
    #: One of the agent's boundaries refuses the action.
    BOUNDARY = "boundary"
    #: There is too little energy left.
    TOO_LITTLE_ENERGY = "too_little_energy"
    #: The heartbeat has enough actions already.
    TOO_MANY = "too_many"


class Decision(BaseModel):
    """The decision about one proposed action; JSON by `model_dump(mode="json")`.

    `params` are validated and complete if the action runs, else as proposed. `reason` is why it does not run.
    """

    model_config = ConfigDict(frozen=True)

    index: int
    action: str
    params: dict[str, Any]
    verdict: DecisionVerdict
    reason: str = ""
    #: Unknown parameters, which were left out.
    ignored: list[str] = []
    cost: int = 0
    reasoning: str = ""
    goal_id: str | None = None
    intent_id: str | None = None
    #: Boundaries that match the action, also if it runs.
    crossed: list[MatchedBoundary] = []

    @property
    def runs(self) -> bool:
        return self.verdict is DecisionVerdict.RUN


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionLimits:
    """The limits for decisions about proposed actions; `missing` and `cooling` are reasons by action."""

    allowed: Collection[str]
    #: The amount that is left, in the unit of the budget.
    energy: float
    budget: Budget
    missing: Mapping[str, str] = field(default_factory=dict)
    cooling: Mapping[str, str] = field(default_factory=dict)
    #: The offers of actions that call tools, by name.
    tools: Mapping[str, ActionOffer] = field(default_factory=dict)
    most: int = MAX_ACTIONS
    #: The index of the first action within its heartbeat.
    first: int = 0
    reflexes: Callable[[Decision], Decision] = lambda decision: decision
    boundaries: Callable[[Decision], Decision] = lambda decision: decision


def decide(proposed: Sequence[ProposedAction], limits: DecisionLimits) -> tuple[Decision, ...]:
    """Decide about each proposed action, in order, and reserve energy for those that run.

    Checked in this order: reflexes, known, permitted, possible, parameters, boundaries, cool-down, number of actions,
    energy. A refused action costs nothing.
    """
    decisions: list[Decision] = []
    running, energy, budget = 0, limits.energy, limits.budget
    for index, action in enumerate(proposed, limits.first):
        name = action.action
        decision = limits.reflexes(_proposed(index, action))
        if decision.runs:
            decision = limits.boundaries(_check_action(decision, limits))
        if decision.runs and (reason := limits.cooling.get(name) or _repetition_reason(name, decisions)):
            decision = _refuse(decision, DecisionVerdict.TOO_SOON, reason)
        elif decision.runs and running >= limits.most:
            reason = f"at most {limits.most} actions run in one beat"
            decision = _refuse(decision, DecisionVerdict.TOO_MANY, reason)
        elif decision.runs and not budget.can_pay(energy, decision.cost):
            reason = f"{name} costs {decision.cost}, {energy:g} {budget.unit} is left"
            decision = _refuse(decision, DecisionVerdict.TOO_LITTLE_ENERGY, reason)
        elif decision.runs:
            running += 1
            energy = budget.spend(energy, decision.cost)
        decisions.append(decision)
    return tuple(decisions)


def texts_to_search(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the distinct queries of the running actions."""
    return tuple(dict.fromkeys(_params(decisions, _SEARCHED)))


def texts_to_store(decisions: Sequence[Decision], reply: Reply) -> tuple[str, ...]:
    """Return the distinct texts that the running actions and the notes store as memories."""
    notes = [note.text for note in reply.memory_notes]
    return tuple(dict.fromkeys([*_params(decisions, _STORED), *notes]))


def texts_to_check(decisions: Sequence[Decision]) -> tuple[str, ...]:
    """Return the distinct texts of running outward actions, to check against boundaries."""
    return tuple(
        dict.fromkeys(
            text
            for decision in decisions
            if decision.runs and (decision.action in OUTWARD or is_tool_action(decision.action))
            for text in texts_to_guard(decision)
        )
    )


def texts_of(params: dict[str, Any]) -> Iterator[str]:
    """Yield every text in an action's parameters."""
    yield from _texts(params, _MAX_DEPTH)


def texts_to_guard(decision: Decision) -> Iterator[str]:
    """Yield every text of a decision that boundaries are compared with: of a tool's arguments the names too.

    A tool may take arguments of any name, so a name can carry what the agent says.
    """
    yield from _texts(decision.params, _MAX_DEPTH, names=is_tool_action(decision.action))


def _texts(value: Any, depth: int, *, names: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif depth and isinstance(value, dict):
        for name, item in value.items():
            if names and name.strip():
                yield name
            yield from _texts(item, depth - 1, names=names)
    elif depth and isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, depth - 1, names=names)


def _params(decisions: Sequence[Decision], names: Mapping[str, str]) -> list[str]:
    return [
        str(decision.params[names[decision.action]])
        for decision in decisions
        if decision.runs and decision.action in names and decision.params[names[decision.action]] is not None
    ]


# The parameter that is a query, and the parameter that becomes a memory, by action.
_SEARCHED = {"recall": "query", "inquire_deep": "question"}
_STORED = {"remember": "content", "reflect": "insight", "synthesize": "content", "maintain": "content"}


def _proposed(index: int, action: ProposedAction) -> Decision:
    return Decision(
        index=index,
        action=action.action,
        params=action.params,
        verdict=DecisionVerdict.RUN,
        reasoning=action.reasoning,
        goal_id=action.goal_id,
        intent_id=action.intent_id,
    )


def _check_action(decision: Decision, limits: DecisionLimits) -> Decision:
    name, missing = decision.action, limits.missing
    spec, tool = ACTIONS.get(name), limits.tools.get(name)
    if name in missing and name in limits.allowed:
        return _refuse(decision, DecisionVerdict.UNAVAILABLE, f"{name} is not possible here: {missing[name]}")
    if tool is not None and name in limits.allowed:
        return _check_tool(decision, tool)
    if spec is None or name not in limits.allowed:
        known = (*ACTIONS, *limits.tools)
        possible = ", ".join(other for other in known if other in limits.allowed and other not in missing)
        verdict, reason = DecisionVerdict.UNKNOWN, f"there is no action {name!r}"
        if spec is not None:
            verdict, reason = DecisionVerdict.NOT_PERMITTED, f"your template does not allow {name}"
        return _refuse(decision, verdict, f"{reason}; possible: {possible or 'none'}")
    # Under a strict schema, a model writes null for a parameter that it leaves out.
    present = {key: value for key, value in decision.params.items() if value is not None}
    try:
        params = spec.params.model_validate(present)
    except ValidationError as error:
        return _refuse(decision, DecisionVerdict.INVALID, _explain(error))
    return decision.model_copy(
        update={
            "params": params.model_dump(mode="json"),
            "cost": limits.budget.price(spec),
            "ignored": [key for key in present if key not in spec.params.model_fields],
        }
    )


def _check_tool(decision: Decision, offer: ActionOffer) -> Decision:
    """Check the arguments of a tool by its schema."""
    assert offer.tool is not None
    try:
        arguments = read_arguments(decision.params, offer.tool.arguments)
    except Invalid as error:
        return _refuse(decision, DecisionVerdict.INVALID, str(error))
    if fault := arguments_fault(arguments, offer.tool.arguments):
        return _refuse(decision, DecisionVerdict.INVALID, fault)
    return decision.model_copy(update={"params": arguments, "cost": offer.cost})


def _repetition_reason(action: str, decisions: Sequence[Decision]) -> str:
    """Return why the action may not run again in this heartbeat; empty if it may."""
    if action == REACH_OUT_USER and any(earlier.runs and earlier.action == action for earlier in decisions):
        return "one message to your user is enough for one beat"
    return ""


def _refuse(decision: Decision, verdict: DecisionVerdict, reason: str) -> Decision:
    return decision.model_copy(update={"verdict": verdict, "reason": reason, "cost": 0})


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults)

"""Decisions about proposed actions: run, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from arbor.authority.authorization import Authorization
from arbor.authority.reflexes import INQUIRIES
from arbor.contacts.cooldown import REACH_OUT_AGENT, REACH_OUT_PUBLIC, REACH_OUT_USER
from arbor.errors import Invalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import Budget, BudgetKind, amount_text
from arbor.heartbeat.replies.reply import MAX_ACTIONS, ProposedAction, Reply
from arbor.heartbeat.situation import ActionOffer
from arbor.heartbeat.views import MatchedBoundary
from arbor.knowledge.merging import SEARCH_KNOWLEDGE, SEARCH_MY_MEMORIES
from arbor.quotations import counted
from arbor.tools.names import is_tool_action
from arbor.tools.schemas import ARGUMENTS_DEPTH, arguments_fault, read_arguments

#: Precedes the list of possible actions in the reason of a refusal.
POSSIBLE = "; possible: "
#: Actions whose texts reach people, the web, or later heartbeats.
_OUTWARD = INQUIRIES | {REACH_OUT_USER, REACH_OUT_AGENT, REACH_OUT_PUBLIC, "brainstorm_goals"}
# The depth to which parameters are searched for texts: deeper than those of any action.
_MAX_DEPTH = ARGUMENTS_DEPTH + 1
# The parameter that is a query, and the parameter that becomes a memory, by action.
_SEARCHED = {
    "recall": "query",
    SEARCH_MY_MEMORIES: "query",
    SEARCH_KNOWLEDGE: "query",
    "inquire_deep": "question",
}
_STORED = {"remember": "content", "reflect": "insight", "synthesize": "content", "maintain": "content"}


class DecisionVerdict(StrEnum):
    """The decision about a proposed action. All members but `run` are refusals, which cost nothing."""

    #: The action runs.
    RUN = "run"
    #: A reflex stops the action, whatever else is permitted.
    REFLEX = "reflex"
    #: The action waits for a person's approval.
    AWAITS_APPROVAL = "awaits_approval"
    #: There is no such action.
    UNKNOWN = "unknown"
    #: No grant of the agent authorizes the action.
    NOT_AUTHORIZED = "not_authorized"
    #: In records from before grants: the agent's template does not allow the action.
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
    #: Enough actions run or wait for approval already.
    TOO_MANY = "too_many"


class Decision(BaseModel, frozen=True):
    """The decision about one proposed action; JSON by `model_dump(mode="json")`.

    `params` are complete once the check of the parameters accepts them, before that as proposed; a reflex removes those with a
    secret. `reason` is why the action does not run.
    """

    index: int
    action: str
    params: dict[str, Any]
    verdict: DecisionVerdict
    reason: str = ""
    #: Parameters without an effect, which were left out.
    ignored: list[str] = []
    cost: int = 0
    reasoning: str = ""
    goal_id: str | None = None
    intent_id: str | None = None
    #: Boundaries that match the action, also if it runs; `crossed` in older checkpoints.
    boundary_matches: Annotated[
        list[MatchedBoundary], Field(validation_alias=AliasChoices("boundary_matches", "crossed"))
    ] = []
    #: The grant that authorizes the action.
    capability_id: str = ""
    #: Why no grant does, with the grants that were tried.
    why: Authorization | None = None
    #: The request for approval that the action waits for, or that a person has approved.
    approval_id: str = ""
    #: The action is not of the model's reply: a person has approved it since it was asked for.
    by_approval: bool = False

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
    #: The requests for approval that the first of the proposed actions come from.
    approved: Sequence[str] = ()
    #: Applies the trust in the agent, given the earlier decisions of the round trip.
    trust: Callable[[Decision, Sequence[Decision]], Decision] = lambda decision, _: decision
    #: Returns whether the agent's grants authorize an action, given the grants that earlier actions of the round trip use. None:
    #: grants are not known, and `allowed` decides.
    authorization: Callable[[Decision, Sequence[str]], Authorization] | None = None


def decide(proposed: Sequence[ProposedAction], limits: DecisionLimits) -> tuple[Decision, ...]:
    """Decide about each proposed action by `CHECKS`, in order, and reserve energy for those that run.

    A refused action costs nothing.
    """
    decisions: list[Decision] = []
    for place, action in enumerate(proposed):
        by_approval = place < len(limits.approved)
        decision = Decision(
            **dict(action),
            index=limits.first + place,
            verdict=DecisionVerdict.RUN,
            approval_id=limits.approved[place] if by_approval else "",
            by_approval=by_approval,
        )
        for check in CHECKS:
            decision = check(decision, limits, decisions)
            if not decision.runs:
                break
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
            if decision.runs and (decision.action in _OUTWARD or is_tool_action(decision.action))
            for text in texts_to_guard(decision)
        )
    )


def texts_to_guard(decision: Decision) -> Iterator[str]:
    """Yield every text of a decision that boundaries are compared with; for a tool, the names of its arguments too.

    A tool may take arguments of any name, so a name can carry what the agent says.
    """
    yield from texts_of(decision.params, names=is_tool_action(decision.action))


def texts_of(value: Any, *, names: bool = False, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield every text in an action's parameters; with `names`, the names of the parameters too."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif depth and isinstance(value, dict):
        for name, item in value.items():
            if names and name.strip():
                yield name
            yield from texts_of(item, names=names, depth=depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item, names=names, depth=depth - 1)


def _params(decisions: Sequence[Decision], names: Mapping[str, str]) -> list[str]:
    return [
        str(decision.params[names[decision.action]])
        for decision in decisions
        if decision.runs and decision.action in names and decision.params[names[decision.action]] is not None
    ]


def _check_known(decision: Decision, limits: DecisionLimits, _: Sequence[Decision]) -> Decision:
    name = decision.action
    if name in ACTIONS or name in limits.tools or (name in limits.missing and name in limits.allowed):
        return decision
    return refuse(
        decision, DecisionVerdict.UNKNOWN, f"there is no action {name!r}{POSSIBLE}{_possible(limits)}"
    )


def _check_authorized(decision: Decision, limits: DecisionLimits, earlier: Sequence[Decision]) -> Decision:
    name = decision.action
    if limits.authorization is None:
        if name in limits.allowed:
            return decision
        reason = f"no grant of yours covers {name}{POSSIBLE}{_possible(limits)}"
        return refuse(decision, DecisionVerdict.NOT_AUTHORIZED, reason)
    authorization = limits.authorization(
        decision, [previous.capability_id for previous in earlier if previous.runs]
    )
    if authorization.granted:
        return decision.model_copy(update={"capability_id": authorization.capability_id})
    return deny(decision, authorization, possible=_possible(limits))


def _check_available(decision: Decision, limits: DecisionLimits, _: Sequence[Decision]) -> Decision:
    name = decision.action
    if missing := limits.missing.get(name):
        return refuse(decision, DecisionVerdict.UNAVAILABLE, f"{name} is not possible here: {missing}")
    return decision


def _check_parameters(decision: Decision, limits: DecisionLimits, _: Sequence[Decision]) -> Decision:
    """Check and complete the parameters, and set the price."""
    tool, spec = limits.tools.get(decision.action), ACTIONS.get(decision.action)
    if tool is not None:
        # Texts of JSON are parsed by now, and may have hidden what the tool gets.
        checked = _check_tool(decision, tool)
        return limits.reflexes(checked) if checked.runs else checked
    assert spec is not None, "known, and available"
    # Under a strict schema, a model writes null for a parameter that it leaves out.
    present = {key: value for key, value in decision.params.items() if value is not None}
    try:
        params = spec.params.model_validate(present)
    except ValidationError as error:
        return refuse(decision, DecisionVerdict.INVALID, _explain(error))
    fields, unused = spec.params.model_fields, params.unused
    return decision.model_copy(
        update={
            "params": params.model_dump(mode="json") | {name: fields[name].default for name in unused},
            "cost": limits.budget.price(spec),
            "ignored": list(params.ignored(present)),
        }
    )


def _check_tool(decision: Decision, offer: ActionOffer) -> Decision:
    assert offer.tool is not None
    try:
        arguments = read_arguments(decision.params, offer.tool.arguments)
    except Invalid as error:
        return refuse(decision, DecisionVerdict.INVALID, str(error))
    if fault := arguments_fault(arguments, offer.tool.arguments):
        return refuse(decision, DecisionVerdict.INVALID, fault)
    return decision.model_copy(update={"params": arguments, "cost": offer.cost})


def _check_cooling(decision: Decision, limits: DecisionLimits, earlier: Sequence[Decision]) -> Decision:
    name = decision.action
    reason = limits.cooling.get(name)
    if not reason and name == REACH_OUT_USER:
        repeated = any(previous.runs and previous.action == name for previous in earlier)
        reason = "one message to your user is enough for one heartbeat" if repeated else ""
    return refuse(decision, DecisionVerdict.TOO_SOON, reason) if reason else decision


def _check_number(decision: Decision, limits: DecisionLimits, earlier: Sequence[Decision]) -> Decision:
    if sum(previous.runs for previous in earlier) >= limits.most:
        return refuse(
            decision, DecisionVerdict.TOO_MANY, f"a round trip has at most {counted(limits.most, 'action')}"
        )
    return decision


def _check_energy(decision: Decision, limits: DecisionLimits, earlier: Sequence[Decision]) -> Decision:
    energy, budget = limits.energy, limits.budget
    for previous in earlier:
        energy = budget.spend(energy, previous.cost) if previous.runs else energy
    if energy >= decision.cost:
        return decision
    is_one = energy == 1 or budget.kind is BudgetKind.ENERGY
    left = f"{amount_text(energy, budget.unit)} {'is' if is_one else 'are'} left"
    reason = f"{decision.action} costs {decision.cost}, {left}"
    return refuse(decision, DecisionVerdict.TOO_LITTLE_ENERGY, reason)


#: One rule: returns the decision, refused if the rule refuses it. The last argument is the earlier decisions of the round trip.
type Check = Callable[[Decision, DecisionLimits, Sequence[Decision]], Decision]
#: In this order; no further check sees a refused decision.
CHECKS: tuple[Check, ...] = (
    lambda decision, limits, _: limits.reflexes(decision),
    _check_known,
    _check_authorized,
    _check_available,
    _check_parameters,
    lambda decision, limits, _: limits.boundaries(decision),
    lambda decision, limits, earlier: limits.trust(decision, earlier),
    _check_cooling,
    _check_number,
    _check_energy,
)


def _possible(limits: DecisionLimits) -> str:
    known = (*ACTIONS, *limits.tools)
    names = [name for name in known if name in limits.allowed and name not in limits.missing]
    return ", ".join(names) or "none"


def refuse(decision: Decision, verdict: DecisionVerdict, reason: str) -> Decision:
    """Return the decision, refused."""
    return decision.model_copy(update={"verdict": verdict, "reason": reason, "cost": 0})


def deny(decision: Decision, authorization: Authorization, *, possible: str = "") -> Decision:
    """Return the decision, refused because no grant authorizes the action."""
    reason = authorization.reason + (f"{POSSIBLE}{possible}" if possible else "")
    denied = refuse(decision, DecisionVerdict.NOT_AUTHORIZED, reason)
    return denied.model_copy(update={"why": authorization, "capability_id": ""})


def _explain(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}" for fault in faults)

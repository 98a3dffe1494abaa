"""The reply of a model: its parts, and how each field is read and described in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field

from arbor.goals.plans import MAX_DEPENDENCIES, MAX_ESTIMATE, STEP_LENGTH
from arbor.goals.values import (
    DESCRIPTION_LENGTH,
    MAX_NEW_PER_HEARTBEAT,
    GoalLayer,
    GoalSource,
    GoalState,
    as_title,
)
from arbor.goals.values import NOTE_LENGTH as GOAL_NOTE_LENGTH
from arbor.heartbeat.replies.items import ID_LENGTH, Item, places
from arbor.selves.values import TEXT_LENGTH as INSIGHT_LENGTH
from arbor.selves.values import AspectKind
from arbor.tools.names import ACTION_LENGTH

# The most items of each kind in one reply. Three intentions: the origin of seed 000.
MAX_ACTIONS = 10
MAX_INTENTIONS = 3

# A reply has at least one of these keys (the origin of seed 000).
REQUIRED_KEYS = ("thinking", "actions", "memory_notes", "goal_updates")
# The keys that every prompt asks for, and those that a prompt asks for only where the situation has something to decide.
COMMON_KEYS = (*REQUIRED_KEYS, "new_goals", "concerns", "curiosity")
FURTHER_KEYS = ("decompositions", "proposal_decisions", "identity_insights", "peer_notes", "resolved")
REPLY_KEYS = (*COMMON_KEYS, *FURTHER_KEYS)

#: The most items by key; seed 000, 2: at most 20 proposals are pending.
MOST: Mapping[str, int] = {
    "actions": MAX_ACTIONS,
    "memory_notes": 10,
    "goal_updates": 10,
    "new_goals": MAX_NEW_PER_HEARTBEAT,
    "concerns": 5,
    "curiosity": 10,
    "decompositions": 3,
    "proposal_decisions": 20,
    "identity_insights": 5,
    "peer_notes": 5,
    "resolved": 10,
}

# Characters of texts by their kind.
NAME_LENGTH = 40
TITLE_LENGTH = 200
LINE_LENGTH = 500
REASON_LENGTH = 1_000
NOTE_LENGTH = 4_000

#: The blocker of a goal that can go on again.
NO_BLOCKER = "nothing"

type Share = Annotated[float, Field(ge=0, le=1)]
type Ticks = Annotated[int, Field(ge=0, le=MAX_ESTIMATE)]
type Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldForm:
    """The reader of a field, which returns None for a missing or invalid value, and the field's JSON schema."""

    read: Callable[[Item, str], Any]
    schema: Schema


def one_of(values: type[StrEnum] | list[str]) -> Schema:
    return {"type": "string", "enum": [str(value) for value in values]}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(schema: Schema, most: int) -> Schema:
    return {"type": "array", "items": schema, "maxItems": most}


def _text(longest: int, schema: Schema = MAYBE_TEXT) -> FieldForm:
    return FieldForm(read=lambda item, key: item.text(key, longest), schema=schema)


def _id(longest: int = ID_LENGTH, schema: Schema = MAYBE_TEXT) -> FieldForm:
    return FieldForm(read=lambda item, key: item.identifier(key, longest), schema=schema)


def _blocker(item: Item, key: str) -> str | None:
    blocker = item.identifier(key, LINE_LENGTH)
    return "" if blocker is not None and blocker.strip(" .").casefold() == NO_BLOCKER else blocker


def _choice(kind: type[StrEnum], schema: Schema | None = None, **synonyms: StrEnum) -> FieldForm:
    return FieldForm(read=lambda item, key: item.choice(key, kind, synonyms), schema=schema or one_of(kind))


def _lines(most: int, longest: int) -> FieldForm:
    return FieldForm(read=lambda item, key: item.lines(key, most, longest), schema=list_of(TEXT, most))


_SHARE = FieldForm(read=Item.share, schema={"type": ["number", "null"], "description": "0 to 1"})
_TICKS = FieldForm(
    read=lambda item, key: item.whole(key, MAX_ESTIMATE),
    schema={"type": ["integer", "null"], "description": "heartbeats it may take"},
)


class ReplyPart(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A part of a reply."""


class ProposedAction(ReplyPart):
    """A proposed action, not validated yet."""

    action: str
    params: dict[str, Any] = {}
    reasoning: str = ""
    goal_id: str | None = None
    #: The intent that this action carries out.
    intent_id: str | None = None


class MemoryNote(ReplyPart):
    """A text to remember, and the day it is about."""

    text: Annotated[str, _text(NOTE_LENGTH, TEXT)]
    referenced_date: Annotated[
        date | None, FieldForm(read=Item.day, schema=MAYBE_TEXT | {"description": "YYYY-MM-DD"})
    ] = None


class GoalUpdate(ReplyPart):
    """A change of a goal: progress (0 to 1), a note, a new state and its reason."""

    goal_id: Annotated[str, _id(schema=TEXT)]
    progress: Annotated[Share | None, _SHARE] = None
    note: Annotated[str | None, _text(GOAL_NOTE_LENGTH)] = None
    state: Annotated[GoalState | None, _choice(GoalState, nullable(one_of(GoalState)))] = None
    reason: Annotated[str | None, _text(REASON_LENGTH)] = None
    #: The id of another goal, or words; empty: nothing blocks it any more.
    blocked_by: Annotated[str | None, FieldForm(read=_blocker, schema=MAYBE_TEXT)] = None
    #: Dependencies of the goal's plan that are met, in its words.
    met: Annotated[list[str], _lines(MAX_DEPENDENCIES, STEP_LENGTH)] = []


class ProposedGoal(ReplyPart):
    """A proposed goal."""

    title: Annotated[
        str,
        FieldForm(read=lambda item, key: as_title(item.text(key, TITLE_LENGTH) or ""), schema=TEXT),
    ]
    description: Annotated[str, _text(DESCRIPTION_LENGTH, TEXT)] = ""
    layer: Annotated[GoalLayer, _choice(GoalLayer)] = GoalLayer.OBJECTIVE
    source: Annotated[GoalSource, _choice(GoalSource)] = GoalSource.CURIOSITY
    parent_goal_id: Annotated[str | None, _id()] = None
    deadline: Annotated[
        datetime | None,
        FieldForm(
            read=Item.moment,
            schema=MAYBE_TEXT | {"description": "YYYY-MM-DD or YYYY-MM-DDTHH:MM, UTC"},
        ),
    ] = None
    #: 0 to 1.
    expected_reward: Annotated[Share | None, _SHARE] = None


class Intention(ReplyPart):
    """One step towards a goal (seed 003, 3.8)."""

    action: Annotated[str, _text(ACTION_LENGTH, TEXT)]
    description: Annotated[str, _text(LINE_LENGTH, TEXT)]
    precondition: Annotated[str | None, _text(LINE_LENGTH)] = None
    postcondition: Annotated[str | None, _text(LINE_LENGTH)] = None
    estimated_ticks: Annotated[Ticks | None, _TICKS] = None
    #: The id of the procedure that the step follows: its outcomes are counted.
    follows: Annotated[str | None, _id()] = None


class Decomposition(ReplyPart):
    """The steps of a goal, with estimates (seed 003, 3.8)."""

    goal_id: Annotated[str, _id(schema=TEXT)]
    intentions: Annotated[list[Intention], Field(max_length=MAX_INTENTIONS)]
    estimated_ticks: Annotated[Ticks | None, _TICKS] = None
    #: In energy.
    estimated_cost: Annotated[
        Annotated[float, Field(ge=0)] | None,
        FieldForm(read=Item.amount, schema={"type": ["number", "null"], "description": "in energy"}),
    ] = None
    #: 0 to 1, higher is riskier.
    risk: Annotated[Share | None, _SHARE] = None
    #: One line each.
    dependencies: Annotated[list[str], _lines(MAX_DEPENDENCIES, STEP_LENGTH)] = []


class ProposalChoice(StrEnum):
    """The decisions about a proposal (seed 000, 5)."""

    #: The proposal becomes part of the self.
    ACCEPT = "accept"
    #: The proposal changes nothing, and leaves the queue.
    REJECT = "reject"
    #: The proposal stays in the queue.
    DEFER = "defer"


class ProposalDecision(ReplyPart):
    """The decision about a proposal."""

    proposal_id: Annotated[str, _id(schema=TEXT)]
    decision: Annotated[
        ProposalChoice,
        _choice(
            ProposalChoice,
            accepted=ProposalChoice.ACCEPT,
            approve=ProposalChoice.ACCEPT,
            approved=ProposalChoice.ACCEPT,
            rejected=ProposalChoice.REJECT,
            decline=ProposalChoice.REJECT,
            deferred=ProposalChoice.DEFER,
            later=ProposalChoice.DEFER,
        ),
    ]
    reason: Annotated[str, _text(REASON_LENGTH, TEXT)] = ""


class InsightKind(StrEnum):
    """The subject of an insight: an aspect (`AspectKind`) or a preference."""

    SELF_CONCEPT = AspectKind.SELF_CONCEPT.value
    AGENCY = AspectKind.AGENCY.value
    PURPOSE = AspectKind.PURPOSE.value
    VALUE = AspectKind.VALUE.value
    EMOTIONAL_BASELINE = AspectKind.EMOTIONAL_BASELINE.value
    THREAT_SENSITIVITY = AspectKind.THREAT_SENSITIVITY.value
    CHANGE_RESISTANCE = AspectKind.CHANGE_RESISTANCE.value
    TRAIT = AspectKind.TRAIT.value
    CAPABILITY = AspectKind.CAPABILITY.value
    #: A preference, whose content is `key: value`.
    PREFERENCE = "preference"


class IdentityInsight(ReplyPart):
    """An insight of the agent into itself; `evidence` are ids of memories."""

    kind: Annotated[
        InsightKind,
        _choice(
            InsightKind,
            values=InsightKind.VALUE,
            traits=InsightKind.TRAIT,
            identity=InsightKind.SELF_CONCEPT,
            skill=InsightKind.CAPABILITY,
        ),
    ]
    content: Annotated[str, _text(INSIGHT_LENGTH, TEXT)]
    confidence: Annotated[Share | None, _SHARE] = None
    evidence: Annotated[list[str], _lines(10, ID_LENGTH)] = []


class PeerOutcome(StrEnum):
    """The outcome of dealing with a peer."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


class PeerNote(ReplyPart):
    """A note about a peer (seed 003, 3.6); `peer` is the shown name."""

    peer: Annotated[str, _id(schema=TEXT | {"description": "name, as you see it"})]
    outcome: Annotated[
        PeerOutcome,
        _choice(
            PeerOutcome,
            succeeded=PeerOutcome.SUCCESS,
            failed=PeerOutcome.FAILURE,
            mixed=PeerOutcome.PARTIAL,
        ),
    ]
    competence: Annotated[Share | None, _SHARE] = None
    reliability: Annotated[Share | None, _SHARE] = None
    interests: Annotated[list[str], _lines(10, NAME_LENGTH)] = []


class Reply(ReplyPart):
    """A heartbeat's decision. The fields are the keys of `REPLY_KEYS`, and `item_paths`."""

    thinking: str = ""
    actions: list[ProposedAction] = []
    memory_notes: list[MemoryNote] = []
    goal_updates: list[GoalUpdate] = []
    new_goals: Annotated[list[ProposedGoal], Field(max_length=MAX_NEW_PER_HEARTBEAT)] = []
    concerns: list[str] = []
    curiosity: list[str] = []
    decompositions: list[Decomposition] = []
    proposal_decisions: list[ProposalDecision] = []
    identity_insights: list[IdentityInsight] = []
    peer_notes: list[PeerNote] = []
    #: Settled concerns and questions, in the shown words.
    resolved: list[str] = []
    #: Paths of items in the model's text, by the path of their list, where they are not their places in this reply.
    item_paths: dict[str, list[str]] = {}

    def paths_of(self, path: str, items: Sequence[Any]) -> list[str]:
        """Return the paths of the items of a list, by the path of the list, such as `new_goals` or `goal_updates[0].met`."""
        return self.item_paths.get(path, places(path, len(items)))[: len(items)]

    def with_only(self, key: str, indexes: Sequence[int]) -> Reply:
        """Return the reply with only some items of a list, which keep their paths."""
        items: Sequence[Any] = getattr(self, key)
        paths = self.paths_of(key, items)
        return self.model_copy(
            update={
                key: [items[index] for index in indexes],
                "item_paths": {**self.item_paths, key: [paths[index] for index in indexes]},
            }
        )


@cache
def forms_of(part: type[ReplyPart]) -> dict[str, FieldForm]:
    """Return the forms of the fields that have one."""
    return {
        name: form
        for name, field in part.model_fields.items()
        for form in field.metadata
        if isinstance(form, FieldForm)
    }

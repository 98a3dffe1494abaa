"""What a model answers at a heartbeat, and the JSON schema it is asked to keep to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.actions import ACTIONS, ActionRegistry, ActionSpec

# At most so many of each in one reply. Three new goals and three intentions: the origin of seed 000; the rest is ours,
# so that a model that rambles is cut off.
MAX_ACTIONS = 10
MAX_MEMORY_NOTES = 10
MAX_GOAL_UPDATES = 10
MAX_NEW_GOALS = 3
MAX_CONCERNS = 5
MAX_CURIOSITY = 10
MAX_DECOMPOSITIONS = 3
MAX_INTENTIONS = 3

# At least one of these must be there for a JSON object to be a reply (the origin of seed 000).
REQUIRED_KEYS = ("thinking", "actions", "memory_notes", "goal_updates")
OPTIONAL_KEYS = ("new_goals", "concerns", "curiosity", "decompositions")
REPLY_KEYS = (*REQUIRED_KEYS, *OPTIONAL_KEYS)

SCHEMA_NAME = "heartbeat_reply"


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ProposedAction(Part):
    """An action the model wants; nothing about it is checked yet but its form."""

    action: str
    params: dict[str, Any] = {}
    reasoning: str = ""
    goal_id: str | None = None
    #: The intent that this action carries out.
    intent_id: str | None = None


class MemoryNote(Part):
    """Something to remember; the date is the day it is about."""

    text: str
    referenced_date: date | None = None


class GoalUpdate(Part):
    """What happened to a goal: how far it is (0 to 1), a note, a move in the backlog and why."""

    goal_id: str
    progress: Annotated[float, Field(ge=0, le=1)] | None = None
    note: str | None = None
    state: GoalState | None = None
    reason: str | None = None


class NewGoal(Part):
    """A goal the model wants to take up."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.CURIOSITY
    parent_goal_id: str | None = None


class Intention(Part):
    """One step towards a goal: which action, and what for."""

    action: str
    description: str


class Decomposition(Part):
    """A goal broken into steps."""

    goal_id: str
    intentions: Annotated[list[Intention], Field(max_length=MAX_INTENTIONS)]


class Reply(Part):
    """A heartbeat's decision."""

    thinking: str = ""
    actions: list[ProposedAction] = []
    memory_notes: list[MemoryNote] = []
    goal_updates: list[GoalUpdate] = []
    new_goals: Annotated[list[NewGoal], Field(max_length=MAX_NEW_GOALS)] = []
    concerns: list[str] = []
    curiosity: list[str] = []
    decompositions: list[Decomposition] = []


def reply_schema(registry: ActionRegistry, allowed: Collection[str]) -> dict[str, Any]:
    """Return the JSON schema of a reply that may use these actions.

    It keeps to what OpenAI's strict mode and llama.cpp's grammars both take: every key required, no further keys, a
    missing value is null, one alternative with typed parameters for each action, no limits on lengths or numbers
    (those are in the descriptions; the parser holds them). `thinking` comes first, so that a model thinks before it
    acts.
    """
    specs = [spec for name, spec in registry.items() if name in allowed]
    names = [spec.name for spec in specs]
    intention = _closed(action=_one_of(names), description=_TEXT)
    return _closed(
        thinking=_described(_TEXT, "what you think, in a few sentences"),
        actions=_list(
            {"anyOf": [_action(spec) for spec in specs]} if specs else _TEXT, MAX_ACTIONS if specs else 0
        ),
        memory_notes=_list(_closed(text=_TEXT, referenced_date=_DATE), MAX_MEMORY_NOTES),
        goal_updates=_list(
            _closed(
                goal_id=_TEXT,
                progress=_described({"type": ["number", "null"]}, "0 to 1"),
                note=_MAYBE_TEXT,
                state=_maybe(_one_of(list(GoalState))),
                reason=_MAYBE_TEXT,
            ),
            MAX_GOAL_UPDATES,
        ),
        new_goals=_list(
            _closed(
                title=_TEXT,
                description=_TEXT,
                layer=_one_of(list(GoalLayer)),
                source=_one_of(list(GoalSource)),
                parent_goal_id=_MAYBE_TEXT,
            ),
            MAX_NEW_GOALS,
        ),
        concerns=_list(_TEXT, MAX_CONCERNS),
        curiosity=_list(_TEXT, MAX_CURIOSITY),
        decompositions=_list(
            _closed(goal_id=_TEXT, intentions=_list(intention, MAX_INTENTIONS)),
            MAX_DECOMPOSITIONS if specs else 0,
        ),
    )


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_DATE: dict[str, Any] = {"type": ["string", "null"], "description": "YYYY-MM-DD"}


@lru_cache
def _action(spec: ActionSpec) -> dict[str, Any]:
    return _closed(
        action=_one_of([spec.name]),
        params=_params(spec),
        reasoning=_TEXT,
        goal_id=_MAYBE_TEXT,
        intent_id=_MAYBE_TEXT,
    )


def _params(spec: ActionSpec) -> dict[str, Any]:
    """Derive the parameters' schema from their model; one that may be left out may be null."""
    written = spec.params.model_json_schema()
    required = written.get("required", ())
    fields: dict[str, dict[str, Any]] = {}
    for name, field in written.get("properties", {}).items():
        whole = {**field, **written.get("$defs", {}).get(field.get("$ref", "").rpartition("/")[2], {})}
        kind = {key: whole[key] for key in ("type", "enum") if key in whole}
        fields[name] = _described(kind if name in required else _maybe(kind), spec.offer().params[name])
    return _closed(**fields)


def _closed(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


def _one_of(values: list[str]) -> dict[str, Any]:
    return {"type": "string", "enum": [str(value) for value in values]}


def _maybe(kind: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def _described(kind: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


REPLY_SCHEMA: dict[str, Any] = reply_schema(ACTIONS, tuple(ACTIONS))

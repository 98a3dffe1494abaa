"""The JSON schema of replies, for providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import get_args

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.reply import (
    COMMON_KEYS,
    FURTHER_KEYS,
    MAX_INTENTIONS,
    MAYBE_TEXT,
    MOST,
    REPLY_KEYS,
    TEXT,
    Decomposition,
    Intention,
    Reply,
    ReplyPart,
    Schema,
    forms_of,
    list_of,
    nullable,
    one_of,
)
from arbor.heartbeat.situation import Mode, Situation
from arbor.selves.proposals import PROPOSALS_SHOWN
from arbor.tools.schemas import asked_arguments

SCHEMA_NAME = "heartbeat_reply"
# There is one schema for each set of permitted actions.
CACHED_SCHEMAS = 256
#: Keys whose items depend on the agent's actions.
_OF_ACTIONS = ("actions", "decompositions")


def asked_keys(situation: Situation) -> tuple[str, ...]:
    """Return the keys of a reply to this situation, for the prompt and the schema."""
    memory = situation.working_memory
    wanted = {
        "decompositions": bool(situation.goals and situation.actions),
        "proposal_decisions": bool(situation.proposals),
        # An agent that decides about none of its proposals would only replace one by another.
        "identity_insights": situation.mode in (Mode.CONSOLIDATION, Mode.REFLECTION)
        and len(situation.proposals) < PROPOSALS_SHOWN,
        "peer_notes": bool(situation.peers or any(percept.peer for percept in situation.percepts)),
        "resolved": bool(memory.concerns or memory.curiosity),
    }
    return (*COMMON_KEYS, *(key for key in FURTHER_KEYS if wanted[key]))


def reply_schema(
    allowed: Collection[str], keys: Sequence[str] = REPLY_KEYS, tools: Mapping[str, Schema] | None = None
) -> Schema:
    """Return the JSON schema of a reply that may use these actions and has these keys.

    OpenAI's strict mode and llama.cpp's grammars accept the schema: every key required, no further keys, null for missing
    values, one alternative for each action, no limits on texts or numbers (the parser checks them). `thinking` is
    first, so that a model thinks before it acts. `tools` are the schemas of tools' arguments, by action.
    """
    names = tuple(name for name in ACTIONS if name in allowed)
    parts = _parts_with_tools(names, tools) if tools else _parts(names)
    return _closed_object(**{key: parts[key] for key in keys})


@lru_cache(maxsize=CACHED_SCHEMAS)
def _parts(actions: tuple[str, ...]) -> Mapping[str, Schema]:
    return _parts_with_tools(actions, {})


def _parts_with_tools(actions: Sequence[str], tools: Mapping[str, Schema]) -> Mapping[str, Schema]:
    """Return the schemas by key of a reply that may use these actions and tools."""
    tool_items = [_action_item(name, asked_arguments(schema)) for name, schema in tools.items()]
    names = [*actions, *tools]
    intention = _part(Intention, action=one_of(names))
    items = {
        **_ITEMS,
        "actions": {"anyOf": [*map(_action, actions), *tool_items]} if names else TEXT,
        "decompositions": _part(Decomposition, intentions=list_of(intention, MAX_INTENTIONS)),
    }
    return {
        "thinking": TEXT | {"description": "what you think, in a few sentences"},
        **{key: list_of(item, MOST[key]) for key, item in items.items()},
        # Nothing can be done or planned without actions.
        **({} if names else {key: list_of(items[key], 0) for key in _OF_ACTIONS}),
    }


def _part(part: type[ReplyPart], **others: Schema) -> Schema:
    """Return the schema of a part; `others` are those of fields that depend on the agent's actions."""
    forms = forms_of(part)
    return _closed_object(**{name: others.get(name) or forms[name].schema for name in part.model_fields})


def _action_item(name: str, params: Schema) -> Schema:
    """Return the schema of an item of `actions`, from that of its parameters."""
    return _closed_object(
        action=one_of([name]), params=params, reasoning=TEXT, goal_id=MAYBE_TEXT, intent_id=MAYBE_TEXT
    )


@lru_cache
def _action(name: str) -> Schema:
    """Derive the schema of an action from the model of its parameters; optional ones may be null."""
    written = ACTIONS[name].params.model_json_schema()
    required, kinds = written.get("required", ()), written.get("$defs", {})
    fields: dict[str, Schema] = {}
    for param, field in written.get("properties", {}).items():
        # Pydantic writes an optional value as `anyOf` of a schema and null: use the former.
        whole = field | next(iter(field.get("anyOf", ())), {})
        whole |= kinds.get(whole.get("$ref", "").rpartition("/")[2], {})
        kind = {key: whole[key] for key in ("type", "enum", "items", "maxItems") if key in whole}
        if kind.get("items", {}).get("type") == "string":
            kind["items"] = TEXT
        described = {"description": field["description"]}
        fields[param] = (kind if param in required else nullable(kind)) | described
    return _action_item(name, _closed_object(**fields))


def _closed_object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# Schemas of the items that are the same for every agent.
_ITEMS: Mapping[str, Schema] = {
    key: TEXT if part is str else _part(part)
    for key in REPLY_KEYS
    for part in get_args(Reply.model_fields[key].annotation)
    if key not in _OF_ACTIONS
}

"""The JSON schema of replies, for providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.actions import ACTIONS, ActionRegistry, ActionSpec
from arbor.heartbeat.reply import (
    COMMON_KEYS,
    FURTHER_KEYS,
    MAX_ACTIONS,
    MAX_CONCERNS,
    MAX_CURIOSITY,
    MAX_DECOMPOSITIONS,
    MAX_DEPENDENCIES,
    MAX_EVIDENCE,
    MAX_GOAL_UPDATES,
    MAX_IDENTITY_INSIGHTS,
    MAX_INTENTIONS,
    MAX_INTERESTS,
    MAX_MEMORY_NOTES,
    MAX_NEW_GOALS,
    MAX_PEER_NOTES,
    MAX_PROPOSAL_DECISIONS,
    MAX_RESOLVED,
    REPLY_KEYS,
    InsightKind,
    PeerOutcome,
    ProposalChoice,
)
from arbor.heartbeat.situation import Mode, Situation

SCHEMA_NAME = "heartbeat_reply"
# One for each set of permitted actions.
CACHED_SCHEMAS = 256


def asked_keys(situation: Situation) -> tuple[str, ...]:
    """Return the keys of a reply to this situation, for the prompt and the schema."""
    memory = situation.working_memory
    wanted = {
        "decompositions": bool(situation.goals and situation.actions),
        "proposal_decisions": bool(situation.proposals),
        "identity_insights": situation.mode in (Mode.CONSOLIDATION, Mode.REFLECTION),
        "peer_notes": bool(situation.peers or any(percept.peer for percept in situation.percepts)),
        "resolved": bool(memory.concerns or memory.curiosity),
    }
    return (*COMMON_KEYS, *(key for key in FURTHER_KEYS if wanted[key]))


def reply_schema(
    registry: ActionRegistry, allowed: Collection[str], keys: Sequence[str] = REPLY_KEYS
) -> dict[str, Any]:
    """Return the JSON schema of a reply that may use these actions and has these keys.

    Accepted by OpenAI's strict mode and llama.cpp's grammars: every key required, no further keys, null for missing
    values, one alternative for each action, no limits on lengths or numbers (the parser checks them). `thinking` is
    first, so that a model thinks before it acts.
    """
    names = tuple(name for name in registry if name in allowed)
    parts = _parts(tuple(registry[name] for name in names))
    return _closed(**{key: parts[key] for key in keys})


@lru_cache(maxsize=CACHED_SCHEMAS)
def _parts(specs: tuple[ActionSpec, ...]) -> Mapping[str, Mapping[str, Any]]:
    """Return the schemas by key of a reply that may use these actions."""
    intention = _closed(
        action=_one_of([spec.name for spec in specs]),
        description=_TEXT,
        precondition=_MAYBE_TEXT,
        postcondition=_MAYBE_TEXT,
        estimated_ticks=_MAYBE_TICKS,
    )
    return {
        "thinking": _described(_TEXT, "what you think, in a few sentences"),
        "actions": _list(
            {"anyOf": [_action(spec) for spec in specs]} if specs else _TEXT, MAX_ACTIONS if specs else 0
        ),
        "decompositions": _list(
            _closed(
                goal_id=_TEXT,
                intentions=_list(intention, MAX_INTENTIONS),
                estimated_ticks=_MAYBE_TICKS,
                estimated_cost=_described(_MAYBE_NUMBER, "in energy"),
                risk=_MAYBE_SHARE,
                dependencies=_list(_TEXT, MAX_DEPENDENCIES),
            ),
            MAX_DECOMPOSITIONS if specs else 0,
        ),
        **_PARTS,
    }


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_DATE: dict[str, Any] = {"type": ["string", "null"], "description": "YYYY-MM-DD"}
_MOMENT: dict[str, Any] = {"type": ["string", "null"], "description": "YYYY-MM-DD or YYYY-MM-DDTHH:MM, UTC"}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_MAYBE_SHARE: dict[str, Any] = {"type": ["number", "null"], "description": "0 to 1"}
_MAYBE_TICKS: dict[str, Any] = {"type": ["integer", "null"], "description": "heartbeats it may take"}


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
    """Derive the schema from the model of the parameters; optional ones may be null."""
    written = spec.params.model_json_schema()
    required = written.get("required", ())
    fields: dict[str, dict[str, Any]] = {}
    for name, field in written.get("properties", {}).items():
        whole = {**field, **written.get("$defs", {}).get(field.get("$ref", "").rpartition("/")[2], {})}
        kind = {key: whole[key] for key in ("type", "enum", "items", "maxItems") if key in whole}
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


# Schemas of the keys that are the same for every agent.
_PARTS: Mapping[str, Mapping[str, Any]] = {
    "memory_notes": _list(_closed(text=_TEXT, referenced_date=_DATE), MAX_MEMORY_NOTES),
    "goal_updates": _list(
        _closed(
            goal_id=_TEXT,
            progress=_MAYBE_SHARE,
            note=_MAYBE_TEXT,
            state=_maybe(_one_of(list(GoalState))),
            reason=_MAYBE_TEXT,
            blocked_by=_MAYBE_TEXT,
        ),
        MAX_GOAL_UPDATES,
    ),
    "new_goals": _list(
        _closed(
            title=_TEXT,
            description=_TEXT,
            layer=_one_of(list(GoalLayer)),
            source=_one_of(list(GoalSource)),
            parent_goal_id=_MAYBE_TEXT,
            deadline=_MOMENT,
            expected_reward=_MAYBE_SHARE,
        ),
        MAX_NEW_GOALS,
    ),
    "concerns": _list(_TEXT, MAX_CONCERNS),
    "curiosity": _list(_TEXT, MAX_CURIOSITY),
    "proposal_decisions": _list(
        _closed(proposal_id=_TEXT, decision=_one_of(list(ProposalChoice)), reason=_TEXT),
        MAX_PROPOSAL_DECISIONS,
    ),
    "identity_insights": _list(
        _closed(
            kind=_one_of(list(InsightKind)),
            content=_TEXT,
            confidence=_MAYBE_SHARE,
            evidence=_list(_TEXT, MAX_EVIDENCE),
        ),
        MAX_IDENTITY_INSIGHTS,
    ),
    "peer_notes": _list(
        _closed(
            peer=_described(_TEXT, "name, as you see it"),
            outcome=_one_of(list(PeerOutcome)),
            competence=_MAYBE_SHARE,
            reliability=_MAYBE_SHARE,
            interests=_list(_TEXT, MAX_INTERESTS),
        ),
        MAX_PEER_NOTES,
    ),
    "resolved": _list(_TEXT, MAX_RESOLVED),
}

#: The schema with all keys and all actions.
REPLY_SCHEMA: dict[str, Any] = reply_schema(ACTIONS, tuple(ACTIONS))

"""A recall's filter as conditions of an SQL statement.

A recall that is not filtered has none of them, and reads its index alone; most of them need the table.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from arbor.memory.concepts import concept_key
from arbor.memory.recall_request import RecallFilter

_OF_CONCEPT = """id IN (
    SELECT k.memory_id FROM memories_concept named
    JOIN memories_concept c ON c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s
        AND (c.id = named.id OR c.ancestors @> to_jsonb(named.id::text))
    JOIN memories_memoryconcept k ON k.tenant_id = %(tenant)s AND k.concept_id = c.id
    WHERE named.tenant_id = %(tenant)s AND named.agent_id = %(agent)s AND named.{name} = %({value})s
)"""
_CONDITIONS = {
    "types": "type = ANY(%(types)s::text[])",
    "since": "occurred_at >= %(since)s",
    "until": "occurred_at < %(until)s",
    "session": "session = %(session)s",
    "without": "session <> %(without)s",
    "min_importance": "importance >= %(min_importance)s",
    "min_trust": "trust >= %(min_trust)s",
    "episode": "episode_id = %(episode)s",
    "concept": _OF_CONCEPT.format(name="id", value="concept"),
    "concept_key": _OF_CONCEPT.format(name="key", value="concept_key"),
}


def filter_conditions(only: RecallFilter) -> tuple[str, dict[str, Any]]:
    """Return conditions, each after an AND, and their values."""
    values = {
        "types": [memory_type.value for memory_type in sorted(only.types)] or None,
        "since": only.since,
        "until": only.until,
        "session": only.session or None,
        "without": only.without_session or None,
        "min_importance": only.min_importance or None,
        "min_trust": only.min_trust or None,
        "episode": only.episode,
        "concept": only.concept if isinstance(only.concept, UUID) else None,
        "concept_key": concept_key(only.concept) if isinstance(only.concept, str) else None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return "".join(f" AND {_CONDITIONS[name]}" for name in given), given

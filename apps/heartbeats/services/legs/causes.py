"""Relations from a heartbeat that acted to the one that received the outcome."""

from __future__ import annotations

from collections.abc import Sequence

from apps.agents.models import PerceptKind
from apps.memories.services.store.provenance import ProvenanceRelation
from apps.tenants.encoding import to_json
from apps.tenants.statements import fetch
from arbor.goals.rows import GoalPerceptKind
from arbor.heartbeat.state import HeartbeatState
from arbor.memory.relations import Relation

_OUTCOMES = frozenset(GoalPerceptKind)

# For each percept about an outcome, the memory of the earlier heartbeat: of the one that sent the answered message, or else
# of the latest one before the percept.
_CAUSES = """
SELECT r.agent, cause.memory_id, r.memory, r.origin
FROM json_to_recordset(%(rows)s::json) AS r(agent uuid, memory uuid, origin text, percept uuid)
CROSS JOIN LATERAL (
    SELECT kind, at, detail FROM heartbeats_percept WHERE tenant_id = %(tenant)s AND id = r.percept LIMIT 1
) p
CROSS JOIN LATERAL (
    SELECT h.memory_id FROM heartbeats_heartbeat h
    WHERE h.tenant_id = %(tenant)s AND h.agent_id = r.agent AND h.status = 'done' AND h.memory_id IS NOT NULL
        AND h.started_at <= p.at AND (p.kind <> %(message)s OR h.id = (
            SELECT m.heartbeat_id FROM contacts_outboxmessage m
            WHERE m.tenant_id = %(tenant)s AND m.id = (p.detail->>'message')::uuid
        ))
    ORDER BY h.started_at DESC LIMIT 1
) cause
"""


def outcome_relations(heartbeats: Sequence[HeartbeatState]) -> list[ProvenanceRelation]:
    """Return a relation from each past action to the heartbeat that received its outcome: an answer, or an abandoned step.

    One statement; none if no heartbeat received an outcome.
    """
    rows = [
        {
            "agent": heartbeat.agent_id,
            "memory": heartbeat.memory_id,
            "origin": heartbeat.source,
            "percept": percept.id,
        }
        for heartbeat in heartbeats
        if heartbeat.memory_id is not None
        for percept in heartbeat.situation.percepts
        if percept.answers or percept.kind in _OUTCOMES
    ]
    found = fetch(_CAUSES, rows=to_json(rows), message=PerceptKind.USER_MESSAGE.value) if rows else ()
    return [
        ProvenanceRelation(
            agent_id=agent_id, source_id=cause, target_id=memory_id, relation=Relation.CAUSES, origin=origin
        )
        for agent_id, cause, memory_id, origin in found
    ]

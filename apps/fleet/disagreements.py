"""Find agents whose status, schedule and identity disagree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.db import connections

from apps.tenants.scope import OPS


class DisagreementKind(StrEnum):
    """A kind of disagreement between the rows of an agent."""

    #: The status is active and the identity neither suspended nor revoked, but the schedule is off or missing: the agent has no heartbeats.
    NO_HEARTBEATS = "no_heartbeats"
    #: The schedule is on, but the status is not active, or the identity is suspended or revoked: the heartbeats are skipped.
    NEEDLESS_HEARTBEATS = "needless_heartbeats"
    #: The System Authority has not endorsed the agent: it neither acts nor gets messages of other agents.
    NOT_ENDORSED = "not_endorsed"


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """Agents of one kind of disagreement: their number, and the first of them as `tenant/agent`."""

    kind: DisagreementKind
    agents: int
    first: tuple[str, ...]


#: Agents named of each kind.
_NAMED = 3
# A suspended identity has its schedule off, whatever the status of its agent. A schedule that is queued or running finishes first.
_DISAGREEMENTS = """
SELECT kind, count(*), (array_agg(name ORDER BY name))[1:%(named)s] FROM (
    SELECT t.slug || '/' || a.name AS name, unnest(ARRAY[
        CASE WHEN a.status = 'active' AND coalesce(s.state, 'off') = 'off' AND coalesce(e.status, 'active') = 'active'
            THEN 'no_heartbeats' END,
        CASE WHEN s.state = 'idle' AND (a.status <> 'active' OR e.status <> 'active') THEN 'needless_heartbeats' END,
        CASE WHEN e.agent_id IS NULL THEN 'not_endorsed' END
    ]) AS kind
    FROM agents_agent a JOIN tenants_tenant t ON t.id = a.tenant_id
    LEFT JOIN heartbeats_heartbeatschedule s ON s.tenant_id = a.tenant_id AND s.agent_id = a.id
    LEFT JOIN agents_agentendorsement e ON e.tenant_id = a.tenant_id AND e.agent_id = a.id
) found WHERE kind IS NOT NULL GROUP BY kind
"""


def find_disagreements() -> list[Disagreement]:
    """Return the disagreements of all tenants, none where all is well. One statement."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(_DISAGREEMENTS, {"named": _NAMED})
        found = {DisagreementKind(kind): (agents, tuple(first)) for kind, agents, first in cursor.fetchall()}
    return [
        Disagreement(kind=kind, agents=found[kind][0], first=found[kind][1])
        for kind in DisagreementKind
        if kind in found
    ]

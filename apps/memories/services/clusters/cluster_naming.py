"""Name or recluster a cluster on behalf of its agent; membership follows from the memories alone."""

from __future__ import annotations

from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.clusters.clusters import name_cluster
from apps.memories.services.graph.nodes import id_of
from apps.tenants.statements import change, fetch
from arbor.errors import NotFound

_FIND = """
SELECT id, name FROM memories_cluster
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND (id = %(id)s OR lower(name) = lower(%(name)s))
ORDER BY id = %(id)s DESC, id LIMIT 1
"""
_DISORDERED = "UPDATE memories_cluster SET stale = true WHERE tenant_id = %(tenant)s AND id = %(cluster)s"


def find_cluster(*, agent_id: UUID, named: str) -> tuple[UUID, str]:
    """Return id and name of a cluster of the agent, by its id or its name. Raises NotFound."""
    try:
        wanted = id_of(named)
    except NotFound:
        wanted = None
    rows = fetch(_FIND, agent=agent_id, id=wanted, name=named)
    if not rows:
        raise NotFound(f"there is no theme {named!r} of this agent")
    theme: tuple[UUID, str] = rows[0][0], rows[0][1]
    return theme


def rename(*, agent_id: UUID, theme: tuple[UUID, str], name: str, reason: str, actor: str) -> None:
    """Name a cluster: it keeps the name. Raises Invalid for one that is empty or too long."""
    name_cluster(cluster_id=theme[0], name=name)
    _record(agent_id, theme, actor, f"named a theme {name!r}: {reason}", {"from": theme[1], "to": name})


def put_in_order(*, agent_id: UUID, theme: tuple[UUID, str], reason: str, actor: str) -> None:
    """Mark a cluster stale, so that maintenance recomputes its centre and keywords from its memories."""
    change(_DISORDERED, cluster=theme[0])
    _record(agent_id, theme, actor, f"had the theme {theme[1]!r} put in order: {reason}", {})


def _record(
    agent_id: UUID, theme: tuple[UUID, str], actor: str, message: str, change_of_name: dict[str, str]
) -> None:
    record(
        action=AuditAction.MEMORIES_REVISED,
        actor=actor,
        agent_id=agent_id,
        message=message,
        detail={"cluster_id": str(theme[0]), "changes": {"name": change_of_name} if change_of_name else {}},
    )

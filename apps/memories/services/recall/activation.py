"""Activations: raised by the agent's own recalls, and read for its next heartbeat.

The table is an unlogged cache: after a crash of the database it is empty, and fills again as the agent recalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.recall import queries
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid
from arbor.memory.activation import (
    CLUSTERS_SHOWN,
    MAX_ACTIVE,
    ActiveCluster,
    ActiveMemory,
    fading_time,
    initial_levels,
)


def record_recall(*, agent_id: UUID, recalled: Mapping[UUID, float], now: datetime | None = None) -> int:
    """Record the memories that one agent has recalled, as `record_recalls` does; return how many memories it activated."""
    return record_recalls({agent_id: recalled}, now=now)


def record_recalls(recalled: Mapping[UUID, Mapping[UUID, float]], *, now: datetime | None = None) -> int:
    """Record the memories that agents themselves have recalled: for each agent, scores by memory id.

    Raises the activation of the memories and of their neighbors, counts the memories as used, and counts one activation of
    each of their clusters. Returns the number of memories whose activation was raised. In the open transaction, one
    statement for all agents; rows are written in the order of their ids, existing counts of use before new ones. Memories of
    other agents are ignored; raises Invalid for a score that is not finite.
    """
    agents: list[UUID] = []
    numbers: list[int] = []
    ids: list[UUID] = []
    levels: list[float] = []
    for agent_id, scores in recalled.items():
        if scores:
            agents.append(agent_id)
            present = initial_levels(scores)
            numbers += [len(agents)] * len(present)
            ids += present.keys()
            levels += present.values()
    if not agents:
        return 0
    return change(
        queries.RAISE_ACTIVATIONS, agents=agents, numbers=numbers, ids=ids, levels=levels, **_fading(now)
    )


def activated_memories(*, agent_id: UUID, limit: int = 20, now: datetime | None = None) -> list[ActiveMemory]:
    """Return the activated memories of an agent, the most activated first. One statement; changes nothing."""
    rows = fetch(queries.ACTIVE_MEMORIES, agent=agent_id, limit=_checked_limit(limit), **_fading(now))
    return [ActiveMemory(id=memory_id, level=level) for memory_id, level in rows]


def activated_clusters(
    *, agent_id: UUID, limit: int = CLUSTERS_SHOWN, now: datetime | None = None
) -> list[ActiveCluster]:
    """Return the activated clusters of an agent, the most activated first. One statement; changes nothing."""
    values = {**cluster_values(now), "most_clusters": _checked_limit(limit)}
    return [
        ActiveCluster(
            id=row[0],
            name=row[1],
            keywords=tuple(row[2]),
            emotional_valence=row[3],
            emotional_intensity=row[4],
            activation=row[5],
            members=row[6],
            related=tuple(row[7]),
        )
        for row in fetch(queries.ACTIVE_CLUSTERS, agent=agent_id, **values)
    ]


def cluster_values(now: datetime | None = None) -> dict[str, Any]:
    """Return the values of ACTIVE_CLUSTERS, besides the tenant and the agent."""
    return {**_fading(now), "most_clusters": CLUSTERS_SHOWN}


def trim_activations() -> JobRunResult:
    """Delete activations that have faded, and all but the MAX_ACTIVE highest of each agent."""
    faded = fading_time(settings.ARBOR_ACTIVATION_HALF_LIFE)
    waiting = queries.AGENTS_WITH_FADED.replace("{faded}", f"interval '{faded.total_seconds()} seconds'")
    return run_job("activations", waiting=waiting, step=_trim)


def _trim(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        return change(queries.DROP_FADED, agent=agent_id, **_fading(None))


def _fading(now: datetime | None) -> dict[str, Any]:
    return {"now": now, "half_life": settings.ARBOR_ACTIVATION_HALF_LIFE.total_seconds()}


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_ACTIVE:
        raise Invalid(f"a read of activations returns 1 to {MAX_ACTIVE}, asked for {limit}")
    return limit

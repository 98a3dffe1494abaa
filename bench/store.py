"""Memories stored per second: embedded, indexed and counted in term statistics."""

from __future__ import annotations

import time
from itertools import batched
from typing import Any

from apps.memories.services.store.remember import remember
from arbor.memory.values import MemoryType, NewMemory
from bench import minds
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import populate


def measure(
    _installation: Installation, *, memories: int, batch: int, agents: int, alone: bool
) -> dict[str, Any]:
    """Return memories per second through `remember`, one batch for one agent after the other.

    With `alone`, the memories are facts outside of sessions, each of which is compared with all others.
    """
    population = populate(agents=agents, tenants=1)
    turns = [
        NewMemory(
            content=turn.content,
            type=MemoryType.SEMANTIC if alone else MemoryType.EPISODIC,
            role=turn.role,
            session="" if alone else turn.session,
            position=0 if alone else turn.position,
            occurred_at=turn.occurred_at,
            source="bench",
        )
        for turn in minds.make_turns(memories + batch)
    ]
    first, *batches = batched(turns, batch, strict=False)
    # A first batch loads the embedder, opens the connection and plans the statements.
    remember(tenant_id=population[0].tenant_id, agent_id=population[0].agent_id, memories=first)
    print_progress(f"storing {memories} memories")
    ms = []
    started = time.perf_counter()
    for number, new_memories in enumerate(batches):
        agent = population[number % agents]
        begun = time.perf_counter()
        stored = remember(tenant_id=agent.tenant_id, agent_id=agent.agent_id, memories=new_memories)
        ms.append((time.perf_counter() - begun) * 1000)
        assert stored.stored == len(new_memories)
    took_s = time.perf_counter() - started
    return {
        "memories": sum(map(len, batches)),
        "batch": batch,
        "agents": agents,
        "alone": alone,
        "memories_per_s": round(sum(map(len, batches)) / took_s),
        "batch_ms_p50": quantile(ms, 0.5),
        "batch_ms_p95": quantile(ms, 0.95),
    }

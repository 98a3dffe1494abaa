"""The Python runtime (seed 003, 7): time to load a full agent, to store its working memory, and to run one tick."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from apps.fleet.runtime import Runtime
from arbor.errors import LimitReached
from arbor.goals.values import GoalState
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.runtime import NewGoal
from bench.support.figures import print_progress, quantile, times_ms
from bench.support.installation import Installation
from bench.support.population import ACTOR, BenchAgent, populate

#: Goals of a full agent, and heartbeats that it runs.
_GOALS = 50
_HEARTBEATS = 30
_THOUGHT = "The pier was rebuilt after the storm, and nobody has written down by whom. " * 10


def measure(_installation: Installation, *, rounds: int) -> dict[str, Any]:
    """Return the durations of loading and flushing a full agent, and of a heartbeat by rule in this process."""
    (agent,) = populate(agents=1, tenants=1)
    runtime = Runtime(tenant_id=agent.tenant_id, actor=ACTOR)
    ticks = _fill(runtime, agent)
    memory = _full_memory(runtime, agent)
    print_progress(f"loading and flushing {rounds} times")
    load = times_ms(lambda: runtime.load(agent.agent_id), rounds)
    flush = times_ms(lambda: runtime.flush_memory(agent.agent_id, memory), rounds)
    return {
        "rounds": rounds,
        "goals": len(runtime.goals(agent.agent_id).all),
        "load_ms": quantile(load, 0.5),
        "load_ms_p95": quantile(load, 0.95),
        "flush_ms": quantile(flush, 0.5),
        "flush_ms_p95": quantile(flush, 0.95),
        "tick_ms": quantile(ticks, 0.5),
        "tick_ms_p95": quantile(ticks, 0.95),
    }


def _fill(runtime: Runtime, agent: BenchAgent) -> list[float]:
    """Add goals until the backlog is full, and run heartbeats; return their durations, including the reflex policy."""
    print_progress("filling an agent")
    for number in range(_GOALS):
        try:
            runtime.inject_goal(
                agent.agent_id, NewGoal(title=f"Chart part {number} of the coast", state=GoalState.BACKBURNER)
            )
        except LimitReached:
            break
    return times_ms(lambda: runtime.tick(agent.agent_id), _HEARTBEATS)


def _full_memory(runtime: Runtime, agent: BenchAgent) -> WorkingMemory:
    memory = runtime.load(agent.agent_id).working_memory
    thoughts = [Thought(text=_THOUGHT, at=datetime.now(UTC))] * 10
    return memory.model_copy(update={"thoughts": thoughts})

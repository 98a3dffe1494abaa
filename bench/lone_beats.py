"""Lone heartbeats: one agent at a time beats while the fleet is otherwise idle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from celery import current_app

from apps.queues import QUEUE_OF, Task
from bench.population import Inhabitant
from bench.progress import say

#: Agents that take turns.
_AGENTS = 10
_POLL_S = 0.005
_GIVE_UP_AFTER_S = 60.0
#: An idle agent's beat is skipped at its first look; so many tries for each beat that is wanted.
_TRIES = 4

_MAKE_DUE = """
UPDATE heartbeats_heartbeatschedule SET next_due_at = now() WHERE agent_id = %s AND state = 'idle' RETURNING next_due_at
"""
_STATUS = """
SELECT status FROM heartbeats_heartbeat WHERE agent_id = %s AND slot_at = %s AND status IN ('done', 'failed', 'skipped')
"""


def lone_beats(
    database: psycopg.Connection[Any], population: Sequence[Inhabitant], *, beats: int, column: str
) -> list[float]:
    """Let agents beat one after another, each alone, until so many beats are done; return their own times in ms.

    The dispatcher is asked to tick at once, so nothing waits for its period. `column` of the heartbeat's row has the time.
    """
    say(f"measuring {beats} lone heartbeats")
    agents = [inhabitant.agent_id for inhabitant in population[:_AGENTS]]
    times: list[float] = []
    for turn in range(beats * _TRIES):
        agent_id = agents[turn % len(agents)]
        slot_at = database.execute(_MAKE_DUE, [agent_id]).fetchone()
        if slot_at is None:
            raise RuntimeError(f"the agent {agent_id} is not idle, and nothing else runs")
        current_app.send_task(Task.DISPATCH.value, queue=QUEUE_OF[Task.DISPATCH].value)
        if _wait(database, agent_id, slot_at[0]) == "done":
            query = f"SELECT {column} FROM heartbeats_heartbeat WHERE agent_id = %s AND slot_at = %s"
            times.extend(ms for (ms,) in database.execute(query, [agent_id, slot_at[0]]))
        if len(times) >= beats:
            break
    return times


def _wait(database: psycopg.Connection[Any], agent_id: UUID, slot_at: datetime) -> str:
    """Wait until the agent's heartbeat of this slot has ended; return its status."""
    deadline = time.monotonic() + _GIVE_UP_AFTER_S
    while time.monotonic() < deadline:
        row = database.execute(_STATUS, [agent_id, slot_at]).fetchone()
        if row is not None:
            return str(row[0])
        time.sleep(_POLL_S)
    raise RuntimeError(f"a lone heartbeat of the agent {agent_id} has not ended for {_GIVE_UP_AFTER_S:.0f} s")

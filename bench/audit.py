"""Check the rows of an idle fleet for lost and doubled work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import psycopg

from bench.fleet import DOUBLED
from bench.support.database import fetch_value, unpack_actions

#: An agent, and a time at which it was due.
type Slot = tuple[UUID, datetime]


class Fault(StrEnum):
    """The kind of fault that a check finds."""

    #: Something that should have happened has not, or will not.
    LOST = "lost"
    #: Something happened more than once, or sums do not add up.
    DOUBLED = "doubled"


@dataclass(frozen=True, kw_only=True)
class Check:
    """A statement that counts faults of one kind."""

    name: str
    fault: Fault
    statement: str


CHECKS: Sequence[Check] = (
    Check(
        name="agents not idle",
        fault=Fault.LOST,
        statement="SELECT count(*) FROM heartbeats_heartbeatschedule WHERE state <> 'idle'",
    ),
    Check(
        name="heartbeats still open",
        fault=Fault.LOST,
        statement="SELECT count(*) FROM heartbeats_heartbeat WHERE status IN ('running', 'waiting')",
    ),
    Check(
        name="calls still open",
        fault=Fault.LOST,
        statement="""
SELECT count(*) FROM calls_externalcall WHERE heartbeat_id IS NOT NULL AND status IN ('pending', 'running')
""",
    ),
    Check(
        name="heartbeats without a memory of themselves",
        fault=Fault.LOST,
        statement="""
SELECT count(*) FROM heartbeats_heartbeat h WHERE h.status = 'done' AND NOT EXISTS (
    SELECT FROM memories_memory m WHERE m.agent_id = h.agent_id AND m.id = h.memory_id AND m.session = 'heartbeats')
""",
    ),
    Check(
        name="calls that were not charged",
        fault=Fault.LOST,
        statement="""
SELECT count(*) FROM calls_externalcall c JOIN heartbeats_heartbeat h ON h.id = c.heartbeat_id
WHERE h.status = 'done' AND c.status = 'complete'
    AND NOT EXISTS (SELECT FROM calls_ledgerentry l WHERE l.call_id = c.id)
""",
    ),
    Check(
        name="messages that were not written",
        fault=Fault.LOST,
        statement="""
SELECT count(*) FROM heartbeats_heartbeat h WHERE h.status = 'done' AND (
    SELECT count(*) FROM unpacked_action WHERE heartbeat_id = h.id AND action ->> 'action' = 'reach_out_user' AND action ->> 'outcome' = 'success'
) > (SELECT count(*) FROM contacts_outboxmessage m WHERE m.heartbeat_id = h.id)
""",
    ),
    Check(name="heartbeats counted twice", fault=Fault.DOUBLED, statement=DOUBLED),
    Check(
        name="memories of no heartbeat",
        fault=Fault.DOUBLED,
        statement="""
SELECT count(*) FROM memories_memory m WHERE m.session = 'heartbeats'
    AND NOT EXISTS (SELECT FROM heartbeats_heartbeat h WHERE h.memory_id = m.id AND h.status = 'done')
""",
    ),
    Check(
        name="charges doubled",
        fault=Fault.DOUBLED,
        # An attempt is charged once, with its reply. An attempt that lost its lease and the next one may both be charged.
        statement="""
SELECT count(*) FROM (
    SELECT FROM calls_ledgerentry l JOIN calls_externalcall c ON c.id = l.call_id
    GROUP BY c.id, c.attempts HAVING count(*) > greatest(1, c.attempts)
) calls
""",
    ),
    Check(
        name="round trips without exactly one call",
        fault=Fault.DOUBLED,
        statement="""
SELECT count(*) FROM (
    SELECT FROM heartbeats_heartbeat h LEFT JOIN calls_externalcall c ON c.heartbeat_id = h.id
    WHERE h.status = 'done' GROUP BY h.id, h.round_trips HAVING count(c.id) <> h.round_trips
) heartbeats
""",
    ),
    Check(
        name="energy that does not add up",
        fault=Fault.DOUBLED,
        # A heartbeat begins with the energy that the last one left plus 10, at most 20, and ends with this energy minus its costs.
        statement="""
WITH counted AS (
    SELECT h.agent_id, h.number, h.energy_start, h.energy_end,
        (SELECT coalesce(sum((action ->> 'cost')::float), 0) FROM unpacked_action WHERE heartbeat_id = h.id) AS cost,
        lag(h.energy_end) OVER earlier AS before, lag(h.number) OVER earlier AS number_before
    FROM heartbeats_heartbeat h WHERE h.status = 'done' WINDOW earlier AS (PARTITION BY h.agent_id ORDER BY h.number)
)
SELECT count(*) FROM counted c JOIN agents_agentstate s ON s.agent_id = c.agent_id
WHERE c.energy_end <> c.energy_start - c.cost
    OR c.number_before = c.number - 1 AND c.energy_start <> least(20, c.before + 10)
    OR c.number = s.heartbeats AND s.energy <> c.energy_end
""",
    ),
    Check(
        name="daily usage that does not add up",
        fault=Fault.DOUBLED,
        statement="""
SELECT count(*) FROM agents_agent a
LEFT JOIN LATERAL (
    SELECT coalesce(sum(u.heartbeats), 0) AS heartbeats, coalesce(sum(u.calls), 0) AS calls, coalesce(sum(u.tokens), 0) AS tokens
    FROM calls_dailyusage u WHERE u.agent_id = a.id
) used ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS heartbeats FROM heartbeats_heartbeat h WHERE h.agent_id = a.id AND h.status IN ('done', 'failed')
) had ON true
LEFT JOIN LATERAL (
    SELECT count(*) AS calls, coalesce(sum(l.input_tokens + l.output_tokens), 0) AS tokens
    FROM calls_ledgerentry l WHERE l.agent_id = a.id
) charged ON true
WHERE used.heartbeats <> had.heartbeats OR used.calls <> charged.calls OR used.tokens <> charged.tokens
""",
    ),
    Check(
        name="messages doubled",
        fault=Fault.DOUBLED,
        statement="""
SELECT count(*) FROM (
    SELECT FROM contacts_outboxmessage m LEFT JOIN heartbeats_heartbeat h ON h.id = m.heartbeat_id
    GROUP BY m.heartbeat_id, h.id HAVING count(*) > (
        SELECT count(*) FROM unpacked_action WHERE heartbeat_id = h.id AND action ->> 'action' = 'reach_out_user' AND action ->> 'outcome' = 'success')
) heartbeats
""",
    ),
    Check(
        name="notes of progress doubled",
        fault=Fault.DOUBLED,
        statement="""
SELECT count(*) FROM (
    SELECT FROM goals_progressnote n WHERE n.heartbeat_id IS NOT NULL
    GROUP BY n.heartbeat_id, n.goal_id, n.text HAVING count(*) > 1
) notes
""",
    ),
)

_SLOTS = "SELECT agent_id, slot_at, count(*) FROM heartbeats_heartbeat GROUP BY agent_id, slot_at"


def audit(database: psycopg.Connection[Any], due: Iterable[Slot]) -> dict[Fault, dict[str, int]]:
    """Return the numbers of faults by kind and check; `due` are the slots that need a heartbeat."""
    faults: dict[Fault, dict[str, int]] = {fault: {} for fault in Fault}
    unpack_actions(database)
    for check in CHECKS:
        faults[check.fault][check.name] = int(fetch_value(database, check.statement))
    slots = {(agent_id, slot_at): count for agent_id, slot_at, count in database.execute(_SLOTS)}
    faults[Fault.LOST]["slots without a heartbeat"] = sum(slot not in slots for slot in due)
    faults[Fault.DOUBLED]["slots with two heartbeats"] = sum(count > 1 for count in slots.values())
    return faults

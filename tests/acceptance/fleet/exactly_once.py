"""Checks of a fleet's rows: every due heartbeat completed once, with each of its effects once."""

from __future__ import annotations

from apps.tenants.packing import unpack, unpack_list
from tests.acceptance.fleet.points import UNREADABLE
from tests.acceptance.fleet.real_fleet import RealFleet

# The counters of each agent, compared with its heartbeats: a difference means a lost or doubled effect.
AGENTS = """
SELECT a.name, s.heartbeats, s.nops, sc.state, sc.attempts,
    count(h.id) FILTER (WHERE h.status = 'done'), count(h.id) FILTER (WHERE h.status = 'failed'),
    count(h.id) FILTER (WHERE h.status NOT IN ('done', 'failed')), count(DISTINCT h.slot_at),
    coalesce(max(h.number), 0)
FROM agents_agent a JOIN agents_agentstate s ON s.agent_id = a.id JOIN heartbeats_heartbeatschedule sc ON sc.agent_id = a.id
LEFT JOIN heartbeats_heartbeat h ON h.agent_id = a.id GROUP BY a.name, s.heartbeats, s.nops, sc.state, sc.attempts
"""
# Done heartbeats whose energy does not follow from their costs and the heartbeat before.
ENERGY = """
WITH done AS (
    SELECT h.agent_id, h.number, h.energy_start, h.energy_end,
        (SELECT coalesce(sum((action ->> 'cost')::float), 0) FROM unpacked_action WHERE heartbeat_id = h.id) AS cost,
        lag(h.energy_end) OVER (PARTITION BY h.agent_id ORDER BY h.number) AS before
    FROM heartbeats_heartbeat h WHERE h.status = 'done'
)
SELECT a.name, done.number FROM done JOIN agents_agent a ON a.id = done.agent_id
JOIN agents_agentstate s ON s.agent_id = done.agent_id
WHERE done.energy_end <> done.energy_start - done.cost
    OR done.before IS NOT NULL AND done.energy_start <> least(20, done.before + 10)
    OR done.number = s.heartbeats AND s.energy <> done.energy_end
"""
# Done heartbeats whose narrative is not one memory.
NARRATIVES = """
SELECT a.name, h.number FROM heartbeats_heartbeat h JOIN agents_agent a ON a.id = h.agent_id
WHERE h.status = 'done' AND 1 <> (SELECT count(*) FROM memories_memory m
    WHERE m.agent_id = h.agent_id AND m.session = 'heartbeats' AND m.position = h.number AND m.id = h.memory_id)
"""
# Memories of narratives without a done heartbeat.
UNOWNED_NARRATIVES = """
SELECT count(*) FROM memories_memory m WHERE m.session = 'heartbeats'
    AND NOT EXISTS (SELECT FROM heartbeats_heartbeat h WHERE h.memory_id = m.id AND h.status = 'done')
"""
# Uses of memories, uses by recall actions, and the situations of the heartbeats.
ACCESSES = """
SELECT a.name, coalesce((SELECT sum(x.count) FROM memories_memoryaccess x JOIN memories_memory m ON m.id = x.memory_id
        WHERE m.agent_id = a.id), 0),
    coalesce((SELECT sum(jsonb_array_length(action -> 'memory_ids'))
        FROM heartbeats_heartbeat h JOIN unpacked_action ON heartbeat_id = h.id
        WHERE h.agent_id = a.id AND h.status = 'done' AND action ->> 'action' = 'recall'), 0),
    ARRAY(SELECT h.situation FROM heartbeats_heartbeat h WHERE h.agent_id = a.id AND h.status = 'done')
FROM agents_agent a JOIN agents_agentstate s ON s.agent_id = a.id WHERE s.nops = 0
"""
DOUBLED_NOTES = """
SELECT n.text FROM goals_progressnote n WHERE n.heartbeat_id IS NOT NULL
GROUP BY n.heartbeat_id, n.goal_id, n.text HAVING count(*) > 1
"""
# Done heartbeats whose calls or ledger entries are not one for each round trip.
CALLS = """
SELECT a.name, h.number, h.round_trips, count(DISTINCT c.id), count(l.id), count(DISTINCT l.call_id)
FROM heartbeats_heartbeat h JOIN agents_agent a ON a.id = h.agent_id
LEFT JOIN calls_externalcall c ON c.heartbeat_id = h.id LEFT JOIN calls_ledgerentry l ON l.call_id = c.id
WHERE h.status = 'done' GROUP BY a.name, h.number, h.round_trips
HAVING count(DISTINCT c.id) <> h.round_trips OR count(l.id) <> h.round_trips OR count(DISTINCT l.call_id) <> h.round_trips
"""
# The approved action of each agent: its status, and how often it was executed, had its effect and was audited.
APPROVALS = """
SELECT a.name, r.status,
    (SELECT count(*) FROM heartbeats_heartbeat h WHERE h.id = r.executed_by AND h.agent_id = r.agent_id AND h.status = 'done'),
    (SELECT count(*) FROM memories_memory m WHERE m.agent_id = r.agent_id AND m.content = r.about),
    (SELECT count(*) FROM audit_auditevent e WHERE e.agent_id = r.agent_id AND e.action = 'approval.executed')
FROM authority_actionapproval r JOIN agents_agent a ON a.id = r.agent_id
"""
TRACES = "SELECT trace FROM heartbeats_heartbeat"


def assert_exactly_once(fleet: RealFleet) -> None:
    """Assert by the rows that every due heartbeat ended once, with each of its effects once."""
    fleet.unpack_actions()
    unreadable = {agent.name for agent in fleet.agents if agent.model == UNREADABLE}
    for name, heartbeats, nops, state, attempts, done, failed, other, slots, last in fleet.rows(AGENTS):
        due = fleet.due[name]
        if name in unreadable:
            assert (name, heartbeats, nops, done, failed) == (name, 0, due, 0, due)
        else:
            assert (name, heartbeats, nops, done, failed, last) == (name, due, 0, due, 0, due)
        assert (name, state, attempts, other, slots) == (name, "idle", 0, 0, due)
    assert fleet.rows(ENERGY) == []
    assert fleet.rows(NARRATIVES) == []
    assert fleet.rows(UNOWNED_NARRATIVES) == [(0,)]
    for name, counted, recalled, situations in fleet.rows(ACCESSES):
        shown = sum(len(unpack(situation)["relevant"]) for situation in situations)
        assert (name, counted) == (name, recalled + shown)
    assert fleet.rows(DOUBLED_NOTES) == []
    assert fleet.rows(CALLS) == []
    for name, *executed in fleet.rows(APPROVALS):
        decides = name not in unreadable and fleet.due[name] > 0
        assert (name, executed) == (name, ["executed", 1, 1, 1] if decides else ["approved", 0, 0, 0])
    for (trace,) in fleet.rows(TRACES):
        steps = unpack_list(trace)
        assert [step["sequence"] for step in steps] == list(range(1, len(steps) + 1))

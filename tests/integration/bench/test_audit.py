"""The kill benchmark's audit, which finds each fault, and none in an intact fleet."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from apps.agents.models import Agent
from arbor.contacts.cooldown import ContactLimits
from arbor.models.ports import ScriptedModel
from bench.audit import CHECKS, Fault, Slot, audit
from tests.integration.heartbeats.conftest import agent, fleet, new_agent, run_heartbeat, scripted
from tests.integration.heartbeats.fleet import Fleet

__all__ = ["agent", "fleet", "new_agent", "scripted"]

REPLY = json.dumps(
    {
        "thinking": "They should know.",
        "actions": [
            {"action": "reach_out_user", "params": {"intent": "News.", "content": "The reef is charted."}}
        ],
        "memory_notes": [],
        "goal_updates": [],
    }
)
LAST_HEARTBEAT = "(SELECT id FROM heartbeats_heartbeat ORDER BY number DESC LIMIT 1)"
#: For each check, the statement that causes its fault.
FAULTS = {
    "agents not idle": "UPDATE heartbeats_heartbeatschedule SET state = 'running'",
    "heartbeats still open": f"UPDATE heartbeats_heartbeat SET status = 'waiting' WHERE id = {LAST_HEARTBEAT}",
    "calls still open": "UPDATE calls_externalcall SET status = 'running'",
    "heartbeats without a memory of themselves": f"UPDATE heartbeats_heartbeat SET memory_id = NULL WHERE id = {LAST_HEARTBEAT}",
    "calls that were not charged": "DELETE FROM calls_ledgerentry",
    "messages that were not written": "DELETE FROM contacts_outboxmessage",
    "heartbeats counted twice": "UPDATE agents_agentstate SET heartbeats = heartbeats + 1",
    "memories of no heartbeat": f"UPDATE heartbeats_heartbeat SET memory_id = NULL WHERE id = {LAST_HEARTBEAT}",
    "charges doubled": """
INSERT INTO calls_ledgerentry SELECT copy.* FROM calls_ledgerentry l CROSS JOIN LATERAL
    jsonb_populate_record(l, jsonb_build_object('id', gen_random_uuid(), 'latency_ms', l.latency_ms)) copy
""",
    "round trips without exactly one call": """
INSERT INTO calls_externalcall (tenant_id, id, agent_id, heartbeat_id, purpose, status, model, request, sections, reply,
    error, error_kind, attempts, requested_at)
SELECT tenant_id, md5(id::text)::uuid, agent_id, heartbeat_id, purpose, status, model, request, sections, reply, error,
    error_kind, attempts, requested_at
FROM calls_externalcall
""",
    "energy that does not add up": f"UPDATE heartbeats_heartbeat SET energy_end = energy_end + 5 WHERE id = {LAST_HEARTBEAT}",
    "daily usage that does not add up": "UPDATE calls_dailyusage SET tokens = tokens + 1",
    "messages doubled": """
INSERT INTO contacts_outboxmessage SELECT copy.* FROM contacts_outboxmessage m CROSS JOIN LATERAL
    jsonb_populate_record(m, jsonb_build_object('id', md5(m.id::text)::uuid, 'idempotency_key', m.id::text)) copy
""",
    "notes of progress doubled": f"""
INSERT INTO goals_progressnote SELECT copy.* FROM goals_goal g CROSS JOIN generate_series(1, 2) AS number
CROSS JOIN LATERAL jsonb_populate_record(NULL::goals_progressnote, jsonb_build_object('id', md5(g.id::text || number)::uuid,
    'tenant_id', g.tenant_id, 'goal_id', g.id, 'heartbeat_id', {LAST_HEARTBEAT}, 'text', 'Half of it.', 'at', now())) copy
""",
}


@pytest.fixture
def slots(
    agent: Agent,
    fleet: Fleet,
    scripted: Callable[..., ScriptedModel],
    settings: Any,
    superuser: psycopg.Connection[Any],
) -> list[Slot]:
    """Return the two slots of an agent that completed a heartbeat and sent a message at each."""
    settings.ARBOR_CONTACT_LIMITS = ContactLimits(cooldown=ContactLimits().cooldown * 0)
    scripted(REPLY, repeat=True)
    for _ in range(2):
        run_heartbeat(fleet, agent)
    slots: list[tuple[UUID, datetime]] = superuser.execute(
        "SELECT agent_id, slot_at FROM heartbeats_heartbeat WHERE status = 'done'"
    ).fetchall()
    assert len(slots) == 2
    assert superuser.execute("SELECT count(*) FROM contacts_outboxmessage").fetchone() == (2,)
    return slots


def find_faults(superuser: psycopg.Connection[Any], slots: list[Slot]) -> set[str]:
    return {name for counts in audit(superuser, slots).values() for name, count in counts.items() if count}


def test_an_intact_fleet_has_no_faults(superuser: psycopg.Connection[Any], slots: list[Slot]) -> None:
    assert find_faults(superuser, slots) == set()


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_each_check_finds_its_fault(name: str, superuser: psycopg.Connection[Any], slots: list[Slot]) -> None:
    superuser.execute(FAULTS[name])
    assert name in find_faults(superuser, slots)


def test_a_round_trip_without_a_call_is_found(superuser: psycopg.Connection[Any], slots: list[Slot]) -> None:
    superuser.execute("DELETE FROM calls_ledgerentry")
    superuser.execute("DELETE FROM calls_externalcall")
    assert audit(superuser, slots)[Fault.DOUBLED]["round trips without exactly one call"] == 2


def test_a_slot_without_a_heartbeat_is_lost(superuser: psycopg.Connection[Any], slots: list[Slot]) -> None:
    _, slot_at = slots[0]
    superuser.execute("DELETE FROM heartbeats_heartbeat WHERE slot_at = %s", [slot_at])
    assert audit(superuser, slots)[Fault.LOST]["slots without a heartbeat"] == 1
    assert audit(superuser, [])[Fault.LOST]["slots without a heartbeat"] == 0


def test_a_slot_with_two_heartbeats_is_doubled(superuser: psycopg.Connection[Any], slots: list[Slot]) -> None:
    # The database refuses such a row, so the constraint is dropped here.
    superuser.execute("ALTER TABLE heartbeats_heartbeat DROP CONSTRAINT heartbeats_heartbeat_slot")
    try:
        superuser.execute(
            "INSERT INTO heartbeats_heartbeat SELECT copy.* FROM heartbeats_heartbeat h CROSS JOIN LATERAL"
            " jsonb_populate_record(h, jsonb_build_object('id', md5(h.id::text)::uuid)) copy"
        )
        doubled = audit(superuser, slots)[Fault.DOUBLED]
        assert (doubled["slots with two heartbeats"], doubled["heartbeats counted twice"] > 0) == (2, True)
    finally:
        superuser.execute("DELETE FROM heartbeats_heartbeat")
        superuser.execute(
            "ALTER TABLE heartbeats_heartbeat ADD CONSTRAINT heartbeats_heartbeat_slot UNIQUE (tenant_id, agent_id, slot_at)"
        )

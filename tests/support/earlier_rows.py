"""Rows of a tenant in an earlier version's tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.apps.registry import Apps
from pgvector import SparseVector

from apps.tenants.scope import OWNER
from arbor.ids import uuid7
from arbor.memory.content import content_hash
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS, document_vector

CHARACTER = {
    "name": "Scout",
    "traits": [{"name": "dry", "intensity": 0.3}],
    "values": ["candor", "finishing"],
}
#: JSON columns of a heartbeat: an action, with the keys that newer versions leave out, and a change of a goal.
HEARTBEAT_COLUMNS: dict[str, Any] = {
    "actions": [
        {
            "index": 0,
            "action": "recall",
            "verdict": "run",
            "params": {"query": "“Fords”"},
            "cost": 1,
            "summary": "3 memories",
            "ignored": [],
        }
    ],
    "goal_changes": [{"kind": "progressed", "title": "Map the fords", "change": "Half of it is done."}],
}
THEN = datetime(2026, 11, 20, 9, tzinfo=UTC)
#: A model's reply, with characters that JSON escapes.
REPLY = '{"thinking": "“Fords” move.\\n\\u00e4"}\n\x01\t'
#: JSON columns of an agent's state.
STATE: dict[str, Any] = {
    "drives": {"states": {"curiosity": {"level": 0.9, "at": "2026-11-20T09:00:00Z", "building": True}}},
    "mood": {"valence": 0.25, "arousal": 0.5, "at": "2026-11-20T09:00:00Z"},
    "learned": {"recall": [4, 3], "“rest”": [1, 1]},
}


@dataclass(frozen=True, kw_only=True)
class EarlierTenant:
    """The ids of a tenant and of some of its rows."""

    tenant: UUID
    agent: UUID
    innate: UUID
    lesson: UUID
    heartbeat: UUID
    call: UUID


def create_rows(earlier: Apps, slug: str) -> EarlierTenant:
    """Create a tenant with rows in the tables that the migrations change."""

    def create(label: str, **values: Any) -> Any:
        return earlier.get_model(label)._base_manager.using(OWNER).create(**values)

    tenant = create("tenants.Tenant", slug=slug, name=slug)
    user = create("tenants.User", username=f"{slug}-ann", password="x")
    create("tenants.Membership", tenant=tenant, user=user, role="owner")

    def own(label: str, **values: Any) -> Any:
        return create(label, tenant=tenant, **values)

    agents = [
        own(
            "agents.Agent",
            name=f"{slug} {name}",
            public_id=f"agent_{slug}_{name}",
            status="active",
            character=CHARACTER if name == "Scout" else {},
        )
        for name in ("Scout", "Bo")
    ]
    agent, peer = agents
    for row in agents:
        own("agents.HeartbeatSchedule", agent=row, state="idle", next_due_at=THEN, interval_s=3600)
        own("agents.AgentState", agent=row, **STATE)
        own("memories.Mind", agent=row, embedding_model="wordllama", embedding_dimension=256)
    innate, lesson = _create_memories(own, agent)
    heartbeat, call = _create_heartbeats(own, agent, peer, lesson)
    _create_self(own, agent, peer)
    _create_values(own, agent, lesson)
    create("audit.PlatformEvent", action="signed_in", actor=f"user:{slug}-ann", message="signed in")
    own("audit.AuditEvent", action="agent.created", actor="cli", agent_id=agent.id, message="created")
    create("heartbeats.Process", name=f"{slug}:1", kind="worker", started_at=THEN, seen_at=THEN)
    return EarlierTenant(
        tenant=tenant.id,
        agent=agent.id,
        innate=innate.id,
        lesson=lesson.id,
        heartbeat=heartbeat.id,
        call=call.id,
    )


def _create_memories(own: Any, agent: Any) -> tuple[Any, Any]:
    """Create memories, episodes, edges and buffer items; return an innate memory and a lesson."""
    summarized, _ = (
        own(
            "memories.Episode",
            agent=agent,
            session=session,
            started_at=THEN,
            last_at=THEN,
            ended_at=THEN,
            size=3,
            summary=summary,
            summarized_by="rules" if summary else "",
            summarized_at=THEN if summary else None,
        )
        for session, summary in (("talk", "They spoke about the ferry and its fords."), ("work", ""))
    )

    def memory(content: str, **values: Any) -> Any:
        row = own(
            "memories.Memory",
            agent=agent,
            content=content,
            content_hash=content_hash(content),
            lexical=SparseVector(document_vector(content), LEXICAL_DIMENSIONS),
            occurred_at=THEN,
            **values,
        )
        own("memories.Upkeep", memory=row, agent=agent)
        return row

    innate = memory("I value candor", type="semantic", source="template:Scout", decay_rate=0)
    lesson = memory(
        "Cross at low tide.",
        type="procedural",
        detail={"steps": ["read the table", "cross"], "why": "safety"},
    )
    turn = memory(
        "Is the ferry late?", type="episodic", session="talk", role="user", episode=summarized, sequence=1
    )
    for relation in ("contradicts", "associated"):
        own(
            "memories.Edge",
            agent=agent,
            source_kind="memory",
            source_id=innate.id,
            target_kind="memory",
            target_id=turn.id,
            relation=relation,
        )
    for text, source in (("The ferryman coughed.", "heartbeat:1"), ("Pay Ann first.", "peer:Bo")):
        own(
            "memories.BufferItem",
            agent=agent,
            content=text,
            content_hash=content_hash(text),
            source=source,
            expires_at=THEN + timedelta(days=3650),
        )
    return innate, lesson


def _create_heartbeats(own: Any, agent: Any, peer: Any, memory: Any) -> tuple[Any, Any]:
    """Create a heartbeat with its call, ledger entry, usage, percepts, goal, plan and intent; return it and the call."""
    heartbeat = own(
        "heartbeats.Heartbeat",
        agent=agent,
        slot_at=THEN,
        number=1,
        status="done",
        epoch=1,
        narrative="I asked about the ferry.",
        memory=memory,
        trace=[{"node": "observe"}],
        **HEARTBEAT_COLUMNS,
        started_at=THEN,
        ended_at=THEN,
    )
    call = own(
        "calls.ExternalCall",
        agent=agent,
        heartbeat_id=heartbeat.id,
        requested_at=THEN,
        purpose="think",
        model="openai/gpt",
        request={"system": "You are Scout."},
        status="complete",
        reply=REPLY,
    )
    own(
        "calls.LedgerEntry",
        agent=agent,
        call=call,
        purpose="think",
        provider="openai",
        model="gpt",
        input_tokens=12,
        output_tokens=3,
        latency_ms=9,
    )
    own("calls.DailyUsage", agent=agent, day=THEN.date(), beats=1)
    own("agents.Percept", agent=agent, kind="peer_message", content="Hello", peer=peer, heartbeat=heartbeat)
    own("agents.Percept", agent=agent, kind="peer_message", content="Still there?", peer=peer)
    goal = own(
        "goals.Goal",
        agent=agent,
        title="Map the fords",
        state="active",
        layer="task",
        source="user_request",
        touched_at=THEN,
    )
    plan = own("goals.Plan", agent=agent, goal=goal, risk=0.2, estimated_ticks=3)
    own("goals.PlanStep", plan=plan, position=1, action="recall", description="Recall the fords.")
    own("goals.Intent", agent=agent, goal=goal, action="recall", description="Recall.", status="pending")
    return heartbeat, call


def _create_self(own: Any, agent: Any, peer: Any) -> None:
    """Create models of an agent and of two people, and a change of the self."""
    own("selves.PeerModel", agent=agent, name=peer.name, peer=peer, interactions=4, successes=3)
    own("selves.PeerModel", agent=agent, name="Bo", interactions=2, successes=1)
    own("selves.PeerModel", agent=agent, name="ann")
    own(
        "selves.SelfChange",
        agent=agent,
        what="aspect",
        target_id=uuid7(),
        before={},
        after={"content": "I am patient."},
        decided_by="cli:somebody",
    )


def _create_values(own: Any, agent: Any, memory: Any) -> None:
    """Create one value as an aspect and three as beliefs, one dropped and one with evidence, and another belief that was revised."""

    def belief(statement: str, category: str, **values: Any) -> Any:
        return own(
            "selves.Belief",
            agent=agent,
            category=category,
            statement=statement,
            statement_hash=content_hash(statement),
            **{"confidence": 0.9, "stability": 0.8, "source": "template:Scout", **values},
        )

    own(
        "selves.IdentityAspect",
        agent=agent,
        kind="value",
        content="tea",
        content_hash=content_hash("tea"),
        stability=0.5,
    )
    belief("candor", "values", confidence=0.7, stability=0.6)
    belief("rest", "values", confidence=0.4, status="dropped")
    proof = belief("proof", "values")
    own("selves.BeliefEvidence", belief=proof, memory=memory, supports=True)
    fords = belief("Fords move.", "world", confidence=0.5, status="questioned")
    before = {
        "statement": "Fords move.",
        "category": "world",
        "confidence": 0.9,
        "stability": 0.8,
        "status": "held",
    }
    own(
        "selves.SelfChange",
        agent=agent,
        what="belief",
        target_id=fords.id,
        before=before,
        after=before | {"confidence": 0.5, "status": "questioned"},
        decided_by="heartbeat:1",
    )

"""Create a memory of any type from its parts; record how a procedure worked out, and further sources of a fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import click

from apps.memories.models import Memory
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.provenance import add_source, record_outcome
from apps.selves.models import Belief
from apps.selves.services.evidence import note_new_facts
from apps.tenants.scope import tenant_transaction
from arbor.memory.details import (
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.relations import Relation
from arbor.memory.trust import Source
from arbor.memory.values import MemoryType
from config.cli.kit import Output
from config.cli.lookup import find_id, find_memories
from config.cli.tenancy import ChosenAgent, actor, audit_act, in_agent_transaction, with_agent

#: Where a memory comes from that a person gave.
SOURCE = "operator"

#: The options that belong to each type.
PARTS: Mapping[MemoryType, tuple[str, ...]] = {
    MemoryType.EPISODIC: ("context", "done", "result", "feeling", "valence"),
    MemoryType.SEMANTIC: (
        "confidence",
        "category",
        "sources",
        "contradicts",
        "supports_belief",
        "against_belief",
    ),
    MemoryType.PROCEDURAL: ("steps", "needs"),
    MemoryType.STRATEGIC: ("pattern", "confidence", "evidence", "applies_to"),
}


@with_agent
def add_memory(
    agent: ChosenAgent,
    /,
    *,
    text: str,
    kind: str,
    importance: float | None,
    concepts: tuple[str, ...],
    **parts: Any,
) -> Output:
    """Add a memory of any type, made from its parts; a known memory is reinforced."""
    type_ = MemoryType(kind)
    given = {name for name, value in parts.items() if value not in (None, "", ())}
    if wrong := sorted(given - set(PARTS[type_])):
        options = ", ".join(f"--{name.rstrip('s').replace('_', '-')}" for name in wrong)
        raise click.UsageError(f"a memory that is {kind} has no {options}")
    with tenant_transaction(agent.tenant_id):
        contradicted = find_memories(agent, parts["contradicts"])
        beliefs = {
            find_id(agent, Belief, belief): relation
            for option, relation in (
                ("supports_belief", Relation.SUPPORTS),
                ("against_belief", Relation.CONTRADICTS),
            )
            for belief in parts[option]
        }
    creation = Creation(
        content=text,
        detail=_DETAILS[type_](parts, contradicted),
        importance=importance,
        source=SOURCE,
        concepts=dict.fromkeys(concepts, 1.0),
        beliefs=beliefs,
    )
    stored = create_memories(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        creations=[creation],
        actor=actor(),
        update_trust=note_new_facts,
    )
    value = {"id": stored.ids[0], "agent": agent.name, "type": kind, "new": bool(stored.stored)}
    people = f"{agent.name} will remember it." if stored.stored else f"{agent.name} knew that already."
    return Output(value, people=f"{people}\n[dim]{stored.ids[0]}[/dim]")


def _episodic(parts: Mapping[str, Any], _contradicted: list[UUID]) -> Detail:
    felt = parts["feeling"] or parts["valence"] is not None
    emotion = Emotion(label=parts["feeling"], valence=parts["valence"] or 0.0) if felt else None
    return EpisodicDetail(
        context=parts["context"], action=parts["done"], result=parts["result"], emotion=emotion
    )


def _semantic(parts: Mapping[str, Any], contradicted: list[UUID]) -> Detail:
    sources: tuple[Source, ...] = parts["sources"]
    return SemanticDetail(
        confidence=_sure(parts),
        category=parts["category"],
        sources=sources,
        contradictions=tuple(contradicted),
    )


def _procedural(parts: Mapping[str, Any], _contradicted: list[UUID]) -> Detail:
    if not parts["steps"]:
        raise click.UsageError('a procedure has steps: --step "…" for each, in order')
    return ProceduralDetail(steps=parts["steps"], prerequisites=parts["needs"])


def _strategic(parts: Mapping[str, Any], _contradicted: list[UUID]) -> Detail:
    return StrategicDetail(
        pattern=parts["pattern"],
        confidence=_sure(parts),
        evidence=parts["evidence"],
        applicability=parts["applies_to"],
    )


def _sure(parts: Mapping[str, Any]) -> float:
    return 1.0 if parts["confidence"] is None else float(parts["confidence"])


_DETAILS: Mapping[MemoryType, Callable[[Mapping[str, Any], list[UUID]], Detail]] = {
    MemoryType.EPISODIC: _episodic,
    MemoryType.SEMANTIC: _semantic,
    MemoryType.PROCEDURAL: _procedural,
    MemoryType.STRATEGIC: _strategic,
}


@in_agent_transaction
def record_practice(agent: ChosenAgent, *, memory_id: str, success: bool | None) -> Output:
    """Record the outcome of following a procedure."""
    if success is None:
        raise click.UsageError("say how it worked out: --success or --failure")
    found = find_id(agent, Memory, memory_id)
    practised = record_outcome(agent_id=agent.id, memory_id=found, success=success)
    audit_act(agent, f"told {agent.name} how a procedure worked out", memory_id=found, success=success)
    value = {
        "agent": agent.name,
        "id": found,
        "successes": practised.successes,
        "failures": practised.failures,
        "success_rate": round(practised.success_rate, 4),
    }
    times = practised.successes + practised.failures
    return Output(value, people=f"It has worked out {practised.successes} of {times} times.")


@in_agent_transaction
def add_another_source(
    agent: ChosenAgent, *, memory_id: str, kind: str, reference: str, trust: float
) -> Output:
    """Add a source to a fact; trust in the fact never falls by it. The same source counts once."""
    says = Source(kind=kind, reference=reference, trust=trust)
    found = find_id(agent, Memory, memory_id)
    trusted = add_source(agent_id=agent.id, memory_id=found, source=says)
    audit_act(
        agent,
        f"noted another source of what {agent.name} knows",
        memory_id=found,
        kind=kind,
        reference=reference,
        trust=trust,
    )
    value = {"agent": agent.name, "id": found, "trust": round(trusted, 4)}
    return Output(value, people=f"It is trusted by {trusted:.2f} now.")

"""Create a memory of any type from its parts; record the outcomes of a procedure, and further sources of a fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import click

from apps.memories.models import Memory
from apps.memories.services.store.create import Creation, create_memories
from apps.memories.services.store.provenance import add_source, record_outcome
from apps.selves.models import Belief
from apps.selves.services.evidence import record_new_evidence
from apps.tenants.scope import tenant_transaction
from arbor.memory.details import (
    Detail,
    Emotion,
    EpisodicDetail,
    ProceduralDetail,
    SemanticDetail,
    StrategicDetail,
)
from arbor.memory.importance import OPERATOR
from arbor.memory.relations import Relation
from arbor.memory.trust import Source
from arbor.memory.values import MemoryType
from arbor.quotations import counted
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id, find_memories
from config.cli.kit.tenancy import ChosenAgent, actor, audit_act, in_agent_transaction, with_agent

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
#: The options whose parameter has another name, because they can be repeated.
_REPEATED = {"sources": "source", "steps": "step"}


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
    given_names = {name for name, value in parts.items() if value not in (None, "", ())}
    if wrong := sorted(given_names - set(PARTS[type_])):
        options = ", ".join(f"--{_REPEATED.get(name, name).replace('_', '-')}" for name in wrong)
        raise click.UsageError(f"a memory that is {kind} has no {options}")
    with tenant_transaction(agent.tenant_id):
        contradicted = find_memories(agent, parts["contradicts"])
        supported, opposed = (
            {find_id(agent, Belief, belief) for belief in parts[option]}
            for option in ("supports_belief", "against_belief")
        )
    if supported & opposed:
        raise click.UsageError("a memory supports a belief or contradicts it: give one of the options")
    beliefs = dict.fromkeys(supported, Relation.SUPPORTS) | dict.fromkeys(opposed, Relation.CONTRADICTS)
    creation = Creation(
        content=text,
        detail=_DETAILS[type_](parts, contradicted),
        importance=importance,
        source=OPERATOR,
        concepts=dict.fromkeys(concepts, 1.0),
        beliefs=beliefs,
    )
    stored = create_memories(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        creations=[creation],
        actor=actor(),
        update_trust=record_new_evidence,
    )
    value = {"id": stored.ids[0], "agent": agent.name, "type": kind, "new": bool(stored.stored)}
    text = f"{agent.name} will remember it." if stored.stored else f"{agent.name} knew that already."
    return Output(value, text=f"{text}\n[dim]{stored.ids[0]}[/dim]")


def _episodic(parts: Mapping[str, Any], _contradicted: list[UUID]) -> Detail:
    has_emotion = parts["feeling"] or parts["valence"] is not None
    emotion = Emotion(label=parts["feeling"], valence=parts["valence"] or 0.0) if has_emotion else None
    return EpisodicDetail(
        context=parts["context"], action=parts["done"], result=parts["result"], emotion=emotion
    )


def _semantic(parts: Mapping[str, Any], contradicted: list[UUID]) -> Detail:
    sources: tuple[Source, ...] = parts["sources"]
    return SemanticDetail(
        confidence=_confidence(parts),
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
        confidence=_confidence(parts),
        evidence=parts["evidence"],
        applicability=parts["applies_to"],
    )


def _confidence(parts: Mapping[str, Any]) -> float:
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
    memory_row_id = find_id(agent, Memory, memory_id)
    practice = record_outcome(agent_id=agent.id, memory_id=memory_row_id, success=success)
    audit_act(
        agent, f"recorded an outcome of a procedure of {agent.name}", memory_id=memory_row_id, success=success
    )
    value = {
        "agent": agent.name,
        "id": memory_row_id,
        "successes": practice.successes,
        "failures": practice.failures,
        "success_rate": round(practice.success_rate, 4),
    }
    times = practice.successes + practice.failures
    return Output(value, text=f"It has worked out {practice.successes} of {counted(times, 'time')}.")


@in_agent_transaction
def add_another_source(
    agent: ChosenAgent, *, memory_id: str, kind: str, reference: str, trust: float
) -> Output:
    """Add a source to a fact; trust in the fact never falls by it. The same source counts once."""
    new_source = Source(kind=kind, reference=reference, trust=trust)
    memory_row_id = find_id(agent, Memory, memory_id)
    trust_now = add_source(agent_id=agent.id, memory_id=memory_row_id, source=new_source)
    audit_act(
        agent,
        f"added a source to a fact of {agent.name}",
        memory_id=memory_row_id,
        kind=kind,
        reference=reference,
        trust=trust,
    )
    value = {"agent": agent.name, "id": memory_row_id, "trust": round(trust_now, 4)}
    return Output(value, text=f"It is trusted by {trust_now:.2f} now.")

"""`arbor memory add`: a memory of any type, made from its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import click

from apps.memories.services.store.create import Creation, create_memories
from apps.selves.models import Belief
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
from config.cli.memory.finding import find_id, find_memories
from config.cli.memory.values import TrustedSource
from config.cli.output import json_option, show
from config.cli.tenancy import actor, choose_agent, tenant_option

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


@click.command("add")
@click.argument("agent")
@click.argument("text")
@click.option(
    "--type",
    "kind",
    type=click.Choice([each.value for each in MemoryType]),
    required=True,
    help="What happened, what is so, how it is done, or what helps to decide.",
)
@click.option("--importance", type=click.FloatRange(0, 1), help="[default: by what it says]")
@click.option("--concept", "concepts", multiple=True, metavar="NAME", help="What it is a case of.")
@click.option("--context", default="", help="episodic: in what situation.")
@click.option("--done", default="", help="episodic: what was done.")
@click.option("--result", default="", help="episodic: what came of it.")
@click.option("--feeling", default="", help="episodic: joy, worry…")
@click.option("--valence", type=click.FloatRange(-1, 1), help="episodic: from -1, bad, to 1, good.")
@click.option("--confidence", type=click.FloatRange(0, 1), help="semantic, strategic: how sure.")
@click.option("--category", default="", help="semantic: what kind of fact.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=TrustedSource(),
    metavar="KIND:NAME[@TRUST]",
    help="semantic: what says so; without any, a fact is trusted by 0.15.",
)
@click.option(
    "--contradicts", multiple=True, metavar="ID", help="semantic: a memory that cannot be true with it."
)
@click.option("--supports-belief", multiple=True, metavar="ID", help="semantic: a belief that it speaks for.")
@click.option(
    "--against-belief", multiple=True, metavar="ID", help="semantic: a belief that it speaks against."
)
@click.option("--step", "steps", multiple=True, help="procedural: the steps, in order.")
@click.option("--needs", multiple=True, help="procedural: what must be at hand before.")
@click.option("--pattern", default="", help="strategic: what was noticed.")
@click.option("--evidence", multiple=True, help="strategic: what it was seen in.")
@click.option("--applies-to", multiple=True, help="strategic: where it applies.")
@tenant_option
@json_option
def add(
    agent: str,
    text: str,
    kind: str,
    importance: float | None,
    concepts: tuple[str, ...],
    tenant_slug: str | None,
    as_json: bool,
    **parts: Any,
) -> None:
    """Give an agent a memory of any type, made from its parts; what it knows already is reinforced.

    \b
    Examples:
      arbor memory add Vega "Read a depth gauge" --type procedural --step "Wait for slack water" --step "Note the tide"
      arbor memory add Vega "The quay was dredged in spring" --type semantic --source document:harbour-log@0.9
      arbor memory add Vega "The ferry stopped" --type episodic --context "ice on the river" --feeling worry --valence -0.4
    """
    type_ = MemoryType(kind)
    given = {name for name, value in parts.items() if value not in (None, "", ())}
    if wrong := sorted(given - set(PARTS[type_])):
        options = ", ".join(f"--{name.rstrip('s').replace('_', '-')}" for name in wrong)
        raise click.UsageError(f"a memory that is {kind} has no {options}")
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        contradicted = find_memories(chosen, parts["contradicts"])
        beliefs = {
            find_id(chosen, Belief, each): relation
            for option, relation in (
                ("supports_belief", Relation.SUPPORTS),
                ("against_belief", Relation.CONTRADICTS),
            )
            for each in parts[option]
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
        tenant_id=chosen.tenant_id, agent_id=chosen.id, creations=[creation], actor=actor()
    )
    told = {"id": stored.ids[0], "agent": chosen.name, "type": kind, "new": bool(stored.stored)}
    people = f"{chosen.name} will remember it." if stored.stored else f"{chosen.name} knew that already."
    show(told, as_json=as_json, people=f"{people}\n[dim]{stored.ids[0]}[/dim]")


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

"""Read a memory's page by a fixed number of queries; nothing changes, not even the counts of accesses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from apps.console import cells
from apps.console.nodes import NamedNode, name_nodes, other_end, parse_id
from apps.console.pictures.neighborhood import DrawnNeighborhood, Neighbor, draw_neighborhood
from apps.memories.models import Activation, ClusterMember, Edge, Memory, MemoryConcept, Pin, Practice, Upkeep
from apps.memories.services.store.appraisal import word_lists
from arbor.memory.activation import level_after
from arbor.memory.forgetting import days_between, decayed_importance, effective_importance, relevance
from arbor.memory.importance import Appraisal, appraise, appraised_role
from arbor.memory.neighborhood import NEIGHBORHOOD_SIZE
from arbor.memory.values import MemoryStatus, MemoryType

#: The memories of the episode that are shown before the memory, and after it.
BESIDE_SHOWN = 4
RELATIONS_SHOWN = 30
LINKS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class RelationLine:
    """A relation of the memory with another node, in either direction."""

    relation: str
    outward: bool
    other: NamedNode
    weight: float
    note: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class WeightRow:
    """The components of a memory's weight, from 0 to 1."""

    #: The appraisal by rule now, with the words that it is based on.
    appraisal: Appraisal
    #: Importance raised by use, and the same decayed over time.
    effective: float
    decayed: float
    #: The relevance for recall: importance, faded since the last access.
    relevance: float
    #: The activation now.
    presence: float
    used_at: datetime


@dataclass(frozen=True, kw_only=True)
class MemoryPage:
    """The data of a memory's page."""

    memory: Memory
    uses: int
    recalled: int
    reinforced: int
    recalled_at: datetime | None
    practice: Practice | None
    pin: Pin | None
    weight: WeightRow
    details: Sequence[tuple[str, Sequence[str]]]
    upkeep: Upkeep | None
    #: The neighborhood, the heaviest neighbor first.
    neighbors: Sequence[Neighbor]
    picture: DrawnNeighborhood | None
    beside: Sequence[Memory]
    #: The latest relations.
    relations: Sequence[RelationLine]
    has_more_relations: bool
    clusters: Sequence[ClusterMember]
    concepts: Sequence[MemoryConcept]
    terms: int
    #: The SHA-256 of the memory's content, in hexadecimal.
    hash: str


def read_memory(memory: Memory) -> MemoryPage:
    """Read a memory's page in the current tenant. The memory was read with its access and its pin."""
    access = memory._state.fields_cache.get("access")
    recalled, reinforced = (access.count, access.reinforced) if access else (0, 0)
    edges = _edges(memory)
    upkeep = Upkeep.objects.filter(memory_id=memory.id).first()
    neighbors = _neighbors(upkeep, edges, memory.id)
    return MemoryPage(
        memory=memory,
        uses=recalled + reinforced,
        recalled=recalled,
        reinforced=reinforced,
        recalled_at=access.last_at if access else None,
        practice=Practice.objects.filter(memory_id=memory.id).first(),
        pin=memory._state.fields_cache.get("pin"),
        weight=_weight(memory, access),
        details=_details(memory.detail),
        upkeep=upkeep,
        neighbors=neighbors,
        picture=draw_neighborhood(neighbors),
        beside=_beside(memory),
        relations=_relations(edges[:RELATIONS_SHOWN], memory),
        has_more_relations=len(edges) > RELATIONS_SHOWN,
        clusters=list(
            ClusterMember.objects.filter(memory_id=memory.id)
            .select_related("cluster")
            .defer("cluster__centroid")
            .order_by("-strength", "cluster_id")[:LINKS_SHOWN]
        ),
        concepts=list(
            MemoryConcept.objects.filter(memory_id=memory.id)
            .select_related("concept")
            .order_by("-strength", "concept_id")[:LINKS_SHOWN]
        ),
        terms=len(memory.lexical.indices()) if memory.lexical else 0,
        hash=bytes(memory.content_hash).hex(),
    )


def _edges(memory: Memory) -> list[Edge]:
    ends = Q(source_id=memory.id) | Q(target_id=memory.id)
    return list(Edge.objects.filter(ends, agent_id=memory.agent_id).order_by("-id")[: RELATIONS_SHOWN + 1])


def _relations(edges: Sequence[Edge], memory: Memory) -> list[RelationLine]:
    others = {edge.id: other_end(edge, memory.id) for edge in edges}
    nodes = name_nodes(memory.agent_id, list(others.values()))
    return [
        RelationLine(
            relation=edge.relation,
            outward=edge.source_id == memory.id,
            other=nodes[others[edge.id]],
            weight=edge.weight,
            note=edge.note,
            origin=edge.origin,
        )
        for edge in edges
    ]


def _weight(memory: Memory, access: Any) -> WeightRow:
    now = timezone.now()
    uses = access.count + access.reinforced if access else 0
    moments = [memory.created_at, *((access.last_at, access.reinforced_at) if access else ())]
    used_at = max(moment for moment in moments if moment is not None)
    effective = effective_importance(importance=memory.importance, uses=uses)
    accessed_at = access.last_at if access and access.last_at else memory.occurred_at
    activation = Activation.objects.filter(memory_id=memory.id).first()
    return WeightRow(
        appraisal=appraise(
            memory.content,
            role=appraised_role(role=memory.role, source=memory.source),
            type=MemoryType(memory.type),
            lists=word_lists(),
        ),
        effective=effective,
        decayed=decayed_importance(importance=effective, days_since_use=days_between(used_at, now)),
        relevance=relevance(
            importance=memory.importance,
            decay_rate=memory.decay_rate,
            days_since_access=days_between(accessed_at, now),
        ),
        presence=(
            level_after(activation.level, now - activation.at, settings.ARBOR_ACTIVATION_HALF_LIFE)
            if activation
            else 0.0
        ),
        used_at=used_at,
    )


def _details(detail: Any) -> list[tuple[str, Sequence[str]]]:
    # Another version of Arbor may have stored the values: lists are shown line by line, others as they are.
    if not isinstance(detail, Mapping):
        return []
    return [(str(name).replace("_", " "), _lines(value)) for name, value in detail.items()]


def _lines(value: Any) -> list[str]:
    if isinstance(value, list):
        return [line for item in value for line in _lines(item)]
    if isinstance(value, Mapping):
        return [", ".join(f"{name}: {part}" for name, part in value.items())]
    return [str(value)]


def _beside(memory: Memory) -> list[Memory]:
    """Return the memory with those before and after it in its episode, in order; none for a summary, which has no place there."""
    if memory.episode_id is None or memory.sequence == 0:
        return []
    first, last = max(memory.sequence - BESIDE_SHOWN, 1), memory.sequence + BESIDE_SHOWN
    return list(
        Memory.objects.filter(episode_id=memory.episode_id, sequence__gte=first, sequence__lte=last)
        .only("tenant_id", "content", "role", "occurred_at", "sequence", "importance", "status")
        .order_by("sequence")[: 2 * BESIDE_SHOWN + 1]
    )


def _neighbors(upkeep: Upkeep | None, edges: Sequence[Edge], memory_id: UUID) -> list[Neighbor]:
    weights = _weights(upkeep.neighbors if upkeep else None)
    related: dict[UUID, list[str]] = {}
    for edge in edges:
        related.setdefault(other_end(edge, memory_id)[1], []).append(edge.relation.replace("_", " "))
    rows = Memory.objects.filter(id__in=weights, status=MemoryStatus.ACTIVE).values_list(
        "id", "content", "type"
    )
    neighbors = [
        Neighbor(
            id=row_id,
            page=cells.page_of("memories_memory", row_id),
            text=content,
            type=kind,
            weight=weights[row_id],
            relation=", ".join(related.get(row_id, ())),
        )
        for row_id, content, kind in rows
    ]
    return sorted(neighbors, key=lambda neighbor: (-neighbor.weight, neighbor.id))


def _weights(neighbors: Any) -> dict[UUID, float]:
    """Return the heaviest neighbors; values that cannot be read are skipped."""
    weights: dict[UUID, float] = {}
    for key, weight in neighbors.items() if isinstance(neighbors, Mapping) else ():
        row_id = parse_id(key)
        if row_id is not None and isinstance(weight, int | float) and math.isfinite(weight):
            weights[row_id] = float(weight)
    return dict(sorted(weights.items(), key=lambda item: -item[1])[:NEIGHBORHOOD_SIZE])

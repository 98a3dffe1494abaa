"""What relations begin and end at, by name: one query for each kind, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django.db.models import Model

from apps.console import cells
from apps.goals.models import Goal
from apps.memories.models import Concept, Memory
from apps.selves.models import Belief, IdentityAspect
from arbor.memory.relations import NodeKind

#: The model of each kind, and the field that names it.
NAMED_BY: Mapping[str, tuple[type[Model], str]] = MappingProxyType(
    {
        NodeKind.MEMORY: (Memory, "content"),
        NodeKind.CONCEPT: (Concept, "name"),
        NodeKind.BELIEF: (Belief, "statement"),
        NodeKind.ASPECT: (IdentityAspect, "content"),
        NodeKind.GOAL: (Goal, "title"),
    }
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One end of a relation: its text, and its page if it has one."""

    kind: str
    id: UUID
    text: str
    page: str


def find_nodes(ends: Iterable[tuple[str, UUID]]) -> dict[tuple[str, UUID], Node]:
    """Return the ends of relations by kind and id, those that are gone with a text that says so."""
    wanted: dict[str, set[UUID]] = defaultdict(set)
    for kind, row_id in ends:
        wanted[kind].add(row_id)
    found = {}
    for kind, ids in wanted.items():
        texts: dict[UUID, str] = {}
        if kind in NAMED_BY:
            model, field = NAMED_BY[kind]
            texts = dict(model._default_manager.filter(id__in=ids).values_list("id", field))
        for row_id in ids:
            found[kind, row_id] = Node(
                kind=kind,
                id=row_id,
                text=texts.get(row_id, "gone"),
                page=cells.page_of(cells.NODE_PAGES[kind], row_id) if row_id in texts else "",
            )
    return found

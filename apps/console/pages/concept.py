"""Read a concept's page by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.memories.models import Concept, MemoryConcept

CASES_SHOWN = 60
NARROWER_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class ConceptPage:
    """A concept, as its page shows it."""

    concept: Concept
    #: The concepts above it, the broadest first.
    broader: Sequence[Concept]
    narrower: Sequence[Concept]
    cases: Sequence[MemoryConcept]


def read_concept(concept: Concept) -> ConceptPage:
    """Read what belongs to the concept, in the current tenant."""
    above = _ids(concept.ancestors)
    found = {broader.id: broader for broader in Concept.objects.filter(id__in=above)}
    return ConceptPage(
        concept=concept,
        broader=[found[concept_id] for concept_id in above if concept_id in found],
        narrower=list(Concept.objects.filter(parent_id=concept.id).order_by("key")[:NARROWER_SHOWN]),
        cases=list(
            MemoryConcept.objects.filter(concept_id=concept.id)
            .select_related("memory")
            .defer("memory__embedding", "memory__lexical")
            .order_by("-strength")[:CASES_SHOWN]
        ),
    )


def _ids(stored: Any) -> list[UUID]:
    # A page must open whatever was stored: what is no id is left out.
    found = []
    for item in stored if isinstance(stored, list) else []:
        try:
            found.append(UUID(str(item)))
        except ValueError:
            continue
    return found

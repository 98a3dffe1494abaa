"""Add and remove boundaries of an agent's own, and restore the default boundaries that they override."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import structlog
from django.db import transaction

from apps.agents.services.locks import lock_agent_row
from apps.memories.services.embedding.embedding import embed_query, embed_texts
from apps.memories.services.embedding.minds import model_of
from apps.selves.models import Boundary
from apps.selves.services.changes import record_part_change
from apps.selves.services.parts import boundary_values
from apps.tenants.scope import current_tenant, tenant_transaction
from arbor.errors import EmbeddingFailed, LimitReached, NotFound
from arbor.selves.boundaries import DEFAULT_BOUNDARIES, MAX_BOUNDARIES, BoundaryRule, NewBoundary
from arbor.selves.boundary_check import BoundaryMatch, Vector, boundaries_in_force, find_matches

log = structlog.get_logger(__name__)

#: Fields of a row as `arbor.selves.boundary_check.boundaries_in_force` reads them.
_FIELDS = (
    "name",
    "type",
    "response",
    "description",
    "patterns",
    "examples",
    "vectors",
    "flexibility",
    "importance",
    "enabled",
)


def add_boundary(*, tenant_id: UUID, agent_id: UUID, boundary: NewBoundary, actor: str) -> Boundary:
    """Add a boundary to an agent, or replace its own of that name; its examples are embedded first, outside transactions.

    If the embedder does not answer, the boundary matches by its patterns until heartbeats have embedded its examples.
    Raises NotFound for the agent, LimitReached.
    """
    vectors = _embed_examples(tenant_id, agent_id, list(boundary.examples))
    with tenant_transaction(tenant_id):
        return _store(agent_id, boundary, vectors, actor)


@transaction.atomic
def remove_boundary(*, agent_id: UUID, name: str, actor: str) -> str:
    """Remove a boundary of an agent: its own is deleted, a default one is disabled.

    Returns a description of the change. Raises NotFound.
    """
    lock_agent_row(agent_id)
    row: Boundary | None = Boundary.objects.select_for_update().filter(agent_id=agent_id, name=name).first()
    default = next((boundary for boundary in DEFAULT_BOUNDARIES if boundary.name == name), None)
    if default is None:
        if row is None:
            raise NotFound(
                f"the agent has no boundary {name!r}; `arbor self boundary list` shows those it has"
            )
        _delete(row, actor=actor, message=f"removed the boundary {name}")
        return "removed"
    before = boundary_values(row) if row else {}
    row = row or Boundary(
        tenant_id=current_tenant(),
        agent_id=agent_id,
        name=name,
        type=default.type,
        response=default.response,
        description=default.description,
        patterns=list(default.patterns),
        examples=list(default.examples),
        flexibility=default.flexibility,
        importance=default.importance,
    )
    row.enabled, row.source = False, actor
    row.save()
    record_part_change(row, before=before, actor=actor, message=f"disabled the boundary {name}")
    return "switched off"


@transaction.atomic
def restore_boundary(*, agent_id: UUID, name: str, actor: str) -> None:
    """Restore a default boundary of an agent. Raises NotFound."""
    lock_agent_row(agent_id)
    row: Boundary | None = Boundary.objects.select_for_update().filter(agent_id=agent_id, name=name).first()
    if row is None or all(boundary.name != name for boundary in DEFAULT_BOUNDARIES):
        raise NotFound(f"the agent has not changed a default boundary {name!r}; there is nothing to restore")
    _delete(row, actor=actor, message=f"restored the boundary {name}")


def _delete(row: Boundary, *, actor: str, message: str) -> None:
    record_part_change(row, before=boundary_values(row), actor=actor, message=message, is_removed=True)
    row.delete()


def boundaries_of(agent_id: UUID) -> tuple[BoundaryRule, ...]:
    """Return the boundaries in force for an agent. One statement."""
    return boundaries_in_force(
        DEFAULT_BOUNDARIES, list(Boundary.objects.filter(agent_id=agent_id).values(*_FIELDS))
    )


def match_boundaries(*, tenant_id: UUID, agent_id: UUID, text: str) -> list[BoundaryMatch]:
    """Return the matches of a text with an agent's boundaries, the most important first. Outside any transaction.

    If the embedder fails, only patterns are matched.
    """
    with tenant_transaction(tenant_id):
        boundaries, model = boundaries_of(agent_id), model_of(agent_id)
    texts = [text, *(example for boundary in boundaries for example in boundary.examples)]
    vectors: dict[str, Vector] = {}
    try:
        embedded = embed_query(tenant_id=tenant_id, texts=texts, model=model)
        vectors = dict(zip(texts, embedded.tolist(), strict=True))
    except EmbeddingFailed as error:
        log.warning("boundaries_lexical_fallback", agent_id=str(agent_id), error=str(error))
    return find_matches([text], boundaries, vectors)


def _embed_examples(tenant_id: UUID, agent_id: UUID, examples: list[str]) -> dict[str, Any]:
    if not examples:
        return {}
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
    try:
        rows = embed_texts(tenant_id=tenant_id, texts=examples, model=model)
    except EmbeddingFailed:
        return {}
    return {"model": model.name, "dimension": model.dimension, "rows": rows.tolist()}


def _store(agent_id: UUID, boundary: NewBoundary, vectors: dict[str, Any], actor: str) -> Boundary:
    # Without the lock, two concurrent additions would both find no existing row.
    lock_agent_row(agent_id)
    own = {row.name: row for row in Boundary.objects.filter(agent_id=agent_id)}
    if boundary.name not in own and len(own) >= MAX_BOUNDARIES:
        raise LimitReached(f"an agent has at most {MAX_BOUNDARIES} boundaries of its own; remove one first")
    row = own.get(boundary.name) or Boundary(
        tenant_id=current_tenant(), agent_id=agent_id, name=boundary.name
    )
    before = boundary_values(row) if boundary.name in own else {}
    row.description, row.type, row.response = boundary.description, boundary.type, boundary.response
    row.patterns, row.examples, row.vectors = list(boundary.patterns), list(boundary.examples), vectors
    row.flexibility, row.importance = boundary.flexibility, boundary.importance
    row.enabled, row.source = True, boundary.source or actor
    row.save()
    message = f"gave the agent the boundary {row.name} ({row.response})"
    record_part_change(row, before=before, actor=actor, message=message)
    return row

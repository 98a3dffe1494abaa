"""Match turns of a conversation with the agent's boundaries: by words, and by meaning where the embedder answers."""

from __future__ import annotations

from uuid import UUID

import structlog

from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.embedding.minds import model_of
from apps.selves.models import Boundary
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.selves.boundary_check import Crossing, Vector, check, in_force
from arbor.selves.default_boundaries import DEFAULT_BOUNDARIES

log = structlog.get_logger(__name__)

_COLUMNS = (
    "name",
    "description",
    "type",
    "patterns",
    "examples",
    "response",
    "flexibility",
    "importance",
    "enabled",
)


def match_boundaries(*, tenant_id: UUID, agent_id: UUID, text: str) -> list[Crossing]:
    """Return the boundary matches of a text, the most important first. Outside any transaction."""
    with tenant_transaction(tenant_id):
        rules = in_force(
            DEFAULT_BOUNDARIES, list(Boundary.objects.filter(agent_id=agent_id).values(*_COLUMNS))
        )
        model = model_of(agent_id)
    texts = [text, *(example for rule in rules for example in rule.examples)]
    vectors: dict[str, Vector] = {}
    try:
        found = embed_query(tenant_id=tenant_id, texts=texts, model=model)
        vectors = dict(zip(texts, found.tolist(), strict=True))
    except EmbeddingFailed as error:
        log.warning("boundaries_by_words_alone", agent_id=str(agent_id), error=str(error))
    return check([text], rules, vectors)

"""The switch of an agent to another embedding model: all of its vectors in one transaction, under its lock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import NextEmbedding
from apps.memories.services.embedding.backlog import REFUSED
from apps.memories.services.embedding.embedders import name_of
from apps.memories.services.embedding.embedding import embedder_for
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.store.remember import count_terms, lock_minds, terms_of
from apps.tenants.statements import change, fetch
from arbor.embedding.models import EmbeddingModel
from arbor.memory.values import MemoryStatus

_MISSING = """
SELECT count(*) FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND NOT EXISTS (
    SELECT FROM memories_nextembedding n
    WHERE n.tenant_id = %(tenant)s AND n.memory_id = m.id AND n.embedding_model = %(next)s
)
"""
# One pass, also over what has no next vector: no old one may stay.
_SWITCH = """
UPDATE memories_memory m SET
    embedding = n.embedding,
    embedding_model = CASE
        WHEN n.memory_id IS NULL THEN '' WHEN n.embedding IS NULL THEN %(refused)s ELSE %(made_by)s END,
    lexical = coalesce(n.lexical, m.lexical)
FROM memories_memory old LEFT JOIN memories_nextembedding n
    ON n.tenant_id = %(tenant)s AND n.memory_id = old.id AND n.embedding_model = %(next)s
WHERE old.tenant_id = %(tenant)s AND old.agent_id = %(agent)s
    AND m.tenant_id = %(tenant)s AND m.id = old.id
"""
# What was computed from the old vectors is emptied or marked: their jobs compute it again. Nobody sees both kinds.
_AFTER = (
    """
    UPDATE memories_mind SET embedding_model = %(name)s, embedding_dimension = %(dimension)s
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    """,
    "UPDATE memories_cluster SET centroid = NULL, stale = true WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s",
    """
    UPDATE memories_episode SET embedding = NULL, embedding_model = ''
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND (embedding IS NOT NULL OR embedding_model <> '')
    """,
    """
    UPDATE memories_bufferitem SET embedding = NULL, embedding_model = ''
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND (embedding IS NOT NULL OR embedding_model <> '')
    """,
    # All of them, stale or not: a new version of the row keeps neighborhoods that are being computed from being written.
    "UPDATE memories_upkeep SET stale = true WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s",
)
_DROP = "DELETE FROM memories_nextembedding WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s"


@dataclass(frozen=True, kw_only=True)
class ModelSwitch:
    """The numbers of rows that a switch changed."""

    memories: int
    #: Texts that the new model cannot read: found by their words alone.
    refused: int
    #: Memories stored at the last moment, which the backlog embeds.
    left: int
    #: How long the agent's writers waited.
    seconds: float


def take_over(
    *, agent_id: UUID, model: EmbeddingModel, actor: str, leave: bool = False
) -> ModelSwitch | None:
    """Give the agent its next vectors, in the open transaction; return none, and do nothing, while some are missing.

    `leave` takes over in any case: the backlog embeds what is missing. An agent that has the model already only loses
    the rows that were made for it. At most fifteen statements, however many memories.
    """
    lock_minds([agent_id])
    started = time.perf_counter()
    before = model_of(agent_id)
    if before == model:
        change(_DROP, agent=agent_id)
        return ModelSwitch(memories=0, refused=0, left=0, seconds=time.perf_counter() - started)
    ((missing,),) = fetch(_MISSING, agent=agent_id, next=name_of(model))
    if missing and not leave:
        return None
    _recount_words(agent_id)
    refused = NextEmbedding.objects.filter(agent_id=agent_id, embedding=None).count()
    made_by = embedder_for(model).model
    memories = change(
        _SWITCH, agent=agent_id, next=name_of(model), made_by=made_by, refused=REFUSED + made_by
    )
    for statement in _AFTER:
        change(statement, agent=agent_id, name=model.name, dimension=model.dimension)
    change(_DROP, agent=agent_id)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"moved {memories} memories from the embedding model {before} to {model}",
        detail={"refused": refused, "left_to_backlog": missing},
    )
    return ModelSwitch(
        memories=memories, refused=refused, left=missing, seconds=time.perf_counter() - started
    )


def _recount_words(agent_id: UUID) -> None:
    """Update the term counts where more or fewer words of a memory will fit into the index than before."""
    changed = list(
        NextEmbedding.objects.filter(
            agent_id=agent_id, lexical__isnull=False, memory__status=MemoryStatus.ACTIVE
        ).values_list("memory__lexical", "lexical")
    )
    count_terms(agent_id, [terms_of(old) for old, _ in changed], sign=-1)
    count_terms(agent_id, [terms_of(new) for _, new in changed], sign=1)

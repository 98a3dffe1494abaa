"""Store the knowledge of an agent's template again where the agent has lost it."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.templates import find_template
from apps.audit.models import AuditAction, AuditEvent
from apps.memories.models import Memory
from apps.memories.services.store.remember import store
from arbor.agents.birth import first_knowledge
from arbor.errors import NotFound, TemplateInvalid
from arbor.memory.content import content_hash


def reseed_knowledge(agent: Agent) -> tuple[UUID, ...]:
    """Store the knowledge of an agent's template that it has no memory of, and return the ids of the new memories.

    Knowledge stays away that a person archived, revised or purged: archived memories count as known, and the records of
    purges name the hashes of what they deleted. Nothing is stored for a template that is gone or cannot be read.
    """
    try:
        spec = find_template(agent.template_name).spec
    except (NotFound, TemplateInvalid):
        return ()
    knowledge = {
        content_hash(memory.content): memory for memory in first_knowledge(spec, now=datetime.now(UTC))
    }
    memories = Memory.objects.filter(agent_id=agent.id, content_hash__in=list(knowledge))
    known = {bytes(digest) for digest in memories.values_list("content_hash", flat=True)}
    missing = [memory for digest, memory in knowledge.items() if digest not in known]
    if missing:
        purged = _purged_hashes(agent.id)
        missing = [memory for memory in missing if content_hash(memory.content).hex() not in purged]
    if not missing:
        return ()
    stored = store(agent_id=agent.id, memories=missing, vectors=None)
    return tuple(memory_id for memory_id in stored.ids if memory_id not in stored.duplicates)


def _purged_hashes(agent_id: UUID) -> set[str]:
    purges = AuditEvent.objects.filter(agent_id=agent_id, action=AuditAction.MEMORIES_PURGED)
    details = purges.values_list("detail__content_hashes", flat=True)
    return {digest for hashes in details for digest in (hashes or {}).values()}

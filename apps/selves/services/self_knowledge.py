"""The traits, values and capabilities of an agent, and the system prompt that they are part of."""

from __future__ import annotations

from uuid import UUID

from apps.agents.models import Agent
from apps.agents.services.lookup import genome_of
from apps.selves.models import IdentityAspect
from arbor.agents.character import Character, to_system_prompt
from arbor.selves.self_knowledge import SelfKnowledge, self_knowledge_of
from arbor.selves.values import QUALITIES, BeliefStatus

_COLUMNS = ("id", "kind", "content", "strength", "status")


def load_self_knowledge(agent_id: UUID) -> SelfKnowledge:
    """Return an agent's traits, values and capabilities. One statement."""
    aspects = IdentityAspect.objects.filter(agent_id=agent_id, kind__in=QUALITIES)
    return self_knowledge_of(aspects.exclude(status=BeliefStatus.DROPPED).values(*_COLUMNS))


def system_prompt_of(agent: Agent, knowledge: SelfKnowledge | None = None) -> str:
    """Return the agent's character as the system prompt of its heartbeats and conversations.

    One statement; none if `knowledge` is given.
    """
    return to_system_prompt(
        Character.model_validate(agent.character),
        name=agent.name,
        genome=genome_of(agent),
        knowledge=knowledge or load_self_knowledge(agent.id),
    )

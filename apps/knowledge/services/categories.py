"""The categories of documents that an agent finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db import transaction

from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.knowledge.models import AgentKnowledge
from apps.tenants.scope import current_tenant
from arbor.errors import LimitReached
from arbor.knowledge.files import checked_category

#: Categories of one agent at most.
MAX_CATEGORIES = 100


def categories_of(agent_id: UUID) -> list[str] | None:
    """Return the categories of documents that an agent finds; None: all. "" means documents without one."""
    row = AgentKnowledge.objects.filter(agent_id=agent_id).first()
    return None if row is None else list(row.categories)


@transaction.atomic
def set_categories(*, agent_id: UUID, categories: Iterable[str] | None, actor: str) -> list[str] | None:
    """Limit the documents that an agent finds to some categories, "" for documents without one; None: the agent finds all documents.

    An empty list hides all documents. Raises NotFound for an unknown agent, Invalid for a category that is too long, and
    LimitReached for too many categories.
    """
    agent = agent_by_id(agent_id)
    if categories is None:
        AgentKnowledge.objects.filter(agent_id=agent_id).delete()
        chosen = None
    else:
        chosen = sorted({checked_category(category) for category in categories})
        if len(chosen) > MAX_CATEGORIES:
            raise LimitReached(f"an agent has at most {MAX_CATEGORIES} categories, got {len(chosen)}")
        AgentKnowledge.objects.update_or_create(
            agent_id=agent_id,
            defaults={"tenant_id": current_tenant(), "categories": chosen, "changed_by": actor},
        )
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"{agent.name} finds {describe_categories(chosen)}",
        detail={"categories": chosen},
    )
    return chosen


def describe_categories(categories: Sequence[str] | None) -> str:
    """Describe the documents that an agent with these categories finds, such as `documents of no category, policies`."""
    if categories is None:
        return "all published documents"
    if not categories:
        return "no document"
    return f"documents of {', '.join(category or 'no category' for category in categories)}"

"""Grants of actions, and uses of grants, for tests."""

from __future__ import annotations

import factory
from django.utils import timezone

from apps.agents.models import Agent
from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.explanations import action_names
from apps.authority.services.grants import grant_actions
from arbor.authority.grants import action_resource
from tests.factories.rows import TenantRowFactory


class CapabilityUseFactory(TenantRowFactory[CapabilityUse]):
    class Meta:
        model = CapabilityUse

    at = factory.LazyFunction(timezone.now)


def allow(agent: Agent, *actions: str) -> None:
    """Grant exactly these actions to an agent, in the tenant's open transaction."""
    wanted = [action_resource(action) for action in actions]
    others = CapabilityGrant.objects.filter(agent=agent, revoked_at=None).exclude(resource__in=wanted)
    others.update(revoked_at=timezone.now(), revoked_by="test", revoked_reason="not for this test")
    grant_actions(agents=[agent], actions=actions, actor="test")


def allow_also(agent: Agent, *actions: str) -> None:
    """Grant these actions to an agent besides its own."""
    grant_actions(agents=[agent], actions=actions, actor="test")


def allowed_actions(agent: Agent) -> list[str]:
    """Return the actions that an agent has a grant of."""
    return action_names(agent.id)

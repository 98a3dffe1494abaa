"""Choose the models of calls outside heartbeats: of conversations and of workflow steps."""

from __future__ import annotations

from django.conf import settings

from apps.agents.models import Agent, AgentPolicy
from apps.agents.services.lookup import own_model
from apps.default_model import default_model
from arbor.heartbeat.tiers import ThinkTier, models_of
from arbor.heartbeat.usage import BudgetLevel
from arbor.models.handles import is_reflex


def models_at(agent: Agent, level: BudgetLevel) -> tuple[str, ...]:
    """Return the models of an agent outside its heartbeats: by default those of the standard tier (seed 003, 10.5).

    At lower budget levels they are of a cheaper tier; at the level `halt` only free models are returned.
    """
    policy = AgentPolicy.objects.filter(agent_id=agent.id).first()
    models = models_of(
        ThinkTier.STANDARD.lowered(level.tiers_down),
        policy=policy.tier_models if policy else {},
        own=own_model(agent),
        installed=settings.ARBOR_TIER_MODELS,
        default=default_model(),
    )
    if level is not BudgetLevel.HALT:
        return models
    return tuple(handle for handle in models if is_reflex(handle))

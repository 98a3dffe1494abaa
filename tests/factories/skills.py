"""Skills, active skills and subscriptions for tests."""

from __future__ import annotations

from uuid import UUID

import factory

from apps.knowledge.models import AgentSkill, SignalSubscription, Skill, SkillVersion
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import TenantRowFactory


class SkillVersionFactory(TenantRowFactory[SkillVersion]):
    class Meta:
        model = SkillVersion

    digest = factory.Sequence(lambda n: f"{n:064x}")
    name = "lamps"
    text = "---\nname: lamps\ndescription: Of lamps.\n---\nCount the lamps."
    created_by = "user:nora"


class SkillFactory(TenantRowFactory[Skill]):
    class Meta:
        model = Skill

    name = "lamps"
    digest = factory.Sequence(lambda n: f"{n:064x}")
    tokens = 5


class AgentSkillFactory(AgentRowFactory[AgentSkill]):
    class Meta:
        model = AgentSkill

    position = 1
    name = "lamps"


class SignalSubscriptionFactory(AgentRowFactory[SignalSubscription]):
    class Meta:
        model = SignalSubscription

    names = factory.LazyFunction(lambda: ["memory.goal_*"])
    position = UUID(int=0)
    created_by = "user:nora"

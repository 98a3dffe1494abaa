"""Models of skills, and of what agents subscribe to."""

from apps.knowledge.models.skills import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill, SkillVersion
from apps.knowledge.models.subscriptions import SignalSubscription

__all__ = ["AgentSkill", "GlobalSkill", "GlobalSkillVersion", "SignalSubscription", "Skill", "SkillVersion"]

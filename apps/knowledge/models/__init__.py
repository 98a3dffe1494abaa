"""Models of skills, and of what agents subscribe to."""

from apps.knowledge.models.skills import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill, SkillVersion

__all__ = ["AgentSkill", "GlobalSkill", "GlobalSkillVersion", "Skill", "SkillVersion"]

"""Models of documents and their passages, of skills, and of what agents find and subscribe to."""

from apps.knowledge.models.documents import AgentKnowledge, Document, DocumentVersion
from apps.knowledge.models.passages import Passage, PassageTerm
from apps.knowledge.models.skills import AgentSkill, GlobalSkill, GlobalSkillVersion, Skill, SkillVersion
from apps.knowledge.models.subscriptions import SignalSubscription

__all__ = [
    "AgentKnowledge",
    "AgentSkill",
    "Document",
    "DocumentVersion",
    "GlobalSkill",
    "GlobalSkillVersion",
    "Passage",
    "PassageTerm",
    "SignalSubscription",
    "Skill",
    "SkillVersion",
]

"""Models of documents, their versions and passages, and of what agents may find."""

from apps.knowledge.models.documents import AgentKnowledge, Document, DocumentVersion
from apps.knowledge.models.passages import Passage, PassageTerm

__all__ = ["AgentKnowledge", "Document", "DocumentVersion", "Passage", "PassageTerm"]

"""Search what the organization knows for a turn of a conversation: documents, outputs of workflows, the audit log.

The agent's own memories come by recall, which ranks them with more than their likeness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.knowledge.services.search import search_my_memories
from arbor.heartbeat.search_views import passage_view
from arbor.heartbeat.views import PassageView
from arbor.knowledge.merging import MOST_RESULTS, SearchSource
from arbor.memory.recall.recall_request import QUERY_LENGTH

_SOURCES = (SearchSource.AUDIT, SearchSource.WORKFLOW, SearchSource.KNOWLEDGE)


@dataclass(frozen=True, kw_only=True)
class TurnKnowledge:
    """The results for a turn, the most similar first."""

    passages: Sequence[PassageView]
    #: What was not searched, or only in part, in words.
    faults: Sequence[str]


def search_for_turn(*, tenant_id: UUID, agent_id: UUID, text: str) -> TurnKnowledge:
    """Search for a person's turn, outside any transaction, because the text is embedded."""
    found = search_my_memories(
        tenant_id=tenant_id, agent_id=agent_id, text=text[:QUERY_LENGTH], limit=MOST_RESULTS, only=_SOURCES
    )
    views = sorted(map(passage_view, found.results), key=lambda view: -view.similarity)
    return TurnKnowledge(passages=views, faults=found.notes)

"""Search documents, outputs of workflows and the audit log for a turn of a conversation.

The agent's own memories are recalled instead, which ranks them by more than their similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.knowledge.services.search import search_my_memories
from arbor.heartbeat.prompts.sections.moment import MEMORY_LENGTH
from arbor.heartbeat.views import PassageView
from arbor.knowledge.merging import MAX_RESULTS, SearchSource
from arbor.memory.content import content_hash
from arbor.memory.recall.recall_request import QUERY_LENGTH
from arbor.memory.values import Recalled

_SOURCES = (SearchSource.AUDIT, SearchSource.WORKFLOW, SearchSource.KNOWLEDGE)


@dataclass(frozen=True, kw_only=True)
class TurnKnowledge:
    """The results for a turn, the most similar first."""

    passages: Sequence[PassageView]
    #: Sources that were not searched, or only in part, in words.
    faults: Sequence[str]


def search_for_turn(
    *, tenant_id: UUID, agent_id: UUID, text: str, recalled: Sequence[Recalled]
) -> TurnKnowledge:
    """Search for a person's turn, outside any transaction, because the text is embedded.

    Texts that the prompt shows whole already, as recalled memories, are no results.
    """
    known = {content_hash(memory.content) for memory in recalled if len(memory.content) <= MEMORY_LENGTH}
    found = search_my_memories(
        tenant_id=tenant_id,
        agent_id=agent_id,
        text=text[:QUERY_LENGTH],
        limit=MAX_RESULTS + len(known),
        only=_SOURCES,
    )
    results = [result for result in found.results if content_hash(result.content) not in known]
    views = [
        PassageView(
            id=result.id,
            title=result.citation,
            place=f"{result.at:%Y-%m-%d}",
            text=result.content,
            similarity=min(1.0, max(0.0, result.similarity)),
        )
        for result in results[:MAX_RESULTS]
    ]
    views.sort(key=lambda view: -view.similarity)
    return TurnKnowledge(passages=views, faults=found.notes)

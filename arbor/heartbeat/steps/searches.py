"""The actions `search_my_memories` and `search_knowledge`: their need, and their results in the next round trip."""

from __future__ import annotations

from arbor.authority.grants import AUDIT_RESOURCE
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.needs import SourceSearch
from arbor.heartbeat.results import ActionOutcome, ActionResult, action_result
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps.authority import may_use
from arbor.ids import read_id
from arbor.knowledge.merging import MOST_RESULTS, SEARCH_KNOWLEDGE, MemorySearch, SearchSource, SourceResult
from arbor.quotations import line, shorten

#: Characters of a result within the summary, and in the next round trip.
_GLIMPSE = 160
_RESULT_LENGTH = 1_200


def need_of(heartbeat: HeartbeatState, decision: Decision) -> SourceSearch:
    """Return the search that an action asks for."""
    query = str(decision.params["query"])
    return SourceSearch(
        agent_id=heartbeat.agent_id,
        text=query,
        limit=MOST_RESULTS,
        now=heartbeat.now,
        vector=heartbeat.vectors.get(query),
        model=heartbeat.embedding_model,
        audit=may_use(heartbeat, AUDIT_RESOURCE),
        documents_only=decision.action == SEARCH_KNOWLEDGE,
    )


def result_of(decision: Decision, found: MemorySearch) -> ActionResult:
    """Return the action's result, which names what was not searched."""
    query, notes = str(decision.params["query"]), "".join(f"; {note}" for note in found.notes)
    if not found.results:
        return action_result(decision, ActionOutcome.PARTIAL, f"found nothing about {query!r}{notes}")
    glimpses = "; ".join(shorten(result.content, _GLIMPSE) for result in found.results[:3])
    memories = [
        memory_id
        for result in found.results
        if result.source is SearchSource.MEMORY and (memory_id := read_id(result.id)) is not None
    ]
    return action_result(
        decision,
        ActionOutcome.PARTIAL if found.missing else ActionOutcome.SUCCESS,
        f"{len(found.results)} results about {query!r}: {glimpses}{notes}",
        memories,
        brought="\n".join([*map(_line, found.results), *found.notes]),
    )


def _line(result: SourceResult) -> str:
    source = result.citation or "your memory"
    return f"[{result.id}] {line(source)}, {result.at:%Y-%m-%d}: {line(result.content, _RESULT_LENGTH)}"

"""Read the search of all sources of an agent. Nothing is counted as a use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.console.forms import agent_choices, chosen_agent
from apps.knowledge.services.search import search_my_memories
from arbor.errors import Invalid
from arbor.knowledge.merging import MemorySearch
from arbor.knowledge.search_terms import TERM_LENGTH
from arbor.memory.recall.recall_request import QUERY_LENGTH

LIMITS = (5, 10, 25)


@dataclass(frozen=True, kw_only=True)
class SearchPage:
    """The form's values, and the answer, if something was asked."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    query: str
    term: str
    limit: int
    problem: str = ""
    found: MemorySearch | None = None

    query_length = QUERY_LENGTH
    term_length = TERM_LENGTH
    limits = LIMITS


def read_search(parameters: Any, *, tenant_id: UUID) -> SearchPage:
    """Read the page for the parameters of its address, a QueryDict."""
    agent = chosen_agent(parameters)
    limit = parameters.get("limit", "")
    asked: dict[str, Any] = {
        "agents": agent_choices(),
        "agent": agent,
        "query": parameters.get("q", "").strip(),
        "term": parameters.get("term", "").strip()[:TERM_LENGTH],
        "limit": int(limit) if limit in map(str, LIMITS) else LIMITS[0],
    }
    if agent is None or not asked["query"]:
        missing_agent = bool(asked["query"]) and agent is None
        return SearchPage(**asked, problem="Choose an agent first." if missing_agent else "")
    try:
        found = search_my_memories(
            tenant_id=tenant_id,
            agent_id=agent.id,
            text=asked["query"],
            term=asked["term"],
            limit=asked["limit"],
        )
    except Invalid as refusal:
        return SearchPage(**asked, problem=f"Nothing was searched: {refusal}.")
    return SearchPage(**asked, found=found)

"""Recall memories and episodes, with the terms of each score."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.memories.services.jobs.episodes import MAX_LIMIT, RecalledEpisode, recall_episodes
from apps.memories.services.recall.partial_recall import partial_recall_about
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall_request import EVERYTHING, RecallFilter, RecallRequest
from arbor.memory.values import MemoryType
from config.cli.kit import Output
from config.cli.lookup import find_concept, find_episode
from config.cli.memory.views import recalled_line, receipt_of, render_recalled, theme_line
from config.cli.output import short, stamp
from config.cli.tenancy import ChosenAgent, with_agent


@with_agent
def recall_memories(
    agent: ChosenAgent, /, *, query: str, limit: int, episodes: bool, **narrowed: Any
) -> Output:
    """Recall an agent's memories about QUERY, best first, with what each term adds to the score."""
    only = _filter(agent, **narrowed)
    if episodes:
        if only != EVERYTHING:
            raise click.UsageError(
                "--episodes recalls whole episodes: leave out what narrows single memories"
            )
        return _recalled_episodes(agent, query, limit)
    found = recall(
        tenant_id=agent.tenant_id,
        request=RecallRequest(agent_id=agent.id, text=query, limit=limit, only=only),
    )
    themes = partial_recall_about(tenant_id=agent.tenant_id, agent_id=agent.id, text=query, recalled=found)
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "results": [recalled_line(memory) for memory in found],
        "tip_of_the_tongue": [theme_line(theme) for theme in themes],
    }
    if only != EVERYTHING and not found:
        return Output(value, people=f"{agent.name} remembers nothing of that kind.")
    empty = (
        f"{agent.name} remembers nothing that fits. Give it something:"
        f' [bold]arbor remember {escape(agent.name)} "…"[/bold], or [bold]arbor memory ingest FILE --agent'
        f" {escape(agent.name)}[/bold]"
    )
    return Output(value, people=render_recalled(found, themes) if found else empty)


def _filter(
    agent: ChosenAgent,
    *,
    types: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    session: str,
    concept: str | None,
    episode: str | None,
    min_importance: float,
    min_trust: float,
) -> RecallFilter:
    """Return the filter that the options say. Raises Invalid, and NotFound for a concept or an episode."""
    with tenant_transaction(agent.tenant_id):
        concept_id = find_concept(agent, concept) if concept is not None else None
        episode_id = find_episode(agent, episode) if episode is not None else None
    return RecallFilter(
        types=frozenset(MemoryType(name) for name in types),
        since=since,
        until=until,
        session=session,
        concept=concept_id,
        episode=episode_id,
        min_importance=min_importance,
        min_trust=min_trust,
    )


def _recalled_episodes(agent: ChosenAgent, query: str, limit: int) -> Output:
    """Recall whole episodes, best first, with what each term adds to the score."""
    found = recall_episodes(
        tenant_id=agent.tenant_id, agent_id=agent.id, text=query, limit=min(limit, MAX_LIMIT)
    )
    value = {
        "agent": agent.name,
        "tenant": agent.tenant_slug,
        "query": query,
        "episodes": [_line(episode) for episode in found],
    }
    empty = f"{escape(agent.name)} has no episode yet: [bold]arbor memory ingest[/bold] makes some."
    return Output(value, people=_rendered(found) if found else empty)


def _line(episode: RecalledEpisode) -> dict[str, Any]:
    return {
        "id": str(episode.id),
        "score": round(episode.score, 4),
        "terms": {name: round(value, 4) for name, value in episode.terms.as_dict().items()},
        "session": episode.session,
        "started_at": stamp(episode.started_at),
        "last_at": stamp(episode.last_at),
        "ended_at": stamp(episode.ended_at),
        "memories": episode.size,
        "summary": episode.summary,
        "summarized_by": episode.summarized_by,
    }


def _rendered(found: list[RecalledEpisode]) -> RenderableType:
    made = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    made.add_column(justify="right", style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for episode in found:
        about = f"{episode.started_at:%Y-%m-%d %H:%M}  {short(episode.id)}  {episode.size} memories  {receipt_of(episode.terms)}"
        value = Text(episode.summary) if episode.summary else Text("not summarized yet", style="italic")
        made.add_row(f"{episode.score:.2f}", Group(value, Text(about, style="dim")))
    return made

"""`arbor recall --episodes`: which stretches of an agent's time a text is about."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from apps.memories.services.jobs.episodes import MAX_LIMIT, RecalledEpisode, recall_episodes
from config.cli.memory.finding import short
from config.cli.memory_views import receipt_of
from config.cli.output import show, stamp
from config.cli.tenancy import ChosenAgent


def show_recalled_episodes(chosen: ChosenAgent, query: str, limit: int, *, as_json: bool) -> None:
    """Show the episodes that a query is about, best first, with what each term adds to the score. Only a look."""
    found = recall_episodes(
        tenant_id=chosen.tenant_id, agent_id=chosen.id, text=query, limit=min(limit, MAX_LIMIT)
    )
    told = {
        "agent": chosen.name,
        "tenant": chosen.tenant_slug,
        "query": query,
        "episodes": [_line(episode) for episode in found],
    }
    empty = f"{escape(chosen.name)} has no episode yet: [bold]arbor ingest[/bold] makes some."
    show(told, as_json=as_json, people=_rendered(found) if found else empty)


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
    for each in found:
        about = f"{each.started_at:%Y-%m-%d %H:%M}  {short(each.id)}  {each.size} memories  {receipt_of(each.terms)}"
        told = Text(each.summary) if each.summary else Text("not summarized yet", style="italic")
        made.add_row(f"{each.score:.2f}", Group(told, Text(about, style="dim")))
    return made

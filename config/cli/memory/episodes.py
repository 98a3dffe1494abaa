"""Show the episodes of an agent, or one episode with its memories."""

from __future__ import annotations

from rich.console import Group
from rich.markup import escape

from apps.memories.models import Episode
from apps.memories.services.jobs.episodes import episode_memories
from config.cli.kit.columns import OutputColumn, listing, row_to_dict, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, in_agent_transaction
from config.cli.memory.archive import counted_memories


@in_agent_transaction
def show_episodes(agent: ChosenAgent, *, episode_id: str | None, limit: int) -> Output:
    """List an agent's episodes, the latest first; or show one with its summary and memories."""
    if episode_id is None:
        return _show_all(agent, limit)
    return _show_one(agent, episode_id, limit)


def _show_all(agent: ChosenAgent, limit: int) -> Output:
    episodes = Episode.objects.filter(agent_id=agent.id).defer("embedding", "lexical")
    return listing(
        "episodes",
        list(episodes.order_by("-last_at", "-id")[:limit]),
        EPISODE_COLUMNS,
        about={"agent": agent.name},
        empty=f"{agent.name} has no episode yet.",
    )


def _show_one(agent: ChosenAgent, episode_id: str, limit: int) -> Output:
    episode = Episode.objects.defer("embedding", "lexical").get(id=find_id(agent, Episode, episode_id))
    members = episode_memories(episode_id=episode.id, limit=limit)
    text = Group(
        f"[bold]{escape(episode.summary) or _unsummarized(episode)}[/bold]",
        f"[dim]{episode.id}, {episode.started_at:%Y-%m-%d %H:%M} UTC, {_duration(episode)}, {counted_memories(episode.size)}[/dim]",
        table_of(members, MEMBER_COLUMNS),
    )
    memories = [row_to_dict(member, MEMBER_COLUMNS) for member in members]
    return Output(
        {**row_to_dict(episode, EPISODE_COLUMNS), "agent": agent.name, "memories": memories}, text=text
    )


def _duration(episode: Episode) -> str:
    return f"{(episode.last_at - episode.started_at).total_seconds() / 60:.0f} min"


def _unsummarized(episode: Episode) -> str:
    if episode.failures:
        return f"not summarized, {episode.failures}× failed"
    return "not summarized yet" if episode.ended_at else "still open"


EPISODE_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("started_at", "began", cell=lambda moment: f"{moment:%Y-%m-%d %H:%M}"),
    OutputColumn(head="lasted", value=lambda episode: _duration(episode) if episode.ended_at else "open"),
    OutputColumn("size", "memories"),
    OutputColumn("session", "session", cell=lambda session: cut(session, 30)),
    OutputColumn(head="summary", value=lambda episode: cut(episode.summary) or _unsummarized(episode)),
    *(
        OutputColumn(key)
        for key in ("last_at", "ended_at", "summary", "summarized_by", "failures", "failure")
    ),
)
MEMBER_COLUMNS = (
    OutputColumn("sequence", "#"),
    OutputColumn("occurred_at", "at", cell=lambda moment: f"{moment:%H:%M}"),
    OutputColumn("id", "id", cell=short),
    OutputColumn("role", "who"),
    OutputColumn("content", "memory", cell=lambda content: cut(content, 300)),
)

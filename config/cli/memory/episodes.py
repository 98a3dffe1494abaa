"""`arbor memory episodes`: an agent's episodes, and one with its members."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape

from apps.memories.models import Episode
from apps.memories.services.episodes import episode_memories
from config.cli.kit import Output
from config.cli.lookup import find_episode
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, in_agent_transaction


@in_agent_transaction
def show_episodes(agent: ChosenAgent, *, episode_id: str | None, limit: int) -> Output:
    """List an agent's episodes, the latest first; or show one with its summary and memories."""
    if episode_id is None:
        return _show_all(agent, limit)
    return _show_one(agent, episode_id, limit)


def _show_all(agent: ChosenAgent, limit: int) -> Output:
    found = Episode.objects.filter(agent_id=agent.id).defer("embedding", "lexical")
    rows = [episode_line(each) for each in found.order_by("-last_at")[:limit]]
    people: Any = table(
        ("id", "began", "lasted", "memories", "session", "summary"),
        (
            (
                short(row["id"]),
                f"{row['started_at']:%Y-%m-%d %H:%M}",
                _lasted(row) if row["ended_at"] else "open",
                row["size"],
                cut(row["session"], 30),
                cut(row["summary"]) or _unsummarized(row),
            )
            for row in rows
        ),
    )
    told = {"agent": agent.name, "episodes": rows}
    return Output(told, people=people if rows else f"{agent.name} has no episode yet.")


def _show_one(agent: ChosenAgent, episode_id: str, limit: int) -> Output:
    episode = Episode.objects.defer("embedding", "lexical").get(id=find_episode(agent, episode_id))
    members = episode_memories(episode_id=episode.id, limit=limit)
    row = episode_line(episode)
    told = {
        **row,
        "agent": agent.name,
        "memories": [
            {
                "id": each.id,
                "sequence": each.sequence,
                "role": each.role,
                "occurred_at": each.occurred_at,
                "content": each.content,
            }
            for each in members
        ],
    }
    people = Group(
        f"[bold]{escape(row['summary']) or _unsummarized(row)}[/bold]",
        f"[dim]{row['id']}, {row['started_at']:%Y-%m-%d %H:%M} UTC, {_lasted(row)}, {row['size']} memories[/dim]",
        table(
            ("#", "at", "id", "who", "memory"),
            (
                (
                    each.sequence,
                    f"{each.occurred_at:%H:%M}",
                    short(each.id),
                    each.role,
                    cut(each.content, 300),
                )
                for each in members
            ),
        ),
    )
    return Output(told, people=people)


def episode_line(episode: Episode) -> dict[str, Any]:
    """Return an episode as a line of a list, for JSON."""
    return {
        "id": episode.id,
        "session": episode.session,
        "started_at": episode.started_at,
        "last_at": episode.last_at,
        "ended_at": episode.ended_at,
        "size": episode.size,
        "summary": episode.summary,
        "summarized_by": episode.summarized_by,
        "failures": episode.failures,
        "failure": episode.failure,
    }


def _lasted(row: dict[str, Any]) -> str:
    return f"{(row['last_at'] - row['started_at']).total_seconds() / 60:.0f} min"


def _unsummarized(row: dict[str, Any]) -> str:
    if row["failures"]:
        return f"not summarized, {row['failures']}× failed"
    return "not summarized yet" if row["ended_at"] else "still open"

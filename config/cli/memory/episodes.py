"""`arbor memory episodes`: an agent's episodes, and one with its members."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group
from rich.markup import escape

from apps.memories.models import Episode
from apps.memories.services.jobs.episodes import episode_memories
from apps.tenants.scope import tenant_transaction
from config.cli.memory.finding import find_episode, short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import ChosenAgent, choose_agent, tenant_option


@click.command("episodes")
@click.argument("agent")
@click.argument("episode_id", metavar="[EPISODE]", required=False)
@click.option("-k", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@tenant_option
@json_option
def episodes(agent: str, episode_id: str | None, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """List an agent's episodes, the latest first; or show one with its summary and its memories in order.

    \b
    Examples:
      arbor memory episodes Vega
      arbor memory episodes Vega 77aa01c2
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        if episode_id is None:
            _show_all(chosen, limit, as_json)
        else:
            _show_one(chosen, episode_id, limit, as_json)


def _show_all(chosen: ChosenAgent, limit: int, as_json: bool) -> None:
    found = Episode.objects.filter(agent_id=chosen.id).defer("embedding", "lexical")
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
    told = {"agent": chosen.name, "episodes": rows}
    show(told, as_json=as_json, people=people if rows else f"{chosen.name} has no episode yet.")


def _show_one(chosen: ChosenAgent, episode_id: str, limit: int, as_json: bool) -> None:
    episode = Episode.objects.defer("embedding", "lexical").get(id=find_episode(chosen, episode_id))
    members = episode_memories(episode_id=episode.id, limit=limit)
    row = episode_line(episode)
    told = {
        **row,
        "agent": chosen.name,
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
    show(told, as_json=as_json, people=people)


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

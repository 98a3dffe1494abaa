"""`arbor memory buffer` and `arbor memory health`: what is only held, and how maintenance is doing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Group
from rich.markup import escape

from apps.memories.models import BufferItem
from apps.memories.services.health import read_health
from apps.tenants.scope import tenant_transaction
from arbor.memory.health import State
from config.cli.memory.finding import short
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import choose_agent, tenant_option


@click.command("buffer")
@click.argument("agent")
@click.option("-k", "--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@tenant_option
@json_option
def buffer(agent: str, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what an agent holds for a while: it expires, or becomes a memory when it matters.

    \b
    Example: arbor memory buffer Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        held = BufferItem.objects.filter(
            agent_id=chosen.id, expires_at__gt=datetime.now(UTC), promoted_to__isnull=True
        ).defer("embedding", "lexical")
        rows = [
            {
                "id": each.id,
                "content": each.content,
                "importance": each.importance,
                "accesses": each.accesses,
                "source": each.source,
                "held_at": each.created_at,
                "expires_at": each.expires_at,
            }
            for each in held.order_by("-importance", "expires_at")[:limit]
        ]
    people: Any = table(
        ("id", "imp", "came back", "expires", "source", "held"),
        (
            (
                short(row["id"]),
                f"{row['importance']:.2f}",
                f"{row['accesses']}×",
                ago(row["expires_at"]),
                cut(row["source"], 30),
                cut(row["content"]),
            )
            for row in rows
        ),
    )
    told = {"agent": chosen.name, "held": rows}
    show(told, as_json=as_json, people=people if rows else f"{chosen.name} holds nothing at the moment.")


@click.command("health")
@json_option
def health(as_json: bool) -> None:
    """Show how maintenance is doing, over all tenants: what waits, each job's last run. Exit code 1 when a person must act.

    \b
    Example: arbor memory health
    """
    found = read_health()
    figures: Any = table(
        ("", "figure", "count", "judged", "limit"),
        (
            (each.state, each.metric.replace("_", " "), f"{each.count:,}", f"{each.judged:g}", each.limit)
            for each in found.figures
        ),
    )
    jobs: Any = table(
        ("", "job", "every", "last ended", "took", "done", "failed", "error"),
        (
            (
                each.state,
                each.name,
                f"{each.period_s:g} s",
                f"{each.ended_ago_s:.0f} s ago",
                f"{each.seconds:.2f} s",
                each.done,
                each.failed,
                each.error,
            )
            for each in found.jobs
        ),
    )
    told = [
        f"[bold]{state}[/bold]: {escape(what)}\n  → {escape(remedy)}"
        for state, what, remedy in found.findings
    ]
    nothing = "[dim]No job has run yet: is a worker running?[/dim]"
    people = Group(
        *(told or ["[green]Maintenance keeps up.[/green]"]), "", figures, "", jobs if found.jobs else nothing
    )
    show(found.as_json(), as_json=as_json, people=people)
    if found.state is State.CRITICAL:
        raise click.exceptions.Exit(1)

"""`arbor memory health`: how maintenance is doing."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Group
from rich.markup import escape

from apps.memories.services.jobs.health import read_health
from arbor.memory.health import State
from config.cli.output import json_option, show, table


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

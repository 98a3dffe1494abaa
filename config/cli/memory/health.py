"""Show the health of maintenance."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape

from apps.memories.services.jobs.health import read_health
from arbor.memory.health import HealthState
from config.cli.kit import ExitCode, Output
from config.cli.output import table


def show_health() -> Output:
    """Show the state of maintenance over all tenants: its backlogs and each job's last run."""
    found = read_health()
    figures: Any = table(
        ("", "figure", "count", "judged", "limit"),
        (
            (
                figure.state,
                figure.metric.replace("_", " "),
                f"{figure.count:,}",
                f"{figure.judged:g}",
                figure.limit,
            )
            for figure in found.figures
        ),
    )
    jobs: Any = table(
        ("", "job", "every", "last ended", "took", "done", "failed", "error"),
        (
            (
                job.state,
                job.name,
                f"{job.period_s:g} s",
                f"{job.ended_ago_s:.0f} s ago",
                f"{job.seconds:.2f} s",
                job.done,
                job.failed,
                job.error,
            )
            for job in found.jobs
        ),
    )
    findings = [
        f"[bold]{state}[/bold]: {escape(what)}\n  → {escape(remedy)}"
        for state, what, remedy in found.findings
    ]
    nothing = "[dim]No job has run yet: is a worker running?[/dim]"
    people = Group(
        *(findings or ["[green]Maintenance keeps up.[/green]"]),
        "",
        figures,
        "",
        jobs if found.jobs else nothing,
    )
    code = ExitCode.FAILED if found.state is HealthState.CRITICAL else ExitCode.DONE
    return Output(found.as_json(), people=people, code=code)

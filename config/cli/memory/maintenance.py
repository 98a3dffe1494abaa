"""Show the health of maintenance, and move agents to another embedding model."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rich.console import Group
from rich.markup import escape
from rich.progress import Task, TextColumn

from apps.fleet.seeds.saving import save_seed
from apps.memories.services.embedding.minds import check_dimension, installation_model
from apps.memories.services.embedding.reembed import ModelSwitch, Move, Reembedding, find_moves
from apps.memories.services.jobs.health import read_health
from arbor.embedding.models import EmbeddingModel
from arbor.memory.maintenance.health import HealthState
from arbor.seeds.saving import SeedReason
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import progress_bar, table
from config.cli.kit.tenancy import ChosenAgent, actor, named_or_default_tenant, with_optional_agent


def show_health() -> Output:
    """Show the state of maintenance over all tenants: its backlogs and each job's last run."""
    health = read_health()
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
            for figure in health.figures
        ),
    )
    jobs: Any = table(
        ("", "job", "every", "last ended", "took", "done", "failed", "error"),
        (
            (
                job.state,
                job.name,
                f"{job.period_s:g} s",
                f"{job.ended_ago_s:.0f} s ago" if job.has_run else "never",
                f"{job.seconds:.2f} s",
                job.done,
                job.failed,
                job.error,
            )
            for job in health.jobs
        ),
    )
    findings = [
        f"[bold]{state}[/bold]: {escape(what)}\n  → {escape(remedy)}"
        for state, what, remedy in health.findings
    ]
    nothing = "[dim]No job has run yet: is a worker running?[/dim]"
    text = Group(
        *(findings or ["[green]Maintenance keeps up.[/green]"]),
        "",
        figures,
        "",
        jobs if health.jobs else nothing,
    )
    code = ExitCode.FAILED if health.state is HealthState.CRITICAL else ExitCode.DONE
    return Output(health.as_json(), text=text, code=code)


@with_optional_agent
def reembed(
    agent: ChosenAgent | None,
    *,
    name: str | None,
    dimension: int | None,
    batch: int,
    no_seed: bool,
    tenant_slug: str | None,
) -> Output:
    """Move agents to another embedding model or dimension, while they run."""
    model = _model_of_options(name, dimension)
    tenant = named_or_default_tenant(tenant_slug)
    moves = find_moves(
        model=model,
        actor=actor(),
        tenant_id=tenant.id if tenant else None,
        agent_id=agent.id if agent else None,
    )
    with progress_bar("embedding", "memories", _Rate()) as progress:
        switches = Reembedding(
            model=model,
            actor=actor(),
            batch=batch,
            before=None if no_seed else _save_seed,
            progress=progress,
        ).run(moves)
    return Output(_value(model, moves, switches), text=_for_people(model, moves, switches))


def _save_seed(agent_id: UUID) -> None:
    save_seed(agent_id=agent_id, reason=SeedReason.REEMBED, actor=actor())


def _model_of_options(name: str | None, dimension: int | None) -> EmbeddingModel:
    own = installation_model()
    if name is None and dimension is None:
        return own
    return check_dimension(
        EmbeddingModel(name=own.name if name is None else name, dimension=dimension or own.dimension)
    )


def _value(model: EmbeddingModel, moves: list[Move], switches: list[ModelSwitch]) -> dict[str, Any]:
    return {
        "model": model.name,
        "dimension": model.dimension,
        "agents": [
            {
                "agent": move.name,
                "tenant": move.tenant,
                "from": {"model": move.model.name, "dimension": move.model.dimension},
                "memories": switch.memories,
                "refused": switch.refused,
                "left_to_backlog": switch.left,
                "takeover_s": round(switch.seconds, 3),
            }
            for move, switch in zip(moves, switches, strict=True)
        ],
        "memories": sum(switch.memories for switch in switches),
    }


def _for_people(model: EmbeddingModel, moves: list[Move], switches: list[ModelSwitch]) -> Any:
    if not moves:
        return f"Every agent's vectors are of {escape(str(model))}."
    rows = [
        (
            move.tenant,
            move.name,
            move.model,
            f"{switch.memories:,}",
            switch.refused,
            f"{switch.seconds:.2f} s",
        )
        for move, switch in zip(moves, switches, strict=True)
    ]
    columns = ("tenant", "agent", "moved from", "memories", "cannot be read", "taken over in")
    return table(columns, rows, title=f"Moved to {escape(str(model))}")


class _Rate(TextColumn):
    """A column of a progress bar: memories per second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Any:
        """Return the rate, once there is one."""
        return "" if not task.speed else f"{task.speed:,.0f}/s"

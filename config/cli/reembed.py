"""`arbor reembed`: move agents to another embedding model, online."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
)

from apps.memories.services.embedding.minds import checked, installation_model
from apps.memories.services.embedding.reembed import BATCH, Move, OnProgress, Reembedding, find_moves
from apps.memories.services.embedding.takeover import TakenOver
from apps.tenants.services import tenant_by_slug
from arbor.embedding.models import EmbeddingModel
from config.cli.output import console, json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.command("reembed")
@click.option("--to", "name", metavar="MODEL", help="The model.  [default: ARBOR_EMBEDDING_MODEL]")
@click.option(
    "--dimension",
    type=click.IntRange(min=1),
    help="The length of its vectors.  [default: ARBOR_EMBEDDING_DIMENSION]",
)
@click.option(
    "--agent", "agent_name", metavar="NAME", help="Only this agent.  [default: all that have another]"
)
@tenant_option
@click.option(
    "--batch",
    type=click.IntRange(min=1, max=10_000),
    default=BATCH,
    show_default=True,
    help="Memories that are embedded at once.",
)
@json_option
def reembed(
    name: str | None,
    dimension: int | None,
    agent_name: str | None,
    tenant_slug: str | None,
    batch: int,
    as_json: bool,
) -> None:
    """Move agents to another embedding model or dimension, while they are at work.

    New vectors are made beside the present ones, and taken over all at once for each agent, so recall works throughout.
    Ctrl-C is safe: run it again, and it goes on where it stopped. New agents get the model of the settings anyway; set
    ARBOR_EMBEDDING_MODEL and ARBOR_EMBEDDING_DIMENSION, restart, then run this.

    \b
    Examples:
      arbor reembed
      arbor reembed --to wordllama --dimension 128 --agent Vega
      arbor reembed --to tei/bge-small --dimension 384 --tenant acme
    """
    model = _wanted(name, dimension)
    chosen = choose_agent(agent_name, tenant_slug) if agent_name else None
    tenant = tenant_by_slug(tenant_slug) if tenant_slug and chosen is None else None
    moves = find_moves(
        model=model,
        actor=actor(),
        tenant_id=chosen.tenant_id if chosen else tenant.id if tenant else None,
        agent_id=chosen.id if chosen else None,
    )
    with _bar() as progress:
        taken = Reembedding(model=model, actor=actor(), batch=batch, progress=progress).run(moves)
    show(_told(model, moves, taken), as_json=as_json, people=_for_people(model, moves, taken))


def _wanted(name: str | None, dimension: int | None) -> EmbeddingModel:
    if name is None and dimension is None:
        return installation_model()
    own = installation_model()
    return checked(EmbeddingModel(name=name or own.name, dimension=dimension or own.dimension))


def _told(model: EmbeddingModel, moves: list[Move], taken: list[TakenOver]) -> dict[str, Any]:
    return {
        "model": model.name,
        "dimension": model.dimension,
        "agents": [
            {
                "agent": move.name,
                "tenant": move.tenant,
                "from": {"model": move.model.name, "dimension": move.model.dimension},
                "memories": each.memories,
                "refused": each.refused,
                "left_to_backlog": each.left,
                "takeover_s": round(each.seconds, 3),
            }
            for move, each in zip(moves, taken, strict=True)
        ],
        "memories": sum(each.memories for each in taken),
    }


def _for_people(model: EmbeddingModel, moves: list[Move], taken: list[TakenOver]) -> Any:
    if not moves:
        return f"Every agent's vectors are of {escape(str(model))}."
    rows = [
        (move.tenant, move.name, move.model, f"{each.memories:,}", each.refused, f"{each.seconds:.2f} s")
        for move, each in zip(moves, taken, strict=True)
    ]
    columns = ("tenant", "agent", "moved from", "memories", "cannot be read", "taken over in")
    return table(columns, rows, title=f"Moved to {escape(str(model))}")


class _Rate(TextColumn):
    """Memories a second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Any:
        """Return the rate, once there is one."""
        return "" if not task.speed else f"{task.speed:,.0f}/s"


@contextmanager
def _bar() -> Iterator[OnProgress]:
    """Show a progress bar on a terminal's standard error; elsewhere nothing."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("memories"),
        _Rate(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console(err=True), transient=True, disable=not sys.stderr.isatty())
    with bar:
        task = bar.add_task("embedding", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

"""Manage the boundaries of an agent."""

from __future__ import annotations

from rich.markup import escape

from apps.selves.models import Boundary
from apps.selves.services.boundaries import (
    add_boundary,
    boundaries_of,
    match_boundaries,
    remove_boundary,
    restore_boundary,
)
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.boundary_check import negotiated_words
from config.cli.kit.columns import OutputColumn, listing, number
from config.cli.kit.declarations import Output
from config.cli.kit.output import cut
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent


@in_agent_transaction
def list_boundaries(agent: ChosenAgent) -> Output:
    """List an agent's boundaries, the most important first, and the disabled ones."""
    boundaries = sorted(boundaries_of(agent.id), key=lambda boundary: (-boundary.importance, boundary.name))
    own = dict(Boundary.objects.filter(agent_id=agent.id).values_list("name", "enabled"))
    disabled = sorted(name for name, enabled in own.items() if not enabled)
    return listing(
        "boundaries",
        boundaries,
        (
            *(OutputColumn(key, key) for key in ("name", "type", "response")),
            OutputColumn("flexibility", "flexible", cell=number),
            OutputColumn("importance", "matters", cell=number),
            OutputColumn(
                "own",
                "whose",
                value=lambda boundary: boundary.name in own,
                cell=lambda is_own: "its own" if is_own else "every agent's",
            ),
            OutputColumn(
                head="matches",
                value=lambda boundary: cut("; ".join((*boundary.patterns, *boundary.examples))),
            ),
            *(OutputColumn(key) for key in ("description", "patterns", "examples")),
        ),
        about={"agent": agent.name, "switched_off": disabled},
        empty=f"{escape(agent.name)} has no boundary; disabled: {', '.join(disabled)}.",
        title=f"Disabled for {agent.name}: {', '.join(disabled)}" if disabled else None,
    )


@with_agent
def add(
    agent: ChosenAgent,
    *,
    name: str,
    patterns: tuple[str, ...],
    examples: tuple[str, ...],
    response: str,
    kind: str,
    description: str,
    flexibility: float,
    importance: float,
) -> Output:
    """Add a boundary to an agent; it replaces a default boundary of the same name."""
    new = NewBoundary(
        name=name,
        type=BoundaryType(kind),
        response=BoundaryResponse(response),
        description=description,
        patterns=patterns,
        examples=examples,
        flexibility=flexibility,
        importance=importance,
        source=actor(),
    )
    row = add_boundary(tenant_id=agent.tenant_id, agent_id=agent.id, boundary=new, actor=actor())
    text = f"[bold]{escape(row.name)}[/bold] applies to {escape(agent.name)} from its next heartbeat on."
    return Output(
        {"agent": agent.name, "name": row.name, "response": row.response, "embedded": bool(row.vectors)},
        text=text,
    )


@in_agent_transaction
def remove(agent: ChosenAgent, *, name: str) -> Output:
    """Remove an agent's own boundary, or disable a default one."""
    done = remove_boundary(agent_id=agent.id, name=name, actor=actor())
    text = f"[bold]{escape(name)}[/bold] is {done}."
    return Output({"agent": agent.name, "name": name, "done": done}, text=text)


@in_agent_transaction
def restore(agent: ChosenAgent, *, name: str) -> Output:
    """Restore a default boundary of an agent."""
    restore_boundary(agent_id=agent.id, name=name, actor=actor())
    text = f"[bold]{escape(name)}[/bold] applies again, as to every agent."
    return Output({"agent": agent.name, "name": name, "done": "restored"}, text=text)


@with_agent
def check_text(agent: ChosenAgent, *, text: str) -> Output:
    """Check a text against an agent's boundaries. Nothing is stored."""
    return listing(
        "boundary_matches",
        match_boundaries(tenant_id=agent.tenant_id, agent_id=agent.id, text=text),
        BOUNDARY_MATCH_COLUMNS,
        about={"agent": agent.name},
        empty="It matches no boundary.",
    )


BOUNDARY_MATCH_COLUMNS = (
    OutputColumn("boundary", "boundary", value=lambda boundary_match: boundary_match.boundary.name),
    OutputColumn("response", "response", value=lambda boundary_match: boundary_match.boundary.response),
    OutputColumn("why", "why"),
    OutputColumn(
        "words_to_negotiate", value=lambda boundary_match: negotiated_words(boundary_match.boundary)
    ),
)

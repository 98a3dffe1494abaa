"""`arbor self boundary`: what an agent does not do, whoever asks."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.selves.models import Boundary
from apps.selves.services.boundaries import (
    add_boundary,
    boundaries_of,
    crossings_of,
    remove_boundary,
    restore_boundary,
)
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.boundary_check import words_wanted
from config.cli.kit import Output
from config.cli.output import cut, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent

share = click.FloatRange(0, 1)


@in_agent_transaction
def list_boundaries(agent: ChosenAgent) -> Output:
    """List an agent's boundaries, the most important first, and the disabled ones."""
    holding = sorted(boundaries_of(agent.id), key=lambda each: (-each.importance, each.name))
    own = dict(Boundary.objects.filter(agent_id=agent.id).values_list("name", "enabled"))
    off = sorted(name for name, enabled in own.items() if not enabled)
    lines = [
        {
            "name": each.name,
            "type": each.type,
            "response": each.response,
            "flexibility": each.flexibility,
            "importance": each.importance,
            "own": each.name in own,
            "description": each.description,
            "patterns": each.patterns,
            "examples": each.examples,
        }
        for each in holding
    ]
    people: Any = table(
        ("name", "type", "response", "flexible", "matters", "whose", "called up by"),
        (
            (
                each.name,
                each.type,
                each.response,
                f"{each.flexibility:.2f}",
                f"{each.importance:.2f}",
                "its own" if each.name in own else "every agent's",
                cut("; ".join((*each.patterns, *each.examples))),
            )
            for each in holding
        ),
        title=f"Switched off for {agent.name}: {', '.join(off)}" if off else None,
    )
    empty = f"No boundary holds for {escape(agent.name)}; switched off: {', '.join(off)}."
    told = {"agent": agent.name, "boundaries": lines, "switched_off": off}
    return Output(told, people=people if holding else empty)


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
    """Add a boundary to an agent; it replaces a common boundary of the same name."""
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
    said = f"[bold]{escape(row.name)}[/bold] holds for {escape(agent.name)} from its next heartbeat on."
    return Output(
        {"agent": agent.name, "name": row.name, "response": row.response, "embedded": bool(row.vectors)},
        people=said,
    )


@in_agent_transaction
def remove(agent: ChosenAgent, *, name: str) -> Output:
    """Remove an agent's own boundary, or disable a common one."""
    done = remove_boundary(agent_id=agent.id, name=name, actor=actor())
    said = f"[bold]{escape(name)}[/bold] is {done}."
    return Output({"agent": agent.name, "name": name, "done": done}, people=said)


@in_agent_transaction
def restore(agent: ChosenAgent, *, name: str) -> Output:
    """Restore a common boundary as it comes with Arbor."""
    restore_boundary(agent_id=agent.id, name=name, actor=actor())
    said = f"[bold]{escape(name)}[/bold] holds again, as for every agent."
    return Output({"agent": agent.name, "name": name, "done": "restored"}, people=said)


@with_agent
def check_text(agent: ChosenAgent, *, text: str) -> Output:
    """Check a text against an agent's boundaries. Nothing is stored."""
    found = crossings_of(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
    lines = [
        {
            "boundary": each.boundary.name,
            "response": each.boundary.response,
            "why": each.why,
            "words_wanted": words_wanted(each.boundary)
            if each.boundary.response is BoundaryResponse.NEGOTIATE
            else None,
        }
        for each in found
    ]
    people: Any = table(
        ("boundary", "response", "why"), ((each["boundary"], each["response"], each["why"]) for each in lines)
    )
    return Output(
        {"agent": agent.name, "crossed": lines},
        people=people if found else "It crosses no boundary.",
    )

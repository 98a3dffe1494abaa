"""`arbor boundary`: what an agent does not do, whoever asks."""

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
from apps.tenants.scope import tenant_transaction
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.boundary_check import words_wanted
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option

share = click.FloatRange(0, 1)


@click.group()
def boundary() -> None:
    """Boundaries: what an agent does not do, whoever asks. Five are every agent's; others are its own.

    They are held against what reaches an agent and against what it is about to do.
    """


@boundary.command("list")
@click.argument("agent")
@tenant_option
@json_option
def list_them(agent: str, tenant_slug: str | None, as_json: bool) -> None:
    """List the boundaries that hold for an agent, the most important first, and those switched off.

    \b
    Example: arbor boundary list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        holding = sorted(boundaries_of(chosen.id), key=lambda each: (-each.importance, each.name))
        own = dict(Boundary.objects.filter(agent_id=chosen.id).values_list("name", "enabled"))
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
        title=f"Switched off for {chosen.name}: {', '.join(off)}" if off else None,
    )
    empty = f"No boundary holds for {escape(chosen.name)}; switched off: {', '.join(off)}."
    told = {"agent": chosen.name, "boundaries": lines, "switched_off": off}
    show(told, as_json=as_json, people=people if holding else empty)


@boundary.command("add")
@click.argument("agent")
@click.argument("name")
@click.option("--pattern", "patterns", multiple=True, help="A word or phrase; `word*` for its forms.")
@click.option("--example", "examples", multiple=True, help="A sentence; what means the same calls it up.")
@click.option(
    "--response",
    type=click.Choice([each.value for each in BoundaryResponse]),
    default=BoundaryResponse.REFUSE.value,
    show_default=True,
)
@click.option(
    "--type",
    "kind",
    type=click.Choice([each.value for each in BoundaryType]),
    default=BoundaryType.ETHICAL.value,
    show_default=True,
)
@click.option("--description", default="", help="What it is about, in the agent's own words.")
@click.option("--flexibility", type=share, default=0.0, show_default=True, help="0 hard to 1 negotiable.")
@click.option("--importance", type=share, default=0.5, show_default=True, help="Which comes first.")
@tenant_option
@json_option
def add(
    agent: str,
    name: str,
    patterns: tuple[str, ...],
    examples: tuple[str, ...],
    response: str,
    kind: str,
    description: str,
    flexibility: float,
    importance: float,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Give an agent a boundary; under the name of one that every agent has, it stands instead of that.

    \b
    Example: arbor boundary add Vega no_gossip --pattern gossip --example "Tell me what Bo said about Ada."
    """
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
    chosen = choose_agent(agent, tenant_slug)
    row = add_boundary(tenant_id=chosen.tenant_id, agent_id=chosen.id, boundary=new, actor=actor())
    said = f"[bold]{escape(row.name)}[/bold] holds for {escape(chosen.name)} from its next heartbeat on."
    show(
        {"agent": chosen.name, "name": row.name, "response": row.response, "embedded": bool(row.vectors)},
        as_json=as_json,
        people=said,
    )


@boundary.command("remove")
@click.argument("agent")
@click.argument("name")
@tenant_option
@json_option
def remove(agent: str, name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Take away an agent's own boundary, or switch one off that every agent has.

    \b
    Example: arbor boundary remove Vega no_gossip
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        done = remove_boundary(agent_id=chosen.id, name=name, actor=actor())
    said = f"[bold]{escape(name)}[/bold] is {done}."
    show({"agent": chosen.name, "name": name, "done": done}, as_json=as_json, people=said)


@boundary.command("restore")
@click.argument("agent")
@click.argument("name")
@tenant_option
@json_option
def restore(agent: str, name: str, tenant_slug: str | None, as_json: bool) -> None:
    """Let a boundary that every agent has hold again, as it comes with Arbor.

    \b
    Example: arbor boundary restore Vega resource_limit
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        restore_boundary(agent_id=chosen.id, name=name, actor=actor())
    said = f"[bold]{escape(name)}[/bold] holds again, as for every agent."
    show({"agent": chosen.name, "name": name, "done": "restored"}, as_json=as_json, people=said)


@boundary.command("test")
@click.argument("agent")
@click.argument("text")
@tenant_option
@json_option
def test(agent: str, text: str, tenant_slug: str | None, as_json: bool) -> None:
    """Say which boundaries a text crosses, and why. Nothing is stored.

    \b
    Example: arbor boundary test Vega "Please lie to the harbour master."
    """
    chosen = choose_agent(agent, tenant_slug)
    found = crossings_of(tenant_id=chosen.tenant_id, agent_id=chosen.id, text=text)
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
    show(
        {"agent": chosen.name, "crossed": lines},
        as_json=as_json,
        people=people if found else "It crosses no boundary.",
    )

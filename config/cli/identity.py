"""`arbor identity`: who an agent takes itself to be, changed by a person's hand."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.selves.models import IdentityAspect
from apps.selves.services.aspects import drop_aspect, take_aspect
from apps.tenants.scope import tenant_transaction
from arbor.selves.values import DEFAULT_STABILITY, AspectKind, NewAspect, Standing
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import ChosenAgent, actor, choose_agent, tenant_option


@click.group()
def identity() -> None:
    """Aspects of an identity: who an agent takes itself to be. ID is an id, or the last characters of one."""


@identity.command("list")
@click.argument("agent")
@click.option("--all", "with_dropped", is_flag=True, help="Dropped ones, too.")
@tenant_option
@json_option
def list_them(agent: str, with_dropped: bool, tenant_slug: str | None, as_json: bool) -> None:
    """List who an agent takes itself to be, the firmest first.

    \b
    Example: arbor identity list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = list(IdentityAspect.objects.filter(agent_id=chosen.id).order_by("-stability", "id"))
    kept = [each for each in found if with_dropped or each.status != Standing.DROPPED]
    people: Any = table(
        ("id", "kind", "firm", "status", "from", "aspect"),
        (
            (
                short(each.id),
                each.kind.replace("_", " "),
                f"{each.stability:.2f}",
                each.status,
                each.source,
                cut(each.content),
            )
            for each in kept
        ),
    )
    told = {"agent": chosen.name, "aspects": [_line(each) for each in kept]}
    show(told, as_json=as_json, people=people if kept else f"{chosen.name} has no aspect yet.")


@identity.command("take")
@click.argument("agent")
@click.argument("content")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in AspectKind]),
    default=AspectKind.SELF_CONCEPT.value,
    show_default=True,
)
@click.option(
    "--stability",
    type=click.FloatRange(0, 1),
    default=DEFAULT_STABILITY,
    show_default=True,
    help="How hard to change.",
)
@tenant_option
@json_option
def take(
    agent: str, content: str, kind: str, stability: float, tenant_slug: str | None, as_json: bool
) -> None:
    """Make something a part of who an agent takes itself to be.

    \b
    Example: arbor identity take Vega "I finish what I begin." --kind agency
    """
    chosen = choose_agent(agent, tenant_slug)
    aspect = NewAspect(content=content, kind=AspectKind(kind), stability=stability, source="operator")
    with tenant_transaction(chosen.tenant_id):
        taken = take_aspect(agent_id=chosen.id, aspect=aspect, actor=actor())
    _show(chosen, taken, as_json)


@identity.command("drop")
@click.argument("agent")
@click.argument("aspect_id", metavar="ID")
@click.option("--reason", default="", help="Why, for the audit.")
@tenant_option
@json_option
def drop(agent: str, aspect_id: str, reason: str, tenant_slug: str | None, as_json: bool) -> None:
    """Take something out of who an agent takes itself to be. It is kept for the record.

    \b
    Example: arbor identity drop Vega 7712ab90
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_id(chosen, IdentityAspect, aspect_id)
        dropped = drop_aspect(aspect_id=found, actor=actor(), reason=reason)
    _show(chosen, dropped, as_json)


def _line(each: IdentityAspect) -> dict[str, Any]:
    return {
        "id": each.id,
        "kind": each.kind,
        "content": each.content,
        "stability": each.stability,
        "status": each.status,
        "source": each.source,
    }


def _show(chosen: ChosenAgent, each: IdentityAspect, as_json: bool) -> None:
    said = f"[bold]{escape(each.content)}[/bold] ({short(each.id)}) is {each.status}."
    show({"agent": chosen.name, **_line(each)}, as_json=as_json, people=said)

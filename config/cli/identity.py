"""`arbor self identity`: who an agent takes itself to be, changed by a person's hand."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from apps.selves.models import IdentityAspect
from apps.selves.services.aspects import drop_aspect, take_aspect
from arbor.selves.values import AspectKind, NewAspect, Standing
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import cut, short, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def list_aspects(agent: ChosenAgent, *, with_dropped: bool) -> Output:
    """List the aspects of an agent's identity, the firmest first."""
    found = list(IdentityAspect.objects.filter(agent_id=agent.id).order_by("-stability", "id"))
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
    told = {"agent": agent.name, "aspects": [_line(each) for each in kept]}
    return Output(told, people=people if kept else f"{agent.name} has no aspect yet.")


@in_agent_transaction
def add(agent: ChosenAgent, *, content: str, kind: str, stability: float) -> Output:
    """Add an aspect to an agent's identity."""
    aspect = NewAspect(content=content, kind=AspectKind(kind), stability=stability, source="operator")
    taken = take_aspect(agent_id=agent.id, aspect=aspect, actor=actor())
    return _show(agent, taken)


@in_agent_transaction
def drop(agent: ChosenAgent, *, aspect_id: str, reason: str) -> Output:
    """Drop an aspect of an agent's identity. Its row stays."""
    found = find_id(agent, IdentityAspect, aspect_id)
    dropped = drop_aspect(aspect_id=found, actor=actor(), reason=reason)
    return _show(agent, dropped)


def _line(each: IdentityAspect) -> dict[str, Any]:
    return {
        "id": each.id,
        "kind": each.kind,
        "content": each.content,
        "stability": each.stability,
        "status": each.status,
        "source": each.source,
    }


def _show(agent: ChosenAgent, each: IdentityAspect) -> Output:
    said = f"[bold]{escape(each.content)}[/bold] ({short(each.id)}) is {each.status}."
    return Output({"agent": agent.name, **_line(each)}, people=said)

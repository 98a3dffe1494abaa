"""`arbor belief`: what an agent believes, changed by a person's hand."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.selves.models import Belief
from apps.selves.services.beliefs import drop_belief, hold_belief, revise_belief
from apps.tenants.scope import tenant_transaction
from arbor.selves.values import (
    DEFAULT_CONFIDENCE,
    DEFAULT_STABILITY,
    BeliefCategory,
    NewBelief,
    Standing,
)
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import ChosenAgent, actor, choose_agent, tenant_option

share = click.FloatRange(0, 1)


@click.group()
def belief() -> None:
    """Beliefs: what an agent holds to be so. ID is an id, or the last characters of one.

    They come from its template, a person or an accepted proposal. What it reads changes none by itself: its heartbeats
    move one by small steps, on record.
    """


@belief.command("list")
@click.argument("agent")
@click.option("--all", "with_dropped", is_flag=True, help="Dropped ones, too.")
@tenant_option
@json_option
def list_them(agent: str, with_dropped: bool, tenant_slug: str | None, as_json: bool) -> None:
    """List what an agent believes, the firmest first.

    \b
    Example: arbor belief list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = list(Belief.objects.filter(agent_id=chosen.id))
    kept = [each for each in found if with_dropped or each.status != Standing.DROPPED]
    kept.sort(
        key=lambda each: (each.status == Standing.DROPPED, -(each.stability + each.confidence), each.id)
    )
    people: Any = table(
        ("id", "about", "sure", "firm", "status", "from", "belief"),
        (
            (
                short(each.id),
                each.category,
                f"{each.confidence:.2f}",
                f"{each.stability:.2f}",
                each.status,
                each.source,
                cut(each.statement),
            )
            for each in kept
        ),
    )
    told = {"agent": chosen.name, "beliefs": [_line(each) for each in kept]}
    empty = f'{chosen.name} believes nothing yet. [bold]arbor belief hold {escape(chosen.name)} "…"[/bold]'
    show(told, as_json=as_json, people=people if kept else empty)


@belief.command("hold")
@click.argument("agent")
@click.argument("statement")
@click.option(
    "--about",
    "category",
    type=click.Choice([each.value for each in BeliefCategory]),
    default=BeliefCategory.WORLD.value,
    show_default=True,
)
@click.option("--confidence", type=share, default=DEFAULT_CONFIDENCE, show_default=True, help="How sure.")
@click.option(
    "--stability", type=share, default=DEFAULT_STABILITY, show_default=True, help="How hard to change."
)
@tenant_option
@json_option
def hold(
    agent: str,
    statement: str,
    category: str,
    confidence: float,
    stability: float,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Let an agent believe something; what it dropped is taken up again.

    \b
    Example: arbor belief hold Vega "Readings taken at low tide can be trusted." --about causality
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        held = hold_belief(
            agent_id=chosen.id,
            belief=NewBelief(
                statement=statement,
                category=BeliefCategory(category),
                confidence=confidence,
                stability=stability,
                source="operator",
            ),
            actor=actor(),
        )
    _show(chosen, held, as_json)


@belief.command("revise")
@click.argument("agent")
@click.argument("belief_id", metavar="ID")
@click.option("--confidence", type=share, help="How sure.")
@click.option("--stability", type=share, help="How hard to change.")
@click.option(
    "--status", type=click.Choice([each.value for each in Standing]), help="Held, in doubt, or no longer."
)
@click.option("--reason", default="", help="Why, for the audit.")
@tenant_option
@json_option
def revise(
    agent: str,
    belief_id: str,
    confidence: float | None,
    stability: float | None,
    status: str | None,
    reason: str,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Change how sure an agent is of a belief, how firm it is, or put it in doubt.

    \b
    Example: arbor belief revise Vega 0c5512aa --confidence 0.4 --status questioned --reason "two readings disagree"
    """
    if confidence is None and stability is None and status is None:
        raise click.UsageError("say what is to change: --confidence, --stability or --status")
    _change(
        agent,
        belief_id,
        tenant_slug,
        as_json,
        confidence=confidence,
        stability=stability,
        status=Standing(status) if status else None,
        reason=reason,
    )


@belief.command("drop")
@click.argument("agent")
@click.argument("belief_id", metavar="ID")
@click.option("--reason", default="", help="Why, for the audit.")
@tenant_option
@json_option
def drop(agent: str, belief_id: str, reason: str, tenant_slug: str | None, as_json: bool) -> None:
    """Let an agent no longer believe something. It is kept for the record.

    \b
    Example: arbor belief drop Vega 0c5512aa --reason "it was never so"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        dropped = drop_belief(belief_id=find_id(chosen, Belief, belief_id), actor=actor(), reason=reason)
    _show(chosen, dropped, as_json)


def _change(agent: str, belief_id: str, tenant_slug: str | None, as_json: bool, **changes: Any) -> None:
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        revised = revise_belief(belief_id=find_id(chosen, Belief, belief_id), actor=actor(), **changes)
    _show(chosen, revised, as_json)


def _line(each: Belief) -> dict[str, Any]:
    return {
        "id": each.id,
        "category": each.category,
        "statement": each.statement,
        "confidence": each.confidence,
        "stability": each.stability,
        "status": each.status,
        "source": each.source,
    }


def _show(chosen: ChosenAgent, each: Belief, as_json: bool) -> None:
    said = f"[bold]{escape(each.statement)}[/bold] ({short(each.id)}) is {each.status}, {each.confidence:.0%} sure."
    show({"agent": chosen.name, **_line(each)}, as_json=as_json, people=said)

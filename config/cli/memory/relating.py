"""`arbor memory relate` and `unrelate`: what is tied to what, by a person's hand."""

from __future__ import annotations

import click

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.graph.relations import relate, unrelate
from apps.tenants.scope import tenant_transaction
from arbor.memory.relations import Relation
from config.cli.memory.finding import find_node
from config.cli.memory.ties import tie_text, tie_value
from config.cli.output import json_option, show
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.command("relate")
@click.argument("agent")
@click.argument("source")
@click.argument("relation", type=click.Choice([each.value for each in Relation]))
@click.argument("target")
@click.option(
    "--weight", type=click.FloatRange(0, 1), default=1.0, show_default=True, help="How sure, or how similar."
)
@click.option("--note", default="", help="Why.")
@tenant_option
@json_option
def relate_them(
    agent: str,
    source: str,
    relation: str,
    target: str,
    weight: float,
    note: str,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Relate two things: memories, concepts, beliefs, aspects, goals. Each is ID, KIND:ID or concept:NAME.

    \b
    Examples:
      arbor memory relate Vega 4cd01f7e causes 91ee00b3
      arbor memory relate Vega 4cd01f7e supports belief:0c5512aa --weight 0.7 --note "seen twice"
      arbor memory relate Vega 4cd01f7e similar_to 91ee00b3 --weight 0.85
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        tie = relate(
            agent_id=chosen.id,
            source=find_node(chosen, source),
            target=find_node(chosen, target),
            relation=Relation(relation),
            weight=weight,
            note=note,
            origin=actor(),
        )
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=chosen.id,
            message=f"related two things of {chosen.name}: {tie_text(tie)}",
            detail=tie_value(tie),
        )
    show({"agent": chosen.name, **tie_value(tie)}, as_json=as_json, people=f"{tie_text(tie)}.")


@click.command("unrelate")
@click.argument("agent")
@click.argument("source")
@click.argument("target")
@click.option("--relation", type=click.Choice([each.value for each in Relation]), help="Only this one.")
@tenant_option
@json_option
def unrelate_them(
    agent: str, source: str, target: str, relation: str | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Take back what was said to relate one thing to another, in that direction.

    \b
    Example: arbor memory unrelate Vega 4cd01f7e 91ee00b3 --relation causes
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        ends = (find_node(chosen, source), find_node(chosen, target))
        taken = unrelate(
            agent_id=chosen.id,
            source=ends[0],
            target=ends[1],
            relation=Relation(relation) if relation else None,
        )
        if taken:
            record(
                action=AuditAction.OPERATOR_ACT,
                actor=actor(),
                agent_id=chosen.id,
                message=f"took back {taken} relations of {chosen.name}",
                detail={"source": str(ends[0].id), "target": str(ends[1].id), "relation": relation or "any"},
            )
    show({"agent": chosen.name, "taken_back": taken}, as_json=as_json, people=f"Taken back: {taken}.")

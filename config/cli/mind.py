"""`arbor mind` and `arbor thoughts`: the present moment of an agent, and what it thought lately."""

from __future__ import annotations

from typing import Any

import click
from rich.markup import escape

from apps.agents.models import AgentState
from apps.heartbeats.services.mind import Rebuilt, rebuild_mind
from apps.heartbeats.services.thoughts import RING, thoughts_of
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.working_memory import WorkingMemory
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.group()
def mind() -> None:
    """The working memory: what is on an agent's mind now."""


@mind.command("show")
@click.argument("agent")
@click.option("--prompt", is_flag=True, help="As it stands in a prompt.")
@tenant_option
@json_option
def show_mind(agent: str, prompt: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Show what is on an agent's mind: who talks to it, its goals, thoughts, concerns and questions.

    \b
    Example: arbor mind show Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        memory = WorkingMemory.model_validate(
            AgentState.objects.values_list("working_memory", flat=True).get(agent_id=chosen.id)
        )
    told = {"agent": chosen.name, "tenant": chosen.tenant_slug, **memory.model_dump(mode="json")}
    show(told, as_json=as_json, people=escape(memory.to_prompt_text()) if prompt else _told(memory))


@mind.command("rebuild")
@click.argument("agent")
@click.option("--dry-run", is_flag=True, help="Show what it would be, and change nothing.")
@tenant_option
@json_option
def rebuild(agent: str, dry_run: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Make an agent's working memory anew from its last heartbeats and conversations; what it was goes on record.

    \b
    Example: arbor mind rebuild Vega --dry-run
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        made = rebuild_mind(agent_id=chosen.id, actor=actor(), dry_run=dry_run)
    told = {
        "agent": chosen.name,
        "dry_run": dry_run,
        "beats": made.beats,
        "turns": made.turns,
        "before": made.before.model_dump(mode="json"),
        "after": made.after.model_dump(mode="json"),
    }
    show(told, as_json=as_json, people=_rebuilt(made, dry_run))


@click.command("thoughts")
@click.argument("agent")
@click.option("-n", "--limit", type=click.IntRange(1, RING), default=20, show_default=True, help="How many.")
@tenant_option
@json_option
def thoughts(agent: str, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what an agent thought lately, the latest first: the last 50 thoughts of its heartbeats and conversations.

    \b
    Example: arbor thoughts Vega -n 5
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = thoughts_of(agent_id=chosen.id, limit=limit)
    told = {
        "agent": chosen.name,
        "thoughts": [
            {"at": each.at, "origin": each.origin, "id": each.id, "text": each.text} for each in found
        ],
    }
    people = table(("when", "at a", "thought"), ((ago(each.at), each.origin, each.text) for each in found))
    show(
        told,
        as_json=as_json,
        people=people if found else f"{escape(chosen.name)} has not thought anything yet.",
    )


def _told(memory: WorkingMemory) -> Any:
    rows = [("talking with", memory.current_human)] if memory.current_human else []
    rows += [("works towards", title) for title in memory.active_goals]
    rows += [("thought", f"{cut(each.text, 300)} ({ago(each.at)})") for each in memory.thoughts]
    rows += [("concern", line) for line in memory.concerns]
    rows += [("curious about", line) for line in memory.curiosity]
    rows.append(("engagement", f"{memory.engagement:.2f} of 1"))
    rows.append(("asked since it tended its memory", str(memory.talked)))
    return table(("what", ""), rows)


def _rebuilt(made: Rebuilt, dry_run: bool) -> Any:
    head = "It would be" if dry_run else "It is"
    after = made.after
    return (
        f"{head} made of {made.beats} heartbeats and {made.turns} turns: {len(after.thoughts)} thoughts,"
        f" {len(after.concerns)} concerns, {len(after.curiosity)} questions, engagement {after.engagement:.2f}"
        f" (before: {len(made.before.thoughts)}, {len(made.before.concerns)}, {len(made.before.curiosity)},"
        f" {made.before.engagement:.2f})."
    )

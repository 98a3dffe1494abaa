"""`arbor memory archive`, `restore`, `purge` and `forget`: what is kept, by a person's hand."""

from __future__ import annotations

from typing import Any

import click

from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.retention.forgetting import plan_forgetting
from apps.tenants.scope import tenant_transaction
from arbor.memory.forgetting import Reason
from config.cli.memory.finding import find_memories, short
from config.cli.memory.listing import cut
from config.cli.output import json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option

reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why, for the audit.")


@click.command("archive")
@click.argument("agent")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@reason_option
@tenant_option
@json_option
def archive_them(
    agent: str, ids: tuple[str, ...], reason: str, tenant_slug: str | None, as_json: bool
) -> None:
    """Take memories out of recall. Nothing is lost: `arbor memory restore` brings them back.

    \b
    Example: arbor memory archive Vega 4cd01f7e --reason "it was about another ferry"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_memories(chosen, ids)
        done = archive(memory_ids=found, reason=reason, actor=actor())
    told = {"agent": chosen.name, "ids": found, "archived": done}
    show(
        told,
        as_json=as_json,
        people=f"{_memories(done)} archived{_rest(found, done, 'was archived already')}.",
    )


@click.command("restore")
@click.argument("agent")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@reason_option
@click.option("--for-good", is_flag=True, help="Keep them from now on, whatever maintenance finds.")
@tenant_option
@json_option
def restore_them(
    agent: str, ids: tuple[str, ...], reason: str, for_good: bool, tenant_slug: str | None, as_json: bool
) -> None:
    """Bring archived memories back into recall.

    \b
    Example: arbor memory restore Vega 4cd01f7e --reason "it matters after all" --for-good
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_memories(chosen, ids)
        done = restore(memory_ids=found, reason=reason, actor=actor(), for_good=for_good)
    told = {"agent": chosen.name, "ids": found, "restored": done}
    show(told, as_json=as_json, people=f"{_memories(done)} restored{_rest(found, done, 'was not archived')}.")


@click.command("purge")
@click.argument("agent")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@reason_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@tenant_option
@json_option
def purge_them(
    agent: str, ids: tuple[str, ...], reason: str, yes: bool, tenant_slug: str | None, as_json: bool
) -> None:
    """Remove archived memories for good, with all that hangs on them. It cannot be undone.

    \b
    Examples:
      arbor memory archive Vega 4cd01f7e --reason "asked to be forgotten"
      arbor memory purge Vega 4cd01f7e --reason "asked to be forgotten"
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_memories(chosen, ids)
    if not yes:
        click.confirm(
            f"{_memories(len(found))} of {chosen.name} will be gone for good. Go on?", abort=True, err=True
        )
    with tenant_transaction(chosen.tenant_id):
        done = purge(memory_ids=found, reason=reason, actor=actor())
    told = {"agent": chosen.name, "ids": found, "purged": done}
    show(told, as_json=as_json, people=f"{_memories(done)} removed for good.")


@click.command("forget")
@click.argument("agent")
@click.option("--dry-run", is_flag=True, help="Only say what would go. Nothing else is possible by hand.")
@tenant_option
@json_option
def forget(agent: str, dry_run: bool, tenant_slug: str | None, as_json: bool) -> None:
    """Say which memories maintenance would archive next, and why. It archives by the clock; this changes nothing.

    \b
    Example: arbor memory forget Vega --dry-run
    """
    if not dry_run:
        raise click.UsageError(
            "maintenance forgets by the clock: ask with --dry-run what it would archive,"
            " or take single memories out with `arbor memory archive`"
        )
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        plan = plan_forgetting(agent_id=chosen.id)
    told: dict[str, Any] = {
        "agent": chosen.name,
        "active": plan.active,
        "going": {str(reason): plan.count(reason) for reason in Reason},
        "memories": [
            {
                "id": each.memory_id,
                "type": each.type,
                "reason": each.reason,
                "importance": each.importance,
                "with_use": round(each.effective_importance, 4),
                "left_by_time": round(each.decayed_importance, 4),
                "touched_at": each.touched_at,
                "content": each.content,
            }
            for each in plan.memories
        ],
    }
    people: Any = table(
        ("id", "why", "imp", "left", "last used", "memory"),
        (
            (
                short(each.memory_id),
                each.reason,
                f"{each.importance:.2f}",
                f"{each.decayed_importance:.2f}",
                f"{each.touched_at:%Y-%m-%d}",
                cut(each.content),
            )
            for each in plan.memories
        ),
        title=f"{len(plan.memories):,} of {plan.active:,} would be archived",
    )
    nothing = f"Nothing of {chosen.name}'s {plan.active:,} memories would be archived."
    show(told, as_json=as_json, people=people if plan.memories else nothing)


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count:,} memories"


def _rest(found: list[Any], done: int, why: str) -> str:
    left = len(set(found)) - done
    return f"; {left} {why}" if left else ""

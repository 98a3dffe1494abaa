"""Archive, restore and purge memories, and show what maintenance would archive."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from apps.fleet.seeds.purging import purge_memories as purge
from apps.memories.services.retention.archive import archive, restore
from apps.memories.services.retention.forgetting import plan_forgetting
from apps.tenants.scope import tenant_transaction
from arbor.memory.forgetting import ForgettingReason
from arbor.quotations import counted
from config.cli.kit.columns import OutputColumn, listing, number
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_memories
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent

FORGETTABLE_COLUMNS = (
    OutputColumn("id", "id", value=lambda memory: memory.memory_id, cell=short),
    OutputColumn("reason", "why"),
    OutputColumn("importance", "imp", cell=number),
    OutputColumn(
        "left_by_time", "left", value=lambda memory: round(memory.decayed_importance, 4), cell=number
    ),
    OutputColumn("touched_at", "last used", cell=lambda moment: f"{moment:%Y-%m-%d}"),
    OutputColumn("content", "memory", cell=cut),
    OutputColumn("type"),
    OutputColumn("with_use", value=lambda memory: round(memory.effective_importance, 4)),
)


@in_agent_transaction
def archive_memories(agent: ChosenAgent, *, ids: tuple[str, ...], reason: str) -> Output:
    """Exclude memories from recall. Nothing is lost: `arbor memory restore` reverts it."""
    memory_ids = find_memories(agent, ids)
    done = archive(memory_ids=memory_ids, reason=reason, actor=actor())
    value = {"agent": agent.name, "ids": memory_ids, "archived": done}
    return Output(
        value,
        text=f"{counted_memories(done)} archived{skipped_note(memory_ids, done, 'archived already')}.",
    )


@in_agent_transaction
def restore_memories(agent: ChosenAgent, *, ids: tuple[str, ...], reason: str, for_good: bool) -> Output:
    """Include archived memories in recall again."""
    memory_ids = find_memories(agent, ids)
    done = restore(memory_ids=memory_ids, reason=reason, actor=actor(), for_good=for_good)
    value = {"agent": agent.name, "ids": memory_ids, "restored": done}
    return Output(
        value, text=f"{counted_memories(done)} restored{skipped_note(memory_ids, done, 'not archived')}."
    )


@with_agent
def purge_memories(agent: ChosenAgent, *, ids: tuple[str, ...], reason: str, yes: bool) -> Output:
    """Delete archived memories with all that depends on them. It cannot be undone."""
    with tenant_transaction(agent.tenant_id):
        memory_ids = find_memories(agent, ids)
    if not yes:
        click.confirm(
            f"{counted_memories(len(memory_ids))} of {agent.name} will be gone for good. Go on?",
            abort=True,
            err=True,
        )
    with tenant_transaction(agent.tenant_id):
        report = purge(memory_ids=memory_ids, reason=reason, actor=actor())
    value = {"agent": agent.name, "ids": memory_ids, **asdict(report)}
    lines = [f"{counted_memories(report.purged)} removed for good."]
    if report.saved_seeds:
        lines.append("Saved seeds still contain them; [bold]arbor seed delete ID[/bold] deletes one:")
    lines += [f"  {seed_id}" for seed_id in report.saved_seeds]
    return Output(value, text="\n".join(lines))


@in_agent_transaction
def show_forgetting(agent: ChosenAgent, *, dry_run: bool) -> Output:
    """Show the memories that maintenance would archive next, and why. It changes nothing."""
    if not dry_run:
        raise click.UsageError(
            "only maintenance forgets: --dry-run shows the memories that it would archive,"
            " and `arbor memory archive` archives single ones"
        )
    plan = plan_forgetting(agent_id=agent.id)
    return listing(
        "memories",
        plan.memories,
        FORGETTABLE_COLUMNS,
        about={
            "agent": agent.name,
            "active": plan.active,
            "going": {str(reason): plan.count(reason) for reason in ForgettingReason},
        },
        empty=f"No memory of {agent.name} would be archived, of {plan.active:,} in all.",
        title=f"{len(plan.memories):,} of {plan.active:,} would be archived",
    )


def counted_memories(count: int) -> str:
    """Return a number of memories in words."""
    return counted(count, "memory", "memories")


def skipped_note(memory_ids: list[Any], done: int, state: str) -> str:
    """Return a note about the memories that were not changed, because they were in this state already; empty if all were changed."""
    left = len(set(memory_ids)) - done
    return f"; {counted(left, 'was', 'were')} {state}" if left else ""

"""Pin and unpin memories, and show quotas and promotion candidates."""

from __future__ import annotations

from rich.markup import escape

from apps.heartbeats.services.reports.promotion_candidates import promotion_candidates
from apps.memories.services.retention.pins import pin, unpin
from apps.memories.services.retention.quotas import read_quotas
from config.cli.kit.columns import OutputColumn, listing, number
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_memories
from config.cli.kit.output import cut, short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction
from config.cli.memory.archive import counted_memories, skipped_note

_QUOTA_COLUMNS = (
    OutputColumn("type", "type"),
    OutputColumn("active", "active"),
    OutputColumn("quota", "quota"),
    OutputColumn("share", "used", cell=lambda share: f"{share:.0%}"),
    OutputColumn("permanent", "permanent"),
    OutputColumn("pinned", "pinned"),
    OutputColumn("unused_pins", "unused pins"),
    OutputColumn("archived", "archived"),
)
_CANDIDATE_COLUMNS = (
    OutputColumn("id", "id", value=lambda candidate: candidate.memory_id, cell=short),
    OutputColumn("trust", "trust", cell=number),
    OutputColumn(
        "relevance", "relevance", value=lambda candidate: round(candidate.relevance, 4), cell=number
    ),
    OutputColumn("recalled", "recalled"),
    OutputColumn("content", "fact", cell=cut),
    OutputColumn(
        head="missing",
        value=lambda candidate: (
            candidate.proposal or "; ".join(candidate.missing) or "nothing: it is proposed next"
        ),
    ),
    OutputColumn("age_days", value=lambda candidate: round(candidate.age_days, 2)),
    *(OutputColumn(key) for key in ("recalled_at", "evidenced", "proposal")),
    OutputColumn("missing", value=lambda candidate: list(candidate.missing)),
)


@in_agent_transaction
def pin_memories(agent: ChosenAgent, *, ids: tuple[str, ...], reason: str) -> Output:
    """Exempt memories from decay and forgetting, until they are unpinned."""
    memory_ids = find_memories(agent, ids)
    done = pin(memory_ids=memory_ids, actor=actor(), reason=reason)
    value = {"agent": agent.name, "ids": memory_ids, "pinned": done}
    return Output(
        value, text=f"{counted_memories(done)} pinned{skipped_note(memory_ids, done, 'pinned already')}."
    )


@in_agent_transaction
def unpin_memories(agent: ChosenAgent, *, ids: tuple[str, ...], reason: str) -> Output:
    """Unpin memories: they get back their decay, retention and expiry."""
    memory_ids = find_memories(agent, ids)
    done = unpin(memory_ids=memory_ids, actor=actor(), reason=reason)
    value = {"agent": agent.name, "ids": memory_ids, "unpinned": done}
    return Output(
        value, text=f"{counted_memories(done)} unpinned{skipped_note(memory_ids, done, 'not pinned')}."
    )


@in_agent_transaction
def show_quotas(agent: ChosenAgent) -> Output:
    """Compare an agent's memories of each type with the quotas."""
    return listing(
        "quotas",
        read_quotas(agent_id=agent.id),
        _QUOTA_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has no memories.",
    )


@in_agent_transaction
def list_candidates(agent: ChosenAgent, *, limit: int) -> Output:
    """List the facts that consolidation may propose as parts of the self, and what each still lacks."""
    return listing(
        "candidates",
        promotion_candidates(agent_id=agent.id, limit=limit),
        _CANDIDATE_COLUMNS,
        about={"agent": agent.name},
        empty=f"{escape(agent.name)} has recalled no fact yet.",
    )

"""Show and edit the buffer of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from apps.memories.models import BufferItem
from apps.memories.services.recall.search import embed_for_agent
from apps.memories.services.retention.buffer import BufferSearch, add_buffer_items, promote, search_buffers
from apps.memories.services.store.appraisal import word_lists
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.buffer import NewBufferItem
from arbor.memory.importance import OPERATOR
from arbor.workflows.durations import format_duration
from config.cli.kit.columns import OutputColumn, listing, number
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, actor, audit_act, in_agent_transaction, with_agent

log = structlog.get_logger(__name__)


@with_agent
def list_buffer(agent: ChosenAgent, *, text: str | None, limit: int) -> Output:
    """List the items in an agent's buffer."""
    items = _most_important(agent, limit) if text is None else _search(agent, text, limit)
    missing = "buffer is empty" if text is None else "buffer has nothing about it"
    return listing(
        "held",
        items,
        ITEM_COLUMNS
        if text is None
        else (*ITEM_COLUMNS, OutputColumn("score", value=lambda item: round(item.score, 4))),
        about={"agent": agent.name},
        empty=f"{agent.name}'s {missing}.",
    )


ITEM_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("importance", "imp", cell=number),
    OutputColumn("accesses", "accesses", cell=lambda accesses: f"{accesses}×"),
    OutputColumn("expires_at", "expires", cell=format_relative_time),
    OutputColumn("source", "source", cell=lambda source: cut(source, 30)),
    OutputColumn("content", "item", cell=cut),
    OutputColumn("held_at", value=lambda item: item.created_at),
)


def _most_important(agent: ChosenAgent, limit: int) -> list[BufferItem]:
    with tenant_transaction(agent.tenant_id):
        items = BufferItem.objects.filter(
            agent_id=agent.id, expires_at__gt=datetime.now(UTC), promoted_to__isnull=True
        ).defer("embedding", "lexical")
        return list(items.order_by("-importance", "expires_at", "id")[:limit])


def _search(agent: ChosenAgent, text: str, limit: int) -> Sequence[Any]:
    query: Mapping[str, Any] = {}
    if text.strip():
        try:
            vector, model = embed_for_agent(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
            query = {"vector": vector, "model": model}
        except EmbeddingFailed as error:
            log.warning("recall_lexical_fallback", agent_id=str(agent.id), error=str(error))
    with tenant_transaction(agent.tenant_id):
        return search_buffers([BufferSearch(agent_id=agent.id, text=text, limit=limit, **query)])[0]


@in_agent_transaction
def add_item(agent: ChosenAgent, *, text: str, lasts: timedelta, importance: float | None) -> Output:
    """Add an item to an agent's buffer; adding it again extends its time."""
    item = NewBufferItem(content=text, lasts=lasts, importance=importance, source=OPERATOR)
    (item_id,) = add_buffer_items(agent_id=agent.id, items=[item])
    audit_act(agent, f"added an item to the buffer of {agent.name}", item_id=item_id)
    value = {"agent": agent.name, "id": item_id, "importance": item.appraised_importance(word_lists())}
    return Output(
        value,
        text=f"{agent.name} keeps it in the buffer for {format_duration(lasts)}.\n[dim]{item_id}[/dim]",
    )


@with_agent
def promote_item(agent: ChosenAgent, *, item_id: str) -> Output:
    """Make a memory of an item in the buffer, whatever its importance."""
    with tenant_transaction(agent.tenant_id):
        row_id = find_id(agent, BufferItem, item_id)
    memory_id = promote(tenant_id=agent.tenant_id, agent_id=agent.id, item_id=row_id, actor=actor())
    value = {"agent": agent.name, "item": row_id, "id": memory_id}
    return Output(value, text=f"{agent.name} will remember it.\n[dim]{memory_id}[/dim]")

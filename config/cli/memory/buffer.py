"""Show and edit the buffer of an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import BufferItem
from apps.memories.services.buffer import hold, search_buffer
from apps.memories.services.buffer_promotion import promote
from apps.memories.services.search import embed_asked
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.buffer import ToHold
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import ago, cut, short, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction, with_agent
from config.cli.values import in_words

log = structlog.get_logger(__name__)

#: Where a thing comes from that a person gave.
SOURCE = "operator"


@with_agent
def list_buffer(agent: ChosenAgent, *, text: str | None, limit: int) -> Output:
    """List the items in an agent's buffer."""
    rows = _held(agent, limit) if text is None else _bearing_on(agent, text, limit)
    people: Any = table(
        ("id", "imp", "came back", "expires", "source", "held"),
        (
            (
                short(row["id"]),
                f"{row['importance']:.2f}",
                f"{row['accesses']}×",
                ago(row["expires_at"]),
                cut(row["source"], 30),
                cut(row["content"]),
            )
            for row in rows
        ),
    )
    told = {"agent": agent.name, "held": rows}
    nothing = "at the moment" if text is None else "that bears on it"
    return Output(told, people=people if rows else f"{agent.name} holds nothing {nothing}.")


def _held(agent: ChosenAgent, limit: int) -> list[dict[str, Any]]:
    with tenant_transaction(agent.tenant_id):
        held = BufferItem.objects.filter(
            agent_id=agent.id, expires_at__gt=datetime.now(UTC), promoted_to__isnull=True
        ).defer("embedding", "lexical")
        return [
            _line(each, held_at=each.created_at)
            for each in held.order_by("-importance", "expires_at")[:limit]
        ]


def _bearing_on(agent: ChosenAgent, text: str, limit: int) -> Sequence[dict[str, Any]]:
    asked: Mapping[str, Any] = {}
    if text.strip():
        try:
            vector, model = embed_asked(tenant_id=agent.tenant_id, agent_id=agent.id, text=text)
            asked = {"vector": vector, "model": model}
        except EmbeddingFailed as error:
            log.warning("searched_by_words_alone", agent_id=str(agent.id), error=str(error))
    with tenant_transaction(agent.tenant_id):
        found = search_buffer(agent_id=agent.id, text=text, limit=limit, **asked)
    return [{**_line(each, held_at=each.held_at), "score": round(each.score, 4)} for each in found]


def _line(thing: Any, *, held_at: datetime) -> dict[str, Any]:
    names = ("id", "content", "importance", "accesses", "source")
    return {
        **{name: getattr(thing, name) for name in names},
        "held_at": held_at,
        "expires_at": thing.expires_at,
    }


@in_agent_transaction
def add_item(agent: ChosenAgent, *, text: str, lasts: timedelta, importance: float | None) -> Output:
    """Add an item to an agent's buffer; adding it again extends its time."""
    thing = ToHold(content=text, lasts=lasts, importance=importance, source=SOURCE)
    (item_id,) = hold(agent_id=agent.id, things=[thing])
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=agent.id,
        message=f"gave {agent.name} something to hold",
        detail={"item_id": str(item_id)},
    )
    told = {"agent": agent.name, "id": item_id, "importance": thing.weight}
    return Output(
        told,
        people=f"{agent.name} holds it for {in_words(lasts)}.\n[dim]{item_id}[/dim]",
    )


@with_agent
def promote_item(agent: ChosenAgent, *, item_id: str) -> Output:
    """Make a memory of an item in the buffer, whatever its importance."""
    with tenant_transaction(agent.tenant_id):
        found = find_id(agent, BufferItem, item_id)
    memory_id = promote(tenant_id=agent.tenant_id, agent_id=agent.id, item_id=found, actor=actor())
    told = {"agent": agent.name, "item": found, "id": memory_id}
    return Output(told, people=f"{agent.name} will remember it.\n[dim]{memory_id}[/dim]")

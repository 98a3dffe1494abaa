"""`arbor memory buffer`, `hold` and `promote`: what an agent only holds for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import structlog

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import BufferItem
from apps.memories.services.recall.search import embed_asked
from apps.memories.services.retention.buffer import hold, search_buffer
from apps.memories.services.retention.promotion import promote
from apps.tenants.scope import tenant_transaction
from arbor.errors import EmbeddingFailed
from arbor.memory.buffer import LASTS, ToHold
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import ChosenAgent, actor, choose_agent, tenant_option
from config.cli.values import Duration, in_words

log = structlog.get_logger(__name__)

#: Where a thing comes from that a person gave.
SOURCE = "operator"


@click.command("buffer")
@click.argument("agent")
@click.option("--search", "text", metavar="TEXT", help="Only what bears on it, best first.")
@click.option("-k", "--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@tenant_option
@json_option
def buffer(agent: str, text: str | None, limit: int, tenant_slug: str | None, as_json: bool) -> None:
    """Show what an agent holds for a while: it expires, or becomes a memory when it matters.

    Only a look: it does not count as coming back to it.

    \b
    Examples:
      arbor memory buffer Vega
      arbor memory buffer Vega --search "what the ferryman said"
    """
    chosen = choose_agent(agent, tenant_slug)
    rows = _held(chosen, limit) if text is None else _bearing_on(chosen, text, limit)
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
    told = {"agent": chosen.name, "held": rows}
    nothing = "at the moment" if text is None else "that bears on it"
    show(told, as_json=as_json, people=people if rows else f"{chosen.name} holds nothing {nothing}.")


def _held(chosen: ChosenAgent, limit: int) -> list[dict[str, Any]]:
    with tenant_transaction(chosen.tenant_id):
        held = BufferItem.objects.filter(
            agent_id=chosen.id, expires_at__gt=datetime.now(UTC), promoted_to__isnull=True
        ).defer("embedding", "lexical")
        return [
            _line(each, held_at=each.created_at)
            for each in held.order_by("-importance", "expires_at")[:limit]
        ]


def _bearing_on(chosen: ChosenAgent, text: str, limit: int) -> Sequence[dict[str, Any]]:
    asked: Mapping[str, Any] = {}
    if text.strip():
        try:
            vector, model = embed_asked(tenant_id=chosen.tenant_id, agent_id=chosen.id, text=text)
            asked = {"vector": vector, "model": model}
        except EmbeddingFailed as error:
            log.warning("searched_by_words_alone", agent_id=str(chosen.id), error=str(error))
    with tenant_transaction(chosen.tenant_id):
        found = search_buffer(agent_id=chosen.id, text=text, limit=limit, **asked)
    return [{**_line(each, held_at=each.held_at), "score": round(each.score, 4)} for each in found]


def _line(thing: Any, *, held_at: datetime) -> dict[str, Any]:
    names = ("id", "content", "importance", "accesses", "source")
    return {
        **{name: getattr(thing, name) for name in names},
        "held_at": held_at,
        "expires_at": thing.expires_at,
    }


@click.command("hold")
@click.argument("agent")
@click.argument("text")
@click.option(
    "--for", "lasts", type=Duration(), default=LASTS, help=f"How long: 2h, 2d.  [default: {in_words(LASTS)}]"
)
@click.option("--importance", type=click.FloatRange(0, 1), help="[default: by what it says]")
@tenant_option
@json_option
def hold_it(
    agent: str,
    text: str,
    lasts: timedelta,
    importance: float | None,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Let an agent hold something for a while; held again it is held longer. What matters becomes a memory by itself.

    \b
    Examples:
      arbor memory hold Vega "The ferryman coughed."
      arbor memory hold Vega "The lock is being mended." --for 2d --importance 0.3
    """
    thing = ToHold(content=text, lasts=lasts, importance=importance, source=SOURCE)
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        (item_id,) = hold(agent_id=chosen.id, things=[thing])
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=chosen.id,
            message=f"gave {chosen.name} something to hold",
            detail={"item_id": str(item_id)},
        )
    told = {"agent": chosen.name, "id": item_id, "importance": thing.weight}
    show(
        told,
        as_json=as_json,
        people=f"{chosen.name} holds it for {in_words(lasts)}.\n[dim]{item_id}[/dim]",
    )


@click.command("promote")
@click.argument("agent")
@click.argument("item_id", metavar="ID")
@tenant_option
@json_option
def promote_one(agent: str, item_id: str, tenant_slug: str | None, as_json: bool) -> None:
    """Make a memory of something that an agent holds, whatever it weighs.

    \b
    Example: arbor memory promote Vega 4cd01f7e
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_id(chosen, BufferItem, item_id)
    memory_id = promote(tenant_id=chosen.tenant_id, agent_id=chosen.id, item_id=found, actor=actor())
    told = {"agent": chosen.name, "item": found, "id": memory_id}
    show(told, as_json=as_json, people=f"{chosen.name} will remember it.\n[dim]{memory_id}[/dim]")

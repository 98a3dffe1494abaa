"""A call in a worker's hands, and what it cost, written down: also when nothing came of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.tenants.statements import change
from arbor.errors import ModelError, ModelRefused
from arbor.heartbeat.json_text import storable
from arbor.ids import uuid7
from arbor.models.ports import ModelReply, ModelRequest, Usage

#: Longest model name that the ledger holds.
MODEL_LENGTH = 200

# The day's sum of the agent goes with it. Part of a statement, which may do more.
CHARGE = """
charged AS (
    INSERT INTO heartbeats_ledgerentry (tenant_id, id, agent_id, call_id, purpose, provider, model, input_tokens,
        output_tokens, cached_tokens, cost_usd, latency_ms, tries, error_kind, at)
    VALUES (%(tenant)s, %(entry)s, %(agent)s, %(call)s, %(purpose)s, %(provider)s, %(model)s, %(input)s::bigint,
        %(output)s::bigint, %(cached)s::bigint, %(cost)s::numeric, %(latency)s::float8, %(tries)s::int,
        %(useless)s, now())
), used AS (
    INSERT INTO heartbeats_dailyusage (tenant_id, id, agent_id, day, calls, tokens, cost_usd)
    VALUES (%(tenant)s, %(usage)s, %(agent)s, (now() AT TIME ZONE 'UTC')::date, 1,
        %(input)s::bigint + %(output)s::bigint, coalesce(%(cost)s::numeric, 0))
    ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET calls = heartbeats_dailyusage.calls + 1,
        tokens = heartbeats_dailyusage.tokens + excluded.tokens,
        cost_usd = heartbeats_dailyusage.cost_usd + excluded.cost_usd
)
"""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A call this worker has; `attempt` is the token of its lease."""

    call_id: UUID
    tenant_id: UUID
    agent_id: UUID
    model: str
    request: ModelRequest
    attempt: int
    #: What an errand of maintenance is about; empty for a heartbeat's call.
    subject: dict[str, Any]
    #: Tries of an errand that brought nothing so far.
    failures: int


def charge_reply(taken: Taken, reply: ModelReply, *, error_kind: str = "") -> None:
    """Note what a reply cost; `error_kind` says why it was of no use, if it was not. One statement."""
    change(f"WITH {CHARGE} SELECT", **reply_charge(taken, reply, error_kind=error_kind))


def reply_charge(taken: Taken, reply: ModelReply, *, error_kind: str = "") -> dict[str, Any]:
    """Return the values that CHARGE takes for a reply."""
    return _charge(
        taken,
        provider=reply.provider,
        model=storable(reply.model)[:MODEL_LENGTH],
        usage=reply.usage,
        cost_usd=reply.cost_usd,
        latency_ms=reply.latency_ms,
        tries=reply.attempts,
        error_kind=error_kind,
    )


def note_truncated(taken: Taken, reply: ModelReply) -> None:
    """Put on record that the model stopped in the middle of its reply, if it did, in the open transaction."""
    if reply.finish_reason == "length":
        record(
            action=AuditAction.TRUNCATED,
            actor="system:model",
            agent_id=taken.agent_id,
            message=f"{taken.model} stopped at {taken.request.max_tokens} tokens, in the middle of its reply",
            detail={"call_id": str(taken.call_id), "output_tokens": reply.usage.output_tokens},
        )


def charge_failure(taken: Taken, error: Exception, latency_ms: float) -> None:
    """Note what a call without a reply cost; nothing where nobody was asked."""
    if not isinstance(error, ModelError) or not error.attempts:
        return
    provider, _, model = taken.model.partition("/")
    usage = (error.usage if isinstance(error, ModelRefused) else None) or Usage()
    values = _charge(
        taken,
        provider=provider,
        model=model,
        usage=usage,
        cost_usd=None,
        latency_ms=latency_ms,
        tries=error.attempts,
        error_kind=type(error).__name__,
    )
    change(f"WITH {CHARGE} SELECT", **values)


def _charge(
    taken: Taken,
    *,
    provider: str,
    model: str,
    usage: Usage,
    cost_usd: Decimal | None,
    latency_ms: float,
    tries: int,
    error_kind: str,
) -> dict[str, Any]:
    return {
        "entry": uuid7(),
        "usage": uuid7(),
        "agent": taken.agent_id,
        "call": taken.call_id,
        "purpose": taken.request.purpose.value,
        "provider": provider,
        "model": model,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.cached_tokens,
        "cost": cost_usd,
        "latency": latency_ms,
        "tries": tries,
        "useless": error_kind,
    }

"""Record the cost of model calls, also of failed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.calls.services.leased_calls import LeasedCall
from apps.tenants.encoding import to_json
from apps.tenants.statements import change
from arbor.errors import ModelError, ModelRefused
from arbor.ids import uuid7
from arbor.models.json_text import storable
from arbor.models.ports import ModelReply, ModelRequest
from arbor.models.token_estimates import estimate_tokens
from arbor.models.usage import Usage

#: Characters of a model name in the ledger at most.
MODEL_LENGTH = 200

# Part: insert ledger entries and add them to daily usage, in the order of agents' ids. The conflict finds an agent's row of today by its
# key, and costs a lock that is logged (55 bytes). For an update joined to the charges, the planner, whose statistics end before today,
# would read the rows of all agents.
CHARGE = """
charges AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(charges)s::json) AS charge (entry uuid, usage uuid, agent uuid, call uuid,
        purpose text, provider text, model text, input bigint, estimated bigint, output bigint, cached bigint, cost numeric,
        latency float8, tries int, error_kind text)
), charged AS (
    INSERT INTO calls_ledgerentry (tenant_id, id, agent_id, call_id, purpose, provider, model, input_tokens,
        estimated_tokens, output_tokens, cached_tokens, cost_usd, latency_ms, tries, error_kind, at)
    SELECT %(tenant)s, entry, agent, call, purpose, provider, model, input, estimated, output, cached, cost, latency, tries,
        error_kind, now()
    FROM charges
), spent AS MATERIALIZED (
    SELECT (array_agg(usage))[1] AS id, agent, count(*) AS calls, sum(input + output) AS tokens, coalesce(sum(cost), 0) AS cost
    FROM charges GROUP BY agent ORDER BY agent
), used AS (
    INSERT INTO calls_dailyusage (tenant_id, id, agent_id, day, calls, tokens, cost_usd)
    SELECT %(tenant)s, id, agent, (now() AT TIME ZONE 'UTC')::date, calls, tokens, cost FROM spent ORDER BY agent
    ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET calls = calls_dailyusage.calls + excluded.calls,
        tokens = calls_dailyusage.tokens + excluded.tokens,
        cost_usd = calls_dailyusage.cost_usd + excluded.cost_usd
)
"""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The cost of one attempt of a call."""

    #: Ids of the ledger entry, and of the row of daily usage if the agent has none yet.
    entry: UUID
    usage: UUID
    agent: UUID
    call: UUID
    purpose: str
    provider: str
    model: str
    input: int
    #: The estimate of the tokens of its input.
    estimated: int
    output: int
    cached: int
    #: None for an unknown price.
    cost: Decimal | None
    latency: float
    tries: int
    #: The error of an unusable reply; empty for a usable one.
    error_kind: str


def charges_json(charges: Sequence[Charge]) -> str:
    """Return the value `charges` of CHARGE."""
    return to_json([vars(charge) for charge in charges])


def charge_reply(call: LeasedCall, *, reply: ModelReply, error_kind: str = "") -> None:
    """Record the cost of a reply; `error_kind` names the error of an unusable one. One statement."""
    _charge([reply_charge(call, reply, error_kind=error_kind)])


def charge_failure(call: LeasedCall, *, error: Exception, latency_ms: float) -> None:
    """Record the cost of a call without a reply, if a request was sent."""
    charge = failure_charge(call, error, latency_ms)
    if charge is not None:
        _charge([charge])


def _charge(charges: Sequence[Charge]) -> None:
    change(f"WITH {CHARGE} SELECT", charges=charges_json(charges))


def reply_charge(call: LeasedCall, reply: ModelReply, *, error_kind: str = "") -> Charge:
    """Return the cost of a reply."""
    return Charge(
        entry=uuid7(),
        usage=uuid7(),
        agent=call.agent_id,
        call=call.call_id,
        purpose=call.request.purpose.value,
        provider=reply.provider,
        model=storable(reply.model)[:MODEL_LENGTH],
        input=reply.usage.input_tokens,
        estimated=estimated_tokens(call.request),
        output=reply.usage.output_tokens,
        cached=reply.usage.cached_tokens,
        cost=reply.cost_usd,
        latency=reply.latency_ms,
        tries=reply.attempts,
        error_kind=error_kind,
    )


def failure_charge(call: LeasedCall, error: Exception, latency_ms: float) -> Charge | None:
    """Return the cost of a call without a reply; None if no request was sent."""
    if not isinstance(error, ModelError) or not error.attempts:
        return None
    provider, _, model = call.model.partition("/")
    # A provider bills the tokens of a refusal.
    refusal = error if isinstance(error, ModelRefused) else ModelRefused()
    charged = ModelReply(
        text="",
        provider=provider,
        model=model,
        usage=refusal.usage or Usage(),
        cost_usd=refusal.cost_usd,
        latency_ms=latency_ms,
        attempts=error.attempts,
    )
    return reply_charge(call, charged, error_kind=type(error).__name__)


def estimated_tokens(request: ModelRequest) -> int:
    """Return the estimated tokens of a request's texts."""
    return estimate_tokens(request.system) + sum(
        estimate_tokens(message.content) for message in request.messages
    )


def record_truncation(call: LeasedCall, *, reply: ModelReply) -> None:
    """Write an audit record if the model truncated its reply, in the open transaction."""
    if reply.finish_reason == "length":
        record(
            action=AuditAction.TRUNCATED,
            actor="system:model",
            agent_id=call.agent_id,
            message=f"{call.model} stopped at {call.request.max_tokens} tokens, in the middle of its reply",
            detail={"call_id": str(call.call_id), "output_tokens": reply.usage.output_tokens},
        )

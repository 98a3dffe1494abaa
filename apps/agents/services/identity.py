"""Read, suspend, reinstate, revoke and rotate the identities of agents."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent, AgentEndorsement, AgentKey
from apps.agents.services.authority import ensure_system_authority
from apps.agents.services.identity_column import IDENTITY_COLUMN, AgentIdentity, parse_identity
from apps.agents.services.identity_rows import chain_of, exchange_row, key_row, open_key
from apps.agents.services.locks import lock_agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.emission import emit
from apps.tenants.keys import master_keys
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.agents.endorsement import (
    REASON_LENGTH,
    Endorsement,
    EndorsementStatus,
    endorse,
    require_transition,
)
from arbor.agents.identity import generate_key_pair
from arbor.agents.keys import FIRST, KeyChain, KeyPurpose, next_key
from arbor.errors import IdentityRefused, Invalid, NotFound
from arbor.memory.content import check_text
from arbor.signals import SignalName, signal

_IDENTITIES = f"""
SELECT a.id, a.public_id, {IDENTITY_COLUMN}
FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)


def identities_of(agent_ids: Collection[UUID]) -> dict[UUID, AgentIdentity]:
    """Return the identities of agents of the current tenant, verified; unknown agents are missing. One statement."""
    tenant = str(current_tenant())
    return {
        agent_id: parse_identity(text, public_id=public_id, tenant_id=tenant)
        for agent_id, public_id, text in fetch(_IDENTITIES, agents=sorted(agent_ids))
    }


def identity_of(agent_id: UUID) -> AgentIdentity:
    """Return an agent's identity, verified. Raises NotFound."""
    identity = identities_of([agent_id]).get(agent_id)
    if identity is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    return identity


def change_status(*, agent_id: UUID, status: EndorsementStatus, actor: str, reason: str = "") -> Endorsement:
    """Suspend, reinstate or revoke an agent's identity; the reason is empty only when it becomes active.

    Raises NotFound, Invalid without a reason, TransitionIllegal, and IdentityRefused for an identity that is not genuine.
    """
    reason = "" if status is EndorsementStatus.ACTIVE else _valid_reason(reason)
    with transaction.atomic():
        agent = lock_agent(agent_id)
        identity = identity_of(agent_id)
        if identity.endorsement is None:
            raise IdentityRefused(identity.refusal)
        require_transition(identity.endorsement.status, status, name=agent.name)
        action, verb = _ACTS[status]
        message = f"{verb} the identity of {agent.name}" + (f": {reason}" if reason else "")
        return _store_statement(
            agent,
            identity.chain,
            identity.endorsement,
            action,
            actor,
            message,
            status=status,
            reason=reason,
        )


def rotate_agent_key(*, agent_id: UUID, actor: str) -> Endorsement:
    """Replace an agent's keys: the new signing key is signed by the one before, and endorsed; the public id stays.

    The private half of the signing key before is deleted. The exchange key before opens messages under way; the private halves of
    older ones are deleted. Raises NotFound, IdentityRefused unless the identity is active, and SealBroken.
    """
    with transaction.atomic():
        agent = lock_agent(agent_id)
        identity = identity_of(agent_id)
        identity.require_active()
        assert identity.endorsement is not None
        keys = master_keys()
        rows = list(AgentKey.objects.filter(agent_id=agent_id).order_by("number"))
        signing = [row for row in rows if row.purpose == KeyPurpose.SIGNING]
        exchange = [row for row in rows if row.purpose == KeyPurpose.EXCHANGE]
        pair = generate_key_pair()
        new = next_key(identity.chain, pair.public, private=open_key(agent, signing[-1], keys))
        chain = chain_of(agent, [*identity.chain.keys, new])
        number = exchange[-1].number + 1 if exchange else FIRST
        outdated = [row.id for row in (*signing, *exchange[:-1]) if row.sealed_private_key]
        AgentKey.objects.filter(id__in=outdated).update(sealed_private_key={})
        AgentKey.objects.bulk_create(
            [
                key_row(agent, KeyPurpose.SIGNING, new, pair.private, keys),
                exchange_row(agent, chain, number=number, signing=pair.private, keys=keys),
            ]
        )
        message = f"rotated the keys of {agent.name}: signing key {new.number}, exchange key {number}"
        return _store_statement(
            agent, chain, identity.endorsement, AuditAction.IDENTITY_ROTATED, actor, message
        )


_ACTS = {
    EndorsementStatus.ACTIVE: (AuditAction.IDENTITY_ENDORSED, "reinstated"),
    EndorsementStatus.SUSPENDED: (AuditAction.IDENTITY_SUSPENDED, "suspended"),
    EndorsementStatus.REVOKED: (AuditAction.IDENTITY_REVOKED, "revoked"),
}


def _store_statement(
    agent: Agent,
    chain: KeyChain,
    before: Endorsement,
    action: AuditAction,
    actor: str,
    message: str,
    *,
    status: EndorsementStatus = EndorsementStatus.ACTIVE,
    reason: str = "",
) -> Endorsement:
    """Sign and store a further statement about an agent, with its audit record and signal."""
    statement = endorse(
        chain,
        authority=ensure_system_authority(),
        serial=before.serial + 1,
        at=datetime.now(UTC),
        status=status,
        reason=reason,
    )
    AgentEndorsement.objects.filter(agent_id=agent.id).update(
        status=statement.status,
        serial=statement.serial,
        at=statement.at,
        reason=statement.reason,
        authority_number=statement.authority_number,
        signature=statement.signature,
    )
    record_statement(agent, action=action, actor=actor, message=message, statement=statement)
    return statement


def _valid_reason(reason: str) -> str:
    stripped = reason.strip()
    if not 0 < len(stripped) <= REASON_LENGTH:
        raise Invalid(f"a reason has 1 to {REASON_LENGTH} characters, got {len(stripped)}")
    check_text("a reason", stripped)
    return stripped


def record_statement(
    agent: Agent, *, action: AuditAction, actor: str, message: str, statement: Endorsement
) -> None:
    """Audit a statement about an agent's identity, and emit its signal."""
    detail = {"status": statement.status.value, "serial": statement.serial}
    record(action=action, actor=actor, agent_id=agent.id, message=message, detail=detail)
    emit(
        signal(
            SignalName.AGENT_IDENTITY_CHANGED,
            agent.id,
            name=agent.name,
            status=statement.status.value,
            actor=actor,
        )
    )

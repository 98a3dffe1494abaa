"""Grant, delegate and revoke capabilities of agents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Sum

from apps.agents.models import Agent
from apps.agents.services.authority import ensure_system_authority
from apps.agents.services.locks import lock_agent, lock_schedule
from apps.audit.models import AuditAction
from apps.audit.services import record, record_refusal
from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.authority_column import capability_name, from_record, issuer_of, to_record
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.audit.changes import AuditChange, change_of
from arbor.authority.constraints import UNCONSTRAINED, Constraints
from arbor.authority.grants import (
    ALL_AGENTS,
    DEFAULT_DEPTH,
    Capability,
    action_resource,
    check_depth,
    read_uri,
    widening,
)
from arbor.errors import AlreadyExists, CapabilityDenied, CapabilityInvalid, Invalid, LimitReached, NotFound
from arbor.ids import uuid7
from arbor.memory.content import check_text
from arbor.quotations import counted
from arbor.signals import SignalName, signal
from arbor.values import replace

#: Grants of one agent in force: each is read by every heartbeat.
MAX_GRANTS = 200
REASON_LENGTH = 500

# The grants in force among the given ones and all grants below them, at any depth.
_IN_FORCE = """
WITH RECURSIVE below AS (
    SELECT id, revoked_at FROM authority_capabilitygrant WHERE tenant_id = %(tenant)s AND id = ANY(%(roots)s::uuid[])
    UNION
    SELECT g.id, g.revoked_at FROM authority_capabilitygrant g JOIN below ON g.parent_id = below.id
    WHERE g.tenant_id = %(tenant)s
)
SELECT id FROM below WHERE revoked_at IS NULL
"""


@transaction.atomic
def grant_capability(
    *,
    agent_id: UUID,
    resource: str,
    actor: str,
    constraints: Constraints = UNCONSTRAINED,
    depth: int = DEFAULT_DEPTH,
) -> CapabilityGrant:
    """Grant a resource to an agent. Raises NotFound, CapabilityInvalid, Invalid, AlreadyExists, LimitReached."""
    uri, now = read_uri(resource.strip()), datetime.now(UTC)
    check_depth(depth)
    _check_expiry(constraints, now)
    agent = lock_agent(agent_id)
    _check_room(agent)
    stored = constraints.to_json() or None
    limits = Q(constraints=stored) if stored is not None else Q(constraints__isnull=True)
    same = CapabilityGrant.objects.filter(
        limits, agent_id=agent_id, resource=str(uri), revoked_at=None, parent=None
    )
    if existing := same.first():
        raise AlreadyExists(f"{agent.name} has {capability_name(existing.id)} for {uri} already")
    row = CapabilityGrant(
        tenant_id=agent.tenant_id,
        id=uuid7(),
        agent=agent,
        resource=str(uri),
        constraints=stored,
        depth=depth,
        granted_by=actor,
        granted_at=now,
    )
    sign_rows([row])
    row.save(force_insert=True)
    change = change_of({}, _terms(row))
    _record(row, AuditAction.CAPABILITY_GRANTED, actor, f"granted {uri} to {agent.name}", change)
    return row


def grant_actions(*, agents: Sequence[Agent], actions: Collection[str], actor: str) -> list[CapabilityGrant]:
    """Grant actions to agents that do not have them, without constraints; three statements for all. The caller audits it."""
    now, wanted = datetime.now(UTC), [action_resource(action) for action in dict.fromkeys(actions)]
    granted = set(
        CapabilityGrant.objects.filter(
            agent__in=agents,
            resource__in=wanted,
            constraints__isnull=True,
            revoked_at=None,
            parent=None,
        ).values_list("agent_id", "resource")
    )
    return _create_direct(
        [(agent, resource) for agent in agents for resource in wanted if (agent.id, resource) not in granted],
        actor=actor,
        now=now,
    )


def grant_to_all(*, actions: Collection[str], actor: str) -> list[CapabilityGrant]:
    """Grant actions to all agents of the tenant, future ones too. The caller audits it."""
    wanted = [action_resource(action) for action in dict.fromkeys(actions)]
    granted = set(
        CapabilityGrant.objects.filter(agent=None, resource__in=wanted, revoked_at=None).values_list(
            "resource", flat=True
        )
    )
    missing: list[tuple[Agent | None, str]] = [
        (None, resource) for resource in wanted if resource not in granted
    ]
    return _create_direct(missing, actor=actor, now=datetime.now(UTC))


@transaction.atomic
def delegate_capability(
    *,
    capability_id: UUID,
    to_agent_id: UUID,
    actor: str,
    resource: str = "",
    constraints: Constraints = UNCONSTRAINED,
    depth: int | None = None,
) -> CapabilityGrant:
    """Delegate a grant, or a part of it, to another agent of the tenant; limits of the grant are inherited.

    `resource` is that of the grant and `depth` one less than its depth, unless narrower ones are given. The uses of a counted
    grant that are delegated count as used. Raises NotFound, CapabilityInvalid, Invalid, LimitReached; a delegation that
    would widen the grant is audited and raises CapabilityDenied.
    """
    # In the order of locks: agents before rows. The holder's heartbeats use the grant under its schedule.
    holder_id = CapabilityGrant.objects.filter(id=capability_id).values_list("agent_id", flat=True).first()
    for agent_id in sorted({to_agent_id, holder_id or to_agent_id}):
        lock_schedule(agent_id)
    agent, now = lock_agent(to_agent_id), datetime.now(UTC)
    parent_row = _lock_grant(capability_id)
    parent = to_value(parent_row)
    _check_room(agent)
    if parent_row.agent_id is None:
        raise Invalid("all agents have this grant already; there is nothing to delegate")
    if parent_row.agent_id == to_agent_id:
        raise Invalid(f"{agent.name} has {parent.id} itself; delegate it to another agent")
    inherited = _inherited(constraints, parent.constraints)
    _check_expiry(inherited, now)
    child = replace(
        parent,
        id=capability_name(child_id := uuid7()),
        agent=agent.public_id,
        resource=read_uri(resource.strip()) if resource else parent.resource,
        constraints=inherited,
        parent_id=parent.id,
        depth=max(parent.depth - 1, 0) if depth is None else check_depth(depth),
        granted_at=now,
        ancestors=(parent, *parent.ancestors),
    )
    if refusal := _delegation_fault(parent_row, parent, child, now):
        record_refusal(
            action=AuditAction.REQUEST_REFUSED,
            actor=actor,
            agent_id=to_agent_id,
            message=f"refused to delegate {parent.id} to {agent.name}: {refusal}",
            detail={"capability": parent.id, "resource": str(child.resource)},
        )
        raise CapabilityDenied(refusal)
    row = _store_delegate(child_id, child, agent=agent, parent=parent_row, actor=actor)
    message = f"delegated {child.resource} from {parent.id} to {agent.name}"
    _record(row, AuditAction.CAPABILITY_DELEGATED, actor, message, change_of({}, _terms(row)))
    return row


@transaction.atomic
def revoke_capability(*, capability_id: UUID, reason: str, actor: str) -> int:
    """Revoke a grant and all grants delegated from it; return how many were in force. Raises NotFound, Invalid without a reason."""
    why = reason.strip()
    if not 0 < len(why) <= REASON_LENGTH:
        raise Invalid(f"a reason has 1 to {REASON_LENGTH} characters, got {len(why)}")
    check_text("a reason", why)
    row = _lock_grant(capability_id)
    if row.revoked_at is not None:
        raise Invalid(f"{capability_name(row.id)} was revoked already: {row.revoked_reason}")
    revoked = _revoke([row.id], reason=why, actor=actor)
    further = f" and {len(revoked) - 1} delegated from it" if len(revoked) > 1 else ""
    message = f"revoked {row.resource} of {holder_name(row)}{further}: {why}"
    change = change_of(_terms(row), {**_terms(row), "revoked": True, "reason": why})
    _record(row, AuditAction.CAPABILITY_REVOKED, actor, message, change)
    delegates = CapabilityGrant.objects.select_related("agent").filter(id__in=revoked).exclude(id=row.id)
    for delegate in delegates.order_by("id"):
        message = f"revoked {delegate.resource} of {holder_name(delegate)}, delegated from {capability_name(row.id)}: {why}"
        change = change_of(_terms(delegate), {**_terms(delegate), "revoked": True, "reason": why})
        _record(delegate, AuditAction.CAPABILITY_REVOKED, actor, message, change)
    return len(revoked)


def revoke_actions(*, action: str, agent_ids: Collection[UUID] | None, reason: str, actor: str) -> int:
    """Revoke these agents' grants of exactly this action, or with None that of all agents, and what was delegated from them.

    Returns how many were in force; grants of a wildcard stay. The caller audits it.
    """
    holders = Q(agent=None) if agent_ids is None else Q(agent_id__in=agent_ids)
    rows = CapabilityGrant.objects.filter(holders, resource=action_resource(action), revoked_at=None)
    return len(_revoke(list(rows.values_list("id", flat=True)), reason=reason, actor=actor))


def sign_rows(rows: Iterable[CapabilityGrant]) -> None:
    """Sign grants as the System Authority; the caller stores them."""
    key = ensure_system_authority()
    for row in rows:
        row.issuer = issuer_of(key.number)
        row.signature = key.sign(to_value(row).message()).hex()


def to_value(row: CapabilityGrant) -> Capability:
    """Return the grant of a row, whose agent is loaded."""
    tenant = str(row.tenant_id)
    return Capability(
        id=capability_name(row.id),
        tenant=tenant,
        agent=row.agent.public_id if row.agent is not None else ALL_AGENTS,
        issuer=row.issuer,
        resource=read_uri(row.resource),
        constraints=Constraints.from_json(row.constraints),
        parent_id=capability_name(row.parent_id) if row.parent_id else "",
        depth=row.depth,
        granted_at=row.granted_at,
        signature=row.signature,
        ancestors=tuple(from_record(above, tenant=tenant) for above in row.ancestors or ()),
        revoked_at=row.revoked_at,
        revoked_reason=row.revoked_reason,
    )


def holder_name(row: CapabilityGrant) -> str:
    """Return the name of the holder of a grant."""
    return row.agent.name if row.agent is not None else "all agents"


def _create_direct(
    wanted: Sequence[tuple[Agent | None, str]], *, actor: str, now: datetime
) -> list[CapabilityGrant]:
    rows = [
        CapabilityGrant(
            tenant_id=current_tenant(),
            id=uuid7(),
            agent=agent,
            resource=resource,
            granted_by=actor,
            granted_at=now,
        )
        for agent, resource in wanted
    ]
    if rows:
        sign_rows(rows)
        CapabilityGrant.objects.bulk_create(rows)
    return rows


def _revoke(roots: Sequence[UUID], *, reason: str, actor: str) -> list[UUID]:
    """Revoke grants and those below them; return those that were in force."""
    revoked: list[UUID] = []
    # The update waits for delegations of these grants that are under way, so it is repeated until it finds no new delegate.
    while roots and (in_force := [row[0] for row in fetch(_IN_FORCE, roots=list(roots))]):
        rows = CapabilityGrant.objects.filter(id__in=in_force, revoked_at=None)
        rows.update(revoked_at=datetime.now(UTC), revoked_by=actor, revoked_reason=reason[:REASON_LENGTH])
        revoked += in_force
    return revoked


def _lock_grant(capability_id: UUID) -> CapabilityGrant:
    """Lock a grant, so that no delegation overtakes its revocation. Raises NotFound."""
    rows = CapabilityGrant.objects.select_related("agent").filter(id=capability_id)
    row: CapabilityGrant | None = rows.select_for_update(of=("self",), no_key=True).first()
    if row is None:
        raise NotFound(f"there is no capability {capability_id} in this tenant")
    return row


def _store_delegate(
    row_id: UUID, child: Capability, *, agent: Agent, parent: CapabilityGrant, actor: str
) -> CapabilityGrant:
    """Sign and store a delegated grant; the uses that it may have count as uses of a counted parent."""
    row = CapabilityGrant(
        tenant_id=agent.tenant_id,
        id=row_id,
        agent=agent,
        resource=str(child.resource),
        constraints=child.constraints.to_json() or None,
        parent=parent,
        ancestors=[to_record(above) for above in child.ancestors],
        depth=child.depth,
        granted_by=actor,
        granted_at=child.granted_at,
    )
    sign_rows([row])
    row.save(force_insert=True)
    given_away = child.constraints.max_uses
    if given_away is not None and child.ancestors[0].constraints.max_uses is not None:
        CapabilityUse.objects.create(
            tenant_id=agent.tenant_id, capability=parent, number=given_away, at=child.granted_at
        )
    return row


def _delegation_fault(row: CapabilityGrant, parent: Capability, child: Capability, now: datetime) -> str:
    """Return why a grant cannot be delegated as `child`; empty if it can."""
    limits = parent.constraints
    if row.revoked_at is not None:
        return f"{parent.id} was revoked"
    if not parent.signature:
        return f"{parent.id} is not signed yet; `arbor prepare` signs it"
    if limits.expires_at is not None and limits.expires_at <= now:
        return f"{parent.id} has expired"
    if parent.depth < 1:
        return f"{parent.id} may not be delegated further"
    if limits.rate is not None:
        # The uses of delegates could not be counted together.
        return f"{parent.id} has a rate, and a grant with a rate is not delegated; grant one of its own"
    if limits.max_uses is not None and child.constraints.max_uses is not None:
        left = limits.max_uses - _uses_of(row)
        if child.constraints.max_uses > left:
            wanted = child.constraints.max_uses
            return f"it would have {counted(wanted, 'use')}, and {parent.id} has {left} left"
    return widening(child, parent)


def _inherited(own: Constraints, parent: Constraints) -> Constraints:
    """Return the constraints; each one that is not given is that of the parent."""
    return Constraints(
        not_before=own.not_before or parent.not_before,
        expires_at=own.expires_at or parent.expires_at,
        rate=own.rate or parent.rate,
        max_uses=own.max_uses or parent.max_uses,
        window=own.window or parent.window,
    )


def _uses_of(row: CapabilityGrant) -> int:
    used: int = CapabilityUse.objects.filter(capability=row).aggregate(used=Sum("number"))["used"] or 0
    return used


def _check_expiry(constraints: Constraints, now: datetime) -> None:
    if constraints.expires_at is not None and constraints.expires_at <= now:
        raise CapabilityInvalid(f"a grant expires in the future, got {constraints.expires_at.isoformat()}")


def _check_room(agent: Agent) -> None:
    if CapabilityGrant.objects.filter(agent=agent, revoked_at=None).count() >= MAX_GRANTS:
        raise LimitReached(
            f"{agent.name} has {MAX_GRANTS} grants in force, the most; revoke some, or grant a wildcard"
        )


def _terms(row: CapabilityGrant) -> dict[str, Any]:
    return {"resource": row.resource, "constraints": row.constraints or {}, "revoked": False}


def _record(row: CapabilityGrant, action: AuditAction, actor: str, message: str, change: AuditChange) -> None:
    record(
        action=action,
        actor=actor,
        agent_id=row.agent_id,
        message=message,
        detail={
            "capability": capability_name(row.id),
            "resource": row.resource,
            "constraints": row.constraints or {},
            "depth": row.depth,
        },
        change=change,
    )
    if row.agent_id is not None:
        emit(
            signal(
                SignalName.AGENT_CAPABILITY_CHANGED,
                row.agent_id,
                name=holder_name(row),
                resource=row.resource,
                change=action.value.partition(".")[2],
                actor=actor,
            )
        )

"""Approve, deny, list and expire the requests of agents for approval."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.agents.models import HeartbeatSchedule, ScheduleState, Trigger
from apps.agents.services.locks import lock_schedule, lock_schedules
from apps.agents.services.percepts import bring_forward
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.models import ActionApproval
from apps.authority.services.modes import set_mode
from apps.signals.services.emission import emit
from arbor.agents.lifecycle import AgentStatus
from arbor.authority.approvals import APPROVAL_LIFETIME, OPEN_APPROVALS, TRANSITIONS, ApprovalStatus
from arbor.authority.modes import TrustMode
from arbor.errors import NotFound, TransitionIllegal
from arbor.memory.content import check_line
from arbor.signals import SignalName, signal

#: Characters of a reason.
REASON_LENGTH = 2_000
#: The console's badge stops counting here.
COUNTED_AT_MOST = 100


def approvals(
    *, agent_id: UUID | None = None, statuses: Collection[ApprovalStatus] = ()
) -> QuerySet[ActionApproval]:
    """Return the requests for approval, the latest first: of one agent or of all, in these statuses or in any."""
    rows = ActionApproval.objects.select_related("agent").order_by("-asked_at", "-id")
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    return rows.filter(status__in=statuses) if statuses else rows


def approval_of(approval_id: UUID) -> ActionApproval:
    """Return a request for approval. Raises NotFound."""
    row: ActionApproval | None = approvals().filter(id=approval_id).first()
    if row is None:
        raise NotFound(f"there is no request for approval {approval_id} in this tenant")
    return row


def waiting_to_count() -> QuerySet[ActionApproval]:
    """Return a query of requests that wait for a person, a hundred at most, for counts."""
    waiting = ActionApproval.objects.filter(status=ApprovalStatus.PENDING, expires_at__gt=datetime.now(UTC))
    return waiting.order_by()[:COUNTED_AT_MOST]


def expired_undecided(*, since: datetime, now: datetime) -> QuerySet[ActionApproval]:
    """Return the requests that expired between two times without a decision of a person."""
    # By the time of the request, which has an index.
    asked = (since - APPROVAL_LIFETIME, now - APPROVAL_LIFETIME)
    rows: QuerySet[ActionApproval] = ActionApproval.objects.filter(
        status=ApprovalStatus.EXPIRED, decided_at__isnull=True, asked_at__range=asked
    )
    return rows


@transaction.atomic
def approve(*, approval_id: UUID, actor: str, reason: str = "", always: bool = False) -> ActionApproval:
    """Approve a request: the agent's next heartbeat, which is due now, executes the action with these parameters, once.

    `always`: the agent may do this without asking from now on. Raises NotFound, Invalid, and TransitionIllegal for a request
    that is decided or has expired.
    """
    row = _decide(approval_id, ApprovalStatus.APPROVED, actor=actor, reason=reason)
    if always:
        set_mode(agent_id=row.agent_id, prefix=row.resource, mode=TrustMode.ALLOW, actor=actor)
    bring_forward(agent_id=row.agent_id, trigger=Trigger.EVENT)
    return row


def describe_execution(approval: ActionApproval) -> str:
    """Return in words when the action of an approved request is executed."""
    schedule = HeartbeatSchedule.objects.filter(agent_id=approval.agent_id)
    if schedule.exclude(state=ScheduleState.OFF).exists():
        return "the next heartbeat, due now, executes it once"
    agent = approval.agent
    rests = "has no heartbeats now" if agent.status == AgentStatus.ACTIVE else f"is {agent.status}"
    return (
        f"{agent.name} {rests}; its next heartbeat executes it once, if that is before the approval expires"
    )


@transaction.atomic
def deny(*, approval_id: UUID, actor: str, reason: str = "") -> ActionApproval:
    """Deny a request, or withdraw an approval before the action was executed; the agent reads the reason.

    Raises NotFound, Invalid, and TransitionIllegal for a request that is denied, executed or expired.
    """
    return _decide(approval_id, ApprovalStatus.DENIED, actor=actor, reason=reason)


@transaction.atomic
def expire_approvals(*, agent_id: UUID, now: datetime) -> int:
    """Expire an agent's requests that nobody decided, and its approvals that were not used; return their number."""
    rows = list(
        ActionApproval.objects.select_for_update(skip_locked=True)
        .filter(agent_id=agent_id, status__in=OPEN_APPROVALS, expires_at__lte=now)
        .order_by("id")
    )
    for row in rows:
        what = "nobody decided" if row.status == ApprovalStatus.PENDING else "the approval was not used"
        _expire(row, f"{what} in time", actor="system:maintenance")
        _emit_decision(row, by="maintenance")
    return len(rows)


@transaction.atomic
def expire_approvals_of_actions(*, name_prefix: str, why: str, actor: str) -> int:
    """Expire the open requests for actions with a name prefix, and their unused approvals; return the total number."""
    found = ActionApproval.objects.filter(action__startswith=name_prefix, status__in=OPEN_APPROVALS)
    # In the order of heartbeats, as in `_decide`.
    lock_schedules(list(found.values_list("agent_id", flat=True)))
    rows = list(found.select_for_update().order_by("id"))
    for row in rows:
        _expire(row, why, actor=actor)
        _emit_decision(row, by=actor)
    return len(rows)


def _expire(row: ActionApproval, why: str, *, actor: str) -> None:
    row.status = ApprovalStatus.EXPIRED
    row.save(update_fields=["status"])
    record(
        action=AuditAction.APPROVAL_EXPIRED,
        actor=actor,
        agent_id=row.agent_id,
        message=f"the request to {row.action} expired: {why}",
        detail={"approval_id": str(row.id)},
    )


def _decide(approval_id: UUID, status: ApprovalStatus, *, actor: str, reason: str) -> ActionApproval:
    reason = reason.strip()
    check_line("a reason", reason, REASON_LENGTH)
    # In the order of heartbeats, which lock the schedule while they read and use approvals.
    lock_schedule(approval_of(approval_id).agent_id)
    row: ActionApproval | None = ActionApproval.objects.select_for_update().filter(id=approval_id).first()
    if row is None:
        raise NotFound(f"the request for approval {approval_id} was deleted with its agent")
    now = datetime.now(UTC)
    before = ApprovalStatus(row.status)
    if row.expires_at <= now and before in OPEN_APPROVALS:
        raise TransitionIllegal(f"the request {row.id} expired at {row.expires_at:%Y-%m-%d %H:%M} UTC")
    if status not in TRANSITIONS[before]:
        raise TransitionIllegal(f"the request {row.id} is {before} already, so it cannot be {status}")
    row.status, row.decided_by, row.decided_at, row.reason = status, actor, now, reason
    row.save(update_fields=["status", "decided_by", "decided_at", "reason"])
    record(
        action=AuditAction.APPROVAL_DECIDED,
        actor=actor,
        agent_id=row.agent_id,
        message=f"{status} the request to {row.action}{f': {reason}' if reason else ''}",
        detail={"approval_id": str(row.id), "resource": row.resource, "body_hash": row.body_hash},
    )
    _emit_decision(row, by=actor)
    return row


def _emit_decision(row: ActionApproval, *, by: str) -> None:
    emit(
        signal(
            SignalName.APPROVAL_DECIDED,
            row.agent_id,
            approval=row.id,
            action=row.action,
            status=ApprovalStatus(row.status).value,
            by=by,
        )
    )

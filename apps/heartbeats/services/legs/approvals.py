"""Write the requests for approval that heartbeats make, use and withdraw."""

from __future__ import annotations

from collections.abc import Sequence

from apps.authority.models import ActionApproval
from apps.tenants.statements import change, insert_rows
from arbor.authority.approvals import ApprovalStatus, NewApproval
from arbor.errors import ApprovalLost
from arbor.heartbeat.effects import Effects
from arbor.heartbeat.state import HeartbeatState

# The count of the rows makes the use exactly one: a request that was withdrawn, used or has expired is not updated. Of a pending
# request the same action runs because a rule has come to allow it.
_USE = """
UPDATE authority_actionapproval r SET status = 'executed', executed_by = used.heartbeat, executed_at = now()
FROM unnest(%(ids)s::uuid[], %(heartbeats)s::uuid[]) AS used (id, heartbeat)
WHERE r.tenant_id = %(tenant)s AND r.id = used.id AND r.id = ANY(%(ids)s::uuid[])
    AND r.status IN ('approved', 'pending') AND r.expires_at > now()
"""
_WITHDRAW = """
UPDATE authority_actionapproval r SET status = 'withdrawn', reason = refused.reason
FROM unnest(%(ids)s::uuid[], %(reasons)s::text[]) AS refused (id, reason)
WHERE r.tenant_id = %(tenant)s AND r.id = refused.id AND r.id = ANY(%(ids)s::uuid[]) AND r.status = 'approved'
"""


def write_approvals(heartbeats: Sequence[tuple[HeartbeatState, Effects]]) -> None:
    """Write the requests of heartbeats; no statement without any. Raises ApprovalLost for one that cannot be used any more."""
    insert_rows([_row(heartbeat, new) for heartbeat, effects in heartbeats for new in effects.approvals])
    used = [
        (approval_id, heartbeat.heartbeat_id)
        for heartbeat, effects in heartbeats
        for approval_id in effects.approvals_used
    ]
    if used:
        ids, executed_by = zip(*sorted(used), strict=True)
        if change(_USE, ids=list(ids), heartbeats=list(executed_by)) != len(used):
            raise ApprovalLost
    withdrawn = sorted(pair for _, effects in heartbeats for pair in effects.approvals_withdrawn)
    if withdrawn:
        ids, reasons = zip(*withdrawn, strict=True)
        change(_WITHDRAW, ids=list(ids), reasons=list(reasons))


def _row(heartbeat: HeartbeatState, new: NewApproval) -> ActionApproval:
    return ActionApproval(
        id=new.id,
        tenant_id=heartbeat.tenant_id,
        agent_id=heartbeat.agent_id,
        heartbeat_id=heartbeat.heartbeat_id,
        turn=new.turn,
        index=new.index,
        action=new.action,
        resource=new.resource,
        body=new.body,
        body_hash=new.body_hash,
        about=new.about,
        reasoning=new.reasoning,
        goal_id=new.goal_id,
        intent_id=new.intent_id,
        why=new.why,
        status=ApprovalStatus.PENDING,
        asked_at=new.asked_at,
        expires_at=new.expires_at,
    )

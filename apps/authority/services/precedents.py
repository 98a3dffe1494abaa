"""Read the decisions of people about requests for approval, as precedents of later ones."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.authority.models import ActionApproval
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.precedents import DECIDED, DECISIONS_READ, Precedent, precedents_for

#: The decisions about the latest decided requests of the agent `a`, as arrays in the order in which `arbor.heartbeat.influence` unpacks them.
DECISIONS_COLUMN = """
(SELECT coalesce(json_agg(json_build_array(
    decided.id, decided.action, decided.about, decided.status <> 'denied', left(decided.reason, 300), decided.decided_at)), '[]')
FROM (
    SELECT id, action, about, status, reason, decided_at FROM authority_actionapproval
    WHERE tenant_id = %(tenant)s AND agent_id = a.id AND status IN ('approved', 'executed', 'denied') AND decided_at IS NOT NULL
    ORDER BY asked_at DESC, id DESC LIMIT %(decisions)s
) decided) AS decisions
"""


def decision_values() -> dict[str, int]:
    """Return the parameters of DECISIONS_COLUMN, besides the tenant."""
    return {"decisions": DECISIONS_READ}


def precedents_of(row: ActionApproval) -> list[Precedent]:
    """Return the precedents of a request. One query."""
    return precedents_of_all([row])[row.id]


def precedents_of_all(rows: Collection[ActionApproval]) -> dict[UUID, list[Precedent]]:
    """Return the precedents of each request, by id; one query for each agent among them."""
    decided = {agent_id: _decided(agent_id) for agent_id in {row.agent_id for row in rows}}
    return {
        row.id: precedents_for(
            action=row.action,
            about=row.about,
            decided=[precedent for precedent in decided[row.agent_id] if precedent.id != row.id],
        )
        for row in rows
    }


def _decided(agent_id: UUID) -> list[Precedent]:
    """Return the decisions about the latest decided requests of an agent."""
    # As in DECISIONS_COLUMN: without a decision, a request was executed because a rule allowed its action.
    rows = ActionApproval.objects.filter(
        agent_id=agent_id, status__in=list(DECIDED), decided_at__isnull=False
    )
    return [
        Precedent(
            id=row.id,
            action=row.action,
            about=row.about,
            approved=DECIDED[ApprovalStatus(row.status)],
            reason=row.reason,
            decided_by=row.decided_by,
            decided_at=row.decided_at,
        )
        for row in rows.order_by("-asked_at", "-id")[:DECISIONS_READ]
        if row.decided_at is not None
    ]

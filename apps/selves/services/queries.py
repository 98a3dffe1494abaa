"""Handwritten statements about the self, each with its reason."""

from __future__ import annotations

#: The columns of a proposal, in the order of PENDING_PROPOSALS.
PROPOSAL_COLUMNS = (
    "tenant_id",
    "id",
    "agent_id",
    "kind",
    "content",
    "change",
    "confidence",
    "evidence",
    "source",
    "status",
    "deferrals",
    "reason",
    "decided_by",
    "created_at",
    "decided_at",
)
#: Locks an agent. Fixed, because agents propose in many heartbeats, and querysets take five times as long.
LOCK_AGENT_TO_PROPOSE = (
    "SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s FOR NO KEY UPDATE"
)
#: Reads the pending proposals, after the lock above.
PENDING_PROPOSALS = """
SELECT tenant_id, id, agent_id, kind, content, change::json, confidence, evidence::json, source, status, deferrals, reason,
    decided_by, created_at, decided_at
FROM selves_proposal WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'pending'
ORDER BY created_at DESC
"""

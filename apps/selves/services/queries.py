"""Handwritten statements about the self, each with its reason."""

from __future__ import annotations

from arbor.selves.proposals import SELF_CHANGES_PER_DAY, SELF_COOLDOWN

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
#: Lock an agent. Fixed, because agents propose in many heartbeats, and querysets take five times as long.
LOCK_AGENT_TO_PROPOSE = (
    "SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s FOR NO KEY UPDATE"
)
#: Read the pending proposals, after the lock above.
PENDING_PROPOSALS = """
SELECT tenant_id, id, agent_id, kind, content, change::json, confidence, evidence::json, source, status, deferrals, reason,
    decided_by, created_at, decided_at
FROM selves_proposal WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'pending'
ORDER BY created_at DESC
"""
#: Insert a change of a self under the lock of its agent, as the next version, or as part of the given one. Fixed, so that
#: the version needs no statement of its own.
RECORD_SELF_CHANGE = """
INSERT INTO selves_selfchange
    (id, tenant_id, agent_id, version, what, target_id, before, after, proposal_id, decided_by, reason, at)
SELECT %(id)s, %(tenant)s, %(agent)s, coalesce(%(version)s::integer, (
        SELECT coalesce(max(version), 1) + 1 FROM selves_selfchange WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    )), %(what)s, %(target)s, %(before)s::jsonb, %(after)s::jsonb, %(proposal)s, %(decided_by)s, %(reason)s, %(at)s
RETURNING version
"""
#: The condition that the agent cannot accept a proposal `p` yet, as `arbor.selves.proposals.check_pace` decides.
TOO_SOON = f"""
p.kind IN ('identity', 'belief', 'preference') AND EXISTS (
    SELECT FROM selves_selfchange c
    WHERE c.tenant_id = p.tenant_id AND c.agent_id = p.agent_id AND starts_with(c.decided_by, 'heartbeat:')
        AND c.at > now() - interval '1 day'
    HAVING count(*) >= {SELF_CHANGES_PER_DAY} OR bool_or(
        c.at > now() - interval '{SELF_COOLDOWN.total_seconds():.0f} seconds' AND CASE p.kind
            WHEN 'identity' THEN c.what = 'aspect'
            WHEN 'belief' THEN c.what = 'belief' AND c.target_id::text = p.change->>'belief'
            ELSE c.what = 'preference' AND c.target_id IN (
                SELECT f.id FROM selves_preference f WHERE f.tenant_id = p.tenant_id AND f.agent_id = p.agent_id
                    AND f.key = p.change->>'key'
            )
        END
    )
)
"""  # noqa: S608 (no external input)
#: Select the given proposals that the agent may not accept yet.
PROPOSALS_TOO_SOON = f"""
SELECT p.id FROM selves_proposal p
WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.id = ANY(%(proposals)s::uuid[]) AND {TOO_SOON}
"""  # noqa: S608 (no external input)

"""What an agent sees of its goals at a heartbeat: columns of the one statement of `apps.heartbeats.services.sight`."""

from __future__ import annotations

from typing import Any

from apps.goals.services.views import NOTES_SHOWN

#: `a` is the agent's row.
GOALS_SEEN = """
    (SELECT coalesce(json_agg(goal), '[]') FROM (
        SELECT g.id, g.title, g.description, g.state, g.layer, g.source, g.fraction, g.deadline, g.blocked_by,
            g.touched_at, ARRAY(
                SELECT n.text FROM goals_progressnote n WHERE n.tenant_id = g.tenant_id AND n.goal_id = g.id
                ORDER BY n.at DESC LIMIT %(notes)s
            ) AS notes
        FROM goals_goal g WHERE g.tenant_id = a.tenant_id AND g.agent_id = a.id
            AND g.state IN ('active', 'queued', 'backburner')
    ) goal) AS goals,
    (SELECT coalesce(json_agg(intent ORDER BY intent.id), '[]') FROM (
        SELECT id, goal_id, action, description, status, attempts FROM goals_intent
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status IN ('pending', 'locked')
    ) intent) AS intents
"""


def goal_values() -> dict[str, Any]:
    """Return the statement's values."""
    return {"notes": NOTES_SHOWN}

"""What an agent sees of itself at a heartbeat: columns of the one statement of `apps.heartbeats.services.sight`."""

from __future__ import annotations

from typing import Any

#: Of who it is and what it believes, the firmest: our choice, for every beat's prompt carries them.
ASPECTS_SHOWN = 6
BELIEFS_SHOWN = 8

#: `a` is the agent's row, `s` its state.
SELF_SEEN = """
    (SELECT coalesce(json_agg(aspect), '[]') FROM (
        SELECT id, kind, content, status FROM selves_identityaspect
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status <> 'dropped'
        ORDER BY stability DESC, id LIMIT %(aspects)s
    ) aspect) AS aspects,
    (SELECT coalesce(json_agg(belief), '[]') FROM (
        SELECT id, category, statement, confidence, status FROM selves_belief
        WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status <> 'dropped'
        ORDER BY stability + confidence DESC, id LIMIT %(beliefs)s
    ) belief) AS beliefs
"""


def self_values() -> dict[str, Any]:
    """Return the statement's values."""
    return {"aspects": ASPECTS_SHOWN, "beliefs": BELIEFS_SHOWN}

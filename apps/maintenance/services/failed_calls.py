"""List and retry failed maintenance calls."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.jobs.summaries import reset_failures
from apps.tenants.statements import fetch

_RETRY = """
UPDATE calls_externalcall SET status = 'retried'
WHERE tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s)
    AND errand_status = 'failed' AND purpose <> 'chat'
RETURNING purpose, subject
"""
_FAILED = """
SELECT c.id, a.name, c.purpose, c.subject, c.model, c.error_kind || ': ' || c.error, c.ended_at
FROM calls_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR c.agent_id = %(agent)s)
    AND c.errand_status = 'failed' AND c.purpose <> 'chat'
ORDER BY c.ended_at DESC, c.id LIMIT %(limit)s
"""


@dataclass(frozen=True, kw_only=True)
class FailedMaintenanceCall:
    """A failed maintenance call, as commands and pages show it."""

    id: UUID
    agent: str
    purpose: str
    #: `an episode`, or the number of memories.
    about: str
    model: str
    reason: str
    ended_at: datetime


def failed_maintenance_calls(
    *, agent_id: UUID | None = None, limit: int = 100
) -> list[FailedMaintenanceCall]:
    """Return the failed maintenance calls of an agent or the whole tenant, latest first. One statement."""
    return [
        FailedMaintenanceCall(
            id=call_id,
            agent=name,
            purpose=purpose,
            about=_about(json.loads(subject)),
            model=model,
            reason=reason,
            ended_at=ended_at,
        )
        for call_id, name, purpose, subject, model, reason, ended_at in fetch(
            _FAILED, agent=agent_id, limit=limit
        )
    ]


def _about(subject: dict[str, Any]) -> str:
    return "an episode" if "episode" in subject else f"{len(subject['memories'])} memories"


def retry_failed_maintenance_calls(*, actor: str, agent_id: UUID | None = None) -> int:
    """Release the subjects of failed maintenance calls for new ones, in the open transaction; return their number.

    For one agent, or the whole tenant. The next job run creates new calls; the failed ones are retained.
    """
    rows = fetch(_RETRY, agent=agent_id)
    episodes = [
        subject["episode"] for _, subject_json in rows if "episode" in (subject := json.loads(subject_json))
    ]
    reset_failures(episodes)
    if rows:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"{len(rows)} failed calls of maintenance are to be made anew",
            detail={"purposes": dict(Counter(purpose for purpose, _ in rows))},
        )
    return len(rows)

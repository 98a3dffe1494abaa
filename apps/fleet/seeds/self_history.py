"""Record what a restore changed of an agent's self, as one version of its self history."""

from __future__ import annotations

from uuid import UUID

from apps.selves.services.changes import SelfChangeRecord, record_self_change
from apps.selves.services.history import latest_version, load_self
from arbor.selves.history import RESTORATION_VERBS, SelfState, differences


def record_self_differences(agent_id: UUID, before: SelfState, *, actor: str, reason: str) -> int:
    """Record each part of the self that differs from `before`; return the number of parts. The agent must be locked."""
    found = differences(before, load_self(agent_id))
    version = latest_version(agent_id) + 1
    for difference in found:
        record_self_change(
            SelfChangeRecord(
                agent_id=agent_id,
                what=difference.part,
                target_id=UUID(difference.target_id),
                before=difference.before,
                after=difference.after,
                actor=actor,
                message=f"{RESTORATION_VERBS[difference.difference]} the {difference.kind}: {difference.name}",
                reason=reason,
                version=version,
            )
        )
    return len(found)

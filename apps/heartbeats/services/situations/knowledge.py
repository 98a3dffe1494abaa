"""Complete the columns of situations with the texts of skills, and with the signals that agents are subscribed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.knowledge.services.signal_reading import PendingSignals, pending_signals
from apps.knowledge.services.skill_texts import skill_views

_NONE = PendingSignals()


def with_knowledge(columns: Mapping[UUID, Mapping[str, Any]]) -> dict[UUID, dict[str, Any]]:
    """Return the columns of situations with `skills` as views and `subscriptions` as `PendingSignals`.

    No statement for agents without skills and subscriptions, and none for skills whose texts this process has cached.
    """
    skills = skill_views(row["skills"] for row in columns.values())
    signals = pending_signals({agent_id: row["subscriptions"] for agent_id, row in columns.items()})
    return {
        agent_id: {**row, "skills": views, "subscriptions": signals.get(agent_id, _NONE)}
        for (agent_id, row), views in zip(columns.items(), skills, strict=True)
    }

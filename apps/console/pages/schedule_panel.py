"""Read the schedule panel of an agent's page by two queries: notices, daily usage, policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.agents.models import AgentPolicy
from apps.calls.models import DailyUsage


@dataclass(frozen=True, kw_only=True)
class SchedulePanel:
    """Notices, daily usage and policy of an agent."""

    #: [(kind, text)].
    notices: Sequence[tuple[str, str]]
    idle_beats: int
    usage: DailyUsage | None
    policy: AgentPolicy | None

    @property
    def is_low(self) -> bool:
        """Tell whether the day's budget runs low."""
        return self.usage is not None and self.usage.level != "normal"


def read_schedule_panel(agent_id: UUID, *, notices: Any, idle_beats: int) -> SchedulePanel:
    """Read the panel in the current tenant; `notices` is the column of the agent's state."""
    return SchedulePanel(
        notices=[
            (str(notice.get("kind", "")), str(notice.get("text", "")))
            for notice in (notices if isinstance(notices, list) else [])
            if isinstance(notice, Mapping)
        ],
        idle_beats=idle_beats,
        usage=DailyUsage.objects.filter(agent_id=agent_id, day=datetime.now(UTC).date()).first(),
        policy=AgentPolicy.objects.filter(agent_id=agent_id).first(),
    )

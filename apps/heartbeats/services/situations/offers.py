"""Offer the tools of MCP servers that an agent may call, and the workflows that it may start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arbor.authority.authorization import AgentAuthority
from arbor.heartbeat.actions import ActionParams, ActionSpec
from arbor.heartbeat.situation import ActionOffer, Situation, ToolOffer
from arbor.tools.names import action_of
from arbor.tools.status import ToolStatus
from arbor.workflows.values import START_WORKFLOW, WORKFLOW_PREFIX

_EXECUTE = ("workflows", "execute")

_SUSPENDED = {
    ToolStatus.CHANGED: "its server has changed it; it is suspended until an operator has looked at it",
    ToolStatus.MISSING: "its server no longer lists it",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTools:
    """The tools that an agent has a grant of, by action: rows of those that it may call, and the reasons why others are suspended."""

    allowed: Mapping[str, Mapping[str, Any]]
    suspended: dict[str, str]

    def offers(self, *, price: Callable[[ActionSpec], int]) -> list[ActionOffer]:
        """Return the offers of the tools at the prices of a budget."""
        return [
            ActionOffer(
                name=action,
                cost=price(ActionSpec(name=action, cost=row["cost"], summary="", params=ActionParams)),
                summary="",
                tool=ToolOffer(
                    id=str(row["id"]),
                    fingerprint=row["fingerprint"],
                    description=row["description"],
                    arguments=row["schema"],
                ),
            )
            for action, row in self.allowed.items()
        ]


def tools_of(columns: Mapping[str, Any], *, permits: Callable[[str], bool]) -> AgentTools:
    """Return the tools of the agent of these columns; `permits` says whether it has a grant of an action."""
    tools = {action_of(row["server"], row["name"]): row for row in columns["tools"]}
    own = {action: row for action, row in tools.items() if permits(action)}
    allowed = {action: row for action, row in own.items() if row["status"] == ToolStatus.ALLOWED}
    return AgentTools(
        allowed=allowed,
        suspended={
            action: _SUSPENDED[ToolStatus(row["status"])]
            for action, row in own.items()
            if action not in allowed
        },
    )


def startable(authority: AgentAuthority, now: datetime) -> tuple[str, ...]:
    """Return the workflows that the agent may start now, by its grants, in alphabetical order; `*` for all."""
    names = {
        grant.resource.segments[2] if len(grant.resource.segments) > 2 else "*"
        for grant in authority.grants
        if grant.resource.segments[:2] == _EXECUTE and grant.revoked_at is None
    }
    return tuple(sorted(name for name in names if authority.permits(WORKFLOW_PREFIX + name, now=now)))


def with_startable(
    situation: Situation, authority: AgentAuthority, possible: Collection[str], now: datetime
) -> Situation:
    """Return the situation in which the offer of `start_workflow`, if there is one, names the workflows."""
    if START_WORKFLOW not in possible:
        return situation
    named = {"workflow": f"its name: {', '.join(startable(authority, now))}"}
    actions = [
        offer.model_copy(update={"params": offer.params | named}) if offer.name == START_WORKFLOW else offer
        for offer in situation.actions
    ]
    return situation.model_copy(update={"actions": actions})

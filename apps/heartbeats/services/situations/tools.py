"""Read the tools of MCP servers that an agent may call, from the columns of its situation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arbor.heartbeat.actions import ActionParams, ActionSpec
from arbor.heartbeat.situation import ActionOffer, ToolOffer
from arbor.tools.names import action_of
from arbor.tools.status import ToolStatus

_SUSPENDED = {
    ToolStatus.CHANGED: "its server has changed it; it is suspended until an operator has looked at it",
    ToolStatus.MISSING: "its server no longer lists it",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedTool:
    """A tool that an agent may call, with its price in energy."""

    action: str
    cost: int
    offer: ToolOffer


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTools:
    """The tools of an agent: those that it may call, and the reasons by action for which others are suspended."""

    allowed: Sequence[AllowedTool] = ()
    suspended: dict[str, str] = field(default_factory=dict)

    def offers(self, *, price: Callable[[ActionSpec], int]) -> list[ActionOffer]:
        """Return the offers of the tools at the prices of a budget."""
        return [
            ActionOffer(
                name=tool.action,
                cost=price(ActionSpec(name=tool.action, cost=tool.cost, summary="", params=ActionParams)),
                summary="",
                tool=tool.offer,
            )
            for tool in self.allowed
        ]


_NONE = AgentTools()


def tools_of(columns: Mapping[str, Any], *, permits: Callable[[str], bool]) -> AgentTools:
    """Return the tools that the agent of these columns may call; `permits` says whether it has a grant of an action."""
    rows = columns["tools"]
    if not rows:
        return _NONE
    own = [row for row in rows if permits(_action(row))]
    return AgentTools(
        allowed=[_allowed(row) for row in own if row["status"] == ToolStatus.ALLOWED],
        suspended={
            _action(row): _SUSPENDED[ToolStatus(row["status"])]
            for row in own
            if row["status"] != ToolStatus.ALLOWED
        },
    )


def _allowed(row: Mapping[str, Any]) -> AllowedTool:
    offer = ToolOffer(
        id=str(row["id"]),
        fingerprint=row["fingerprint"],
        description=row["description"],
        arguments=row["schema"],
    )
    return AllowedTool(action=_action(row), cost=row["cost"], offer=offer)


def _action(row: Mapping[str, Any]) -> str:
    return action_of(row["server"], row["name"])

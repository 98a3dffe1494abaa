"""Allow and withdraw tools."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import transaction

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.explanations import agents_with_action
from apps.authority.services.grants import grant_actions, grant_to_all, revoke_actions
from apps.tenants.limits import check_row_limit
from apps.tools.models import Tool
from arbor.agents.energy import ENERGY_CEILING
from arbor.errors import Invalid, NotFound, PreconditionFailed
from arbor.tools.names import PREFIX
from arbor.tools.status import ToolStatus

#: Tools of a tenant that may be allowed at once: each is described in the prompts of its agents.
MAX_ALLOWED = 40


@transaction.atomic
def allow_tool(
    *,
    tool_id: UUID,
    actor: str,
    cost: int | None = None,
    agent_ids: Collection[UUID] | None = None,
    fingerprint: str = "",
) -> Tool:
    """Allow a tool to all agents of the tenant, or to these alone; a changed tool is allowed as it is now.

    Without `cost`, its price stays. A `fingerprint` is that of the listing that the operator has seen. Raises NotFound,
    Invalid for the price and for a tool that its server lists no longer, LimitReached, and PreconditionFailed where the
    tool has changed since it was seen.
    """
    tool = _lock_tool(tool_id)
    if fingerprint and fingerprint != tool.fingerprint:
        raise PreconditionFailed(f"{tool.action} has changed since you saw it; look at it again")
    if tool.status == ToolStatus.MISSING:
        raise Invalid(f"{tool.server.name} no longer lists {tool.name}; refresh the server once it does")
    if cost is not None and not 0 <= cost <= ENERGY_CEILING:
        raise Invalid(f"a tool's price in energy must be 0 to {ENERGY_CEILING}, got {cost}")
    check_row_limit(
        Tool.objects.exclude(id=tool_id).filter(status=ToolStatus.ALLOWED),
        most=MAX_ALLOWED,
        refusal=f"a tenant allows at most {MAX_ALLOWED} tools; withdraw one that is not needed",
    )
    tool.cost = tool.cost if cost is None else cost
    tool.status, tool.before, tool.for_all = ToolStatus.ALLOWED, {}, agent_ids is None
    tool.save(update_fields=["status", "before", "cost", "for_all"])
    names = set_agents(tool.action, agent_ids=agent_ids, actor=actor)
    whose = "all agents" if agent_ids is None else ", ".join(names) or "no agent"
    _audit(tool, actor, f"allowed {tool.action} to {whose}")
    return tool


@transaction.atomic
def deny_tool(*, tool_id: UUID, actor: str) -> Tool:
    """Withdraw a tool from all agents; one that its server lists no longer is removed. Raises NotFound."""
    tool = _lock_tool(tool_id)
    was_missing = tool.status == ToolStatus.MISSING
    tool.status, tool.before, tool.for_all = ToolStatus.OFF, {}, True
    set_agents(tool.action, agent_ids=(), actor=actor)
    if was_missing:
        Tool.objects.filter(id=tool.id).delete()
    else:
        tool.save(update_fields=["status", "before", "for_all"])
    _audit(tool, actor, f"withdrew {tool.action}")
    return tool


def tool_by_action(action: str) -> Tool:
    """Return a tool by the name of its action, with or without its prefix. Raises NotFound."""
    server, _, name = action.strip().removeprefix(PREFIX).partition(".")
    tool: Tool | None = Tool.objects.select_related("server").filter(server__name=server, name=name).first()
    if tool is None:
        raise NotFound(f"there is no tool {action!r}; `arbor tool list` shows those of all servers")
    return tool


def agents_of_tool(tool: Tool) -> list[str]:
    """Return the names of the agents that alone may call a tool; none for a tool of all agents."""
    return [] if tool.for_all else list(agents_with_action(tool.action).values_list("name", flat=True))


def _lock_tool(tool_id: UUID) -> Tool:
    tool: Tool | None = (
        Tool.objects.select_for_update(of=("self",)).select_related("server").filter(id=tool_id).first()
    )
    if tool is None:
        raise NotFound(f"there is no tool {tool_id} in this tenant")
    return tool


def set_agents(action: str, *, agent_ids: Collection[UUID] | None, actor: str) -> list[str]:
    """Grant the action to exactly these agents, and return their names; with None to all, without names. Raises NotFound for an unknown agent."""
    wanted = frozenset(agent_ids or ())
    others = agents_with_action(action).exclude(id__in=wanted).values_list("id", flat=True)
    concerned = [*wanted, *others]
    # In the order of ids, as all rows are locked.
    agents = list(Agent.objects.select_for_update(no_key=True).filter(id__in=concerned).order_by("id"))
    if unknown := wanted - {agent.id for agent in agents}:
        raise NotFound(f"there is no agent {', '.join(map(str, sorted(unknown)))} in this tenant")
    why = f"the tool {action} is not theirs"
    chosen = [agent for agent in agents if agent.id in wanted]
    left_out = [agent.id for agent in agents if agent.id not in wanted]
    revoke_actions(action=action, agent_ids=left_out, reason=why, actor=actor)
    if agent_ids is None:
        grant_to_all(actions=[action], actor=actor)
    else:
        revoke_actions(action=action, agent_ids=None, reason=why, actor=actor)
        grant_actions(agents=chosen, actions=[action], actor=actor)
    return [agent.name for agent in chosen]


def _audit(tool: Tool, actor: str, message: str) -> None:
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        message=message,
        detail={"tool": tool.action, "cost": tool.cost, "fingerprint": tool.fingerprint},
    )

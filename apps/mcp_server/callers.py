"""The caller of a tool: the tenant, the actor of the audit log, the role, and the agent that the call is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from mcp.server.mcpserver import Context

from apps.agents.models import Agent
from apps.agents.services.lookup import find_agent
from apps.mcp_server.mcp_caller import SCOPE_KEY, McpCaller
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import require_active
from arbor.errors import Invalid, NotFound, PermissionDenied

#: The context of a tool call. In a process with one client, such as `arbor mcp`, its lifespan value is the caller.
ToolContext = Context[Any, Any]

#: The most agents that an error names.
_MAX_NAMED = 20
#: Characters of a name that an error repeats.
NAME_SHOWN = 100
_DESTROYED = "the only agent that this server serves was destroyed; start the server for another agent"


@dataclass(frozen=True, kw_only=True)
class CalledAgent:
    """The agent that a call is about, and its caller."""

    id: UUID
    name: str
    caller: McpCaller

    @property
    def tenant_id(self) -> UUID:
        """The tenant of the agent."""
        return self.caller.tenant_id

    @property
    def actor(self) -> str:
        """The actor in the audit log."""
        return self.caller.actor

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction of the agent's tenant."""
        with tenant_transaction(self.tenant_id):
            yield


def caller_of(context: ToolContext) -> McpCaller:
    """Return the caller of the HTTP request, or of this process. Raises PermissionDenied for a request without a caller."""
    request = context.request_context
    caller = request.lifespan_context if request.request is None else request.request.scope.get(SCOPE_KEY)
    if not isinstance(caller, McpCaller):
        raise PermissionDenied("the request names no tenant: send a token of a tenant")
    return caller


@contextmanager
def caller_transaction(context: ToolContext) -> Iterator[McpCaller]:
    """Open a transaction of the caller's tenant. Raises TransitionIllegal if the tenant is suspended."""
    caller = caller_of(context)
    with tenant_transaction(caller.tenant_id):
        require_active()
        yield caller


def served_agents(caller: McpCaller) -> QuerySet[Agent]:
    """Return the agents that the caller may use, ordered by name. Call it in a transaction of the tenant."""
    agents: QuerySet[Agent] = Agent.objects.order_by("name")
    return agents if caller.only_agent is None else agents.filter(id=caller.only_agent)


def called_agent(context: ToolContext, ref: str | None) -> CalledAgent:
    """Return the agent that a call names, or the only agent that the caller may use.

    Raises NotFound, Invalid if the call must name an agent, and PermissionDenied for a name that is not that of the only agent,
    whether another agent has this name or none: the error names no other agent.
    """
    with caller_transaction(context) as caller:
        if ref is None or caller.only_agent is None:
            agent = _only_agent(caller) if ref is None else find_agent(ref)
        else:
            agent = _served_agent(caller.only_agent, ref)
        return CalledAgent(id=agent.id, name=agent.name, caller=caller)


def _served_agent(only_agent: UUID, ref: str) -> Agent:
    """Return the only agent of a caller by a name of it. Raises PermissionDenied for any other name, NotFound if it was destroyed."""
    with suppress(NotFound):
        agent = find_agent(ref)
        if agent.id == only_agent:
            return agent
    served_name = Agent.objects.filter(id=only_agent).values_list("name", flat=True).first()
    if served_name is None:
        raise NotFound(_DESTROYED)
    raise PermissionDenied(f"this server serves {served_name} alone, not {ref[:NAME_SHOWN]!r}")


def _only_agent(caller: McpCaller) -> Agent:
    agents = list(served_agents(caller)[: _MAX_NAMED + 1])
    if not agents:
        missing = "there is no agent yet; create one with `arbor agent create` or in the console"
        raise NotFound(missing if caller.only_agent is None else _DESTROYED)
    if len(agents) > 1:
        names = ", ".join(agent.name for agent in agents[:_MAX_NAMED])
        more = ", …" if len(agents) > _MAX_NAMED else ""
        raise Invalid(f"say which agent is meant: agent is one of {names}{more}")
    return agents[0]

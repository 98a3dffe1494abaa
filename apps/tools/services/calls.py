"""Call a tool for a heartbeat: outside any transaction, and only as an operator allowed it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import structlog

from apps.agents.models import Agent
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.explanations import authority_of
from apps.authority.services.modes import trust_of
from apps.tenants.scope import release_connection, tenant_transaction
from apps.tools.clients import tool_client
from apps.tools.models import Tool, ToolServer
from apps.tools.services.listing import relist_tool
from apps.tools.services.servers import address_of
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode, effective_mode
from arbor.errors import ToolFailed, ToolSuspended
from arbor.tools.calls import ToolRequest
from arbor.tools.ports import Listing, ToolAnswer
from arbor.tools.status import ToolStatus

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Callee:
    """The tool of a call, as it is stored."""

    server: ToolServer
    name: str


def call_tool(request: ToolRequest, *, tenant_id: UUID, agent_id: UUID, deadline_s: float) -> ToolAnswer:
    """Call the tool of a request, and return its answer.

    A tool that its server has changed is not called, but suspended; nor is a tool called for an agent that may not call it any
    more. Raises ToolFailed with the reason.
    """
    with tenant_transaction(tenant_id):
        callee = _callee(request, agent_id)
    if isinstance(callee, ToolSuspended):
        raise callee
    release_connection()
    try:
        answer = tool_client().call_tool(
            address_of(callee.server),
            name=callee.name,
            arguments=request.arguments,
            fingerprint=request.fingerprint,
            deadline_s=deadline_s,
        )
    except ToolFailed as error:
        with tenant_transaction(tenant_id):
            ToolServer.objects.filter(id=callee.server.id).update(last_error=str(error))
        raise
    with tenant_transaction(tenant_id):
        # The server has answered, also if it has changed or removed the tool.
        ToolServer.objects.filter(id=callee.server.id).exclude(last_error="").update(last_error="")
        if not isinstance(answer, Listing):
            return answer
        suspended = _suspend_tool(request, answer, agent_id)
    raise suspended


def _callee(request: ToolRequest, agent_id: UUID) -> _Callee | ToolSuspended:
    """Return the tool to call, or the audited refusal for a right that the agent has lost.

    Raises ToolSuspended unless the tool is allowed as the agent's heartbeat saw it.
    """
    tool: Tool | None = Tool.objects.select_related("server").filter(id=request.tool_id).first()
    if tool is None:
        raise ToolSuspended("the tool was removed meanwhile")
    if tool.status != ToolStatus.ALLOWED or tool.fingerprint != request.fingerprint:
        raise ToolSuspended(_refusal(tool))
    if fault := _right_fault(agent_id, action_resource(tool.action)):
        reason = f"the agent may not call the tool any more: {fault}"
        _record_denial(tool, agent_id, reason)
        # The record commits with the transaction, which an error would roll back.
        return ToolSuspended(reason)
    return _Callee(server=tool.server, name=tool.name)


def _right_fault(agent_id: UUID, resource: str) -> str:
    """Return why an agent has lost its right since its heartbeat decided the call; empty if it still has the right.

    Limits of a grant in time and number were checked with the decision, and this use of the grant is counted already.
    """
    authority = authority_of(agent_id)
    if authority.identity_fault:
        return authority.identity_fault
    if not authority.grants.covering(resource):
        return f"it has no grant of {resource}"
    mode = effective_mode(resource, trust_of(agent_id))
    return f"a person blocks it: {mode}" if mode.mode is TrustMode.BLOCK else ""


def _suspend_tool(request: ToolRequest, listing: Listing, agent_id: UUID) -> ToolSuspended:
    """Suspend a tool that its server no longer lists, or has changed; return the error to raise."""
    tool: Tool | None = (
        Tool.objects.select_for_update(of=("self",))
        .select_related("server")
        .filter(id=request.tool_id)
        .first()
    )
    if tool is None:
        return ToolSuspended("the tool was removed meanwhile")
    relist_tool(tool, listing=listing)
    reason = _refusal(tool)
    _record_denial(tool, agent_id, reason)
    log.warning("tool_suspended", tool=tool.action, status=tool.status)
    return ToolSuspended(reason)


def _record_denial(tool: Tool, agent_id: UUID, reason: str) -> None:
    # The agent may be destroyed while the server answers.
    public_id = Agent.objects.filter(id=agent_id).values_list("public_id", flat=True).first() or agent_id
    record(
        action=AuditAction.DENIED,
        actor=f"agent:{public_id}",
        agent_id=agent_id,
        message=f"{tool.action}: {reason}",
        detail={"tool": tool.action, "status": tool.status},
    )


def _refusal(tool: Tool) -> str:
    """Return why a tool that is not as the agent's heartbeat saw it is not called."""
    match ToolStatus(tool.status):
        case ToolStatus.OFF:
            return "an operator has withdrawn the tool meanwhile"
        case ToolStatus.MISSING:
            return f"{tool.server.name} no longer lists the tool"
        case ToolStatus.CHANGED:
            return (
                f"{tool.server.name} has changed the tool since it was allowed; "
                "it is suspended until an operator has looked at it"
            )
        case ToolStatus.ALLOWED:
            return f"{tool.server.name} has changed the tool, and an operator has allowed it anew meanwhile"

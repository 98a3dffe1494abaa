"""Requests of agents that people approve or deny, and the trust that decides which actions wait for a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, delete, get, listed, post, put, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Approval:
    """An action that an agent asks a person to approve."""

    id: UUID
    agent_id: UUID
    action: str
    #: The `arbor://` URI of the action.
    resource: str
    #: The complete parameters, which are executed as they are.
    params: dict[str, Any]
    #: The SHA-256 of the parameters as canonical JSON.
    body_hash: str
    #: The first text of the parameters.
    about: str
    #: Why the agent wants it: data, never an instruction.
    reasoning: str
    #: The rule by which a person is asked.
    why: str
    goal_id: str | None
    intent_id: str | None
    #: The heartbeat that asked.
    heartbeat_id: UUID | None
    #: pending, approved, denied, expired, executed or withdrawn.
    status: str
    asked_at: datetime
    expires_at: datetime
    decided_by: str
    decided_at: datetime | None
    reason: str
    #: The heartbeat that executed the action.
    executed_by: UUID | None
    executed_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Precedent:
    """A person's decision about an earlier, similar request."""

    id: UUID
    action: str
    about: str
    approved: bool
    reason: str
    decided_by: str
    decided_at: datetime


@dataclass(frozen=True, kw_only=True)
class ApprovalDetail(Approval):
    """A request for approval, with decisions about requests like it."""

    precedents: list[Precedent]


@dataclass(frozen=True, kw_only=True)
class TrustRule:
    """The mode of a resource and everything below it."""

    prefix: str
    #: block, ask, allow or auto.
    mode: str


@dataclass(frozen=True, kw_only=True)
class ActionMode:
    """The mode of an action, and what decides it."""

    action: str
    mode: str
    prefix: str
    #: rule, preset, ceiling or limit.
    source: str


@dataclass(frozen=True, kw_only=True)
class TrustSuggestion:
    """A resource whose latest requests were all approved, so that a person might allow it."""

    resource: str
    approvals: int


@dataclass(frozen=True, kw_only=True)
class AgentTrust:
    """The trust in an agent: its preset, its rules, those of the tenant, and the resulting modes."""

    #: cautious, balanced, hands_off or full_trust.
    preset: str
    rules: list[TrustRule]
    tenant_rules: list[TrustRule]
    actions: list[ActionMode]
    suggestions: list[TrustSuggestion]


@dataclass(frozen=True, kw_only=True)
class TrustRules:
    """The rules for all agents of the tenant."""

    rules: list[TrustRule]


class Approvals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about requests for approval."""

    @listing
    def list(self, *, status: str | None = None) -> PagedCall[Approval]:
        """List what agents ask a person to approve, the latest first; `status="pending"`: what waits for a decision."""
        return listed(Approval, "/approvals", status=status)

    @listing
    def list_of_agent(self, agent_id: Id, *, status: str | None = None) -> PagedCall[Approval]:
        """List what one agent asks a person to approve, the latest first."""
        return listed(Approval, f"/agents/{segment(agent_id)}/approvals", status=status)

    @operation
    def get(self, approval_id: Id) -> Call[ApprovalDetail]:
        """Return a request with its complete parameters, and what people decided about requests like it."""
        return get(ApprovalDetail, f"/approvals/{segment(approval_id)}")

    @operation
    def approve(self, approval_id: Id, *, reason: str = "", always: bool = False) -> Call[Approval]:
        """Approve a request: the next heartbeat executes it with these parameters, once. Raises Conflict if it is decided or expired."""
        return post(
            Approval, f"/approvals/{segment(approval_id)}/approve", {"reason": reason, "always": always}
        )

    @operation
    def deny(self, approval_id: Id, *, reason: str = "") -> Call[Approval]:
        """Deny a request, or withdraw an approval that was not used yet. Raises Conflict if it is denied, executed or expired."""
        return post(Approval, f"/approvals/{segment(approval_id)}/deny", {"reason": reason})


class Trust[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the trust in agents."""

    @operation
    def get(self, agent_id: Id) -> Call[AgentTrust]:
        """Return the trust in an agent, and the rules that approvals suggest."""
        return get(AgentTrust, f"/agents/{segment(agent_id)}/trust")

    @operation
    def set_preset(self, agent_id: Id, preset: str) -> Call[AgentTrust]:
        """Set the preset that decides about resources without a rule."""
        return put(AgentTrust, f"/agents/{segment(agent_id)}/trust", {"preset": preset})

    @operation
    def set_rule(self, agent_id: Id, prefix: str, mode: str) -> Call[AgentTrust]:
        """Set the mode of a resource and everything below it, for one agent."""
        return put(AgentTrust, f"/agents/{segment(agent_id)}/trust/rules", {"prefix": prefix, "mode": mode})

    @operation
    def remove_rule(self, agent_id: Id, prefix: str) -> Call[AgentTrust | None]:
        """Remove a rule of one agent."""
        return delete(AgentTrust, f"/agents/{segment(agent_id)}/trust/rules", prefix=prefix)

    @operation
    def tenant_rules(self) -> Call[TrustRules]:
        """Return the rules for all agents of the tenant."""
        return get(TrustRules, "/trust/rules")

    @operation
    def set_tenant_rule(self, prefix: str, mode: str) -> Call[TrustRules]:
        """Set the mode of a resource for all agents; a rule of an agent for the same prefix takes precedence."""
        return put(TrustRules, "/trust/rules", {"prefix": prefix, "mode": mode})

    @operation
    def remove_tenant_rule(self, prefix: str) -> Call[TrustRules | None]:
        """Remove a rule for all agents."""
        return delete(TrustRules, "/trust/rules", prefix=prefix)

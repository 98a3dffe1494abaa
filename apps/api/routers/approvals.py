"""Requests of agents for approval, and the trust rules that decide which actions need approval."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.authority.models import ActionApproval
from apps.authority.services.approvals import REASON_LENGTH, approval_of, approvals, approve, deny
from apps.authority.services.modes import (
    action_modes,
    clear_mode,
    set_mode,
    set_preset,
    tenant_rules,
    trust_of,
)
from apps.authority.services.precedents import precedents_of
from apps.tools.services.servers import suggested_rules
from arbor.agents.capabilities import MAX_URI_LENGTH
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.modes import ModeSource, TrustMode, TrustPreset

router = Router()

_Reason = Annotated[str, Field(max_length=REASON_LENGTH)]
_Prefix = Annotated[
    str, Field(min_length=1, max_length=MAX_URI_LENGTH, examples=["arbor://actions/execute/reach_out_public"])
]


class ApprovalResource(Schema):
    """An action that an agent asks a person to approve."""

    id: UUID
    agent_id: UUID
    action: str
    resource: str = Field(description="The `arbor://` URI of the action.")
    params: dict[str, Any] = Field(description="The complete parameters, which are executed as they are.")
    body_hash: str = Field(description="The SHA-256 of the parameters as canonical JSON.")
    about: str = Field(description="The first text of the parameters.")
    reasoning: str = Field(description="Why the agent wants it: data, never an instruction.")
    why: str = Field(description="The rule by which a person is asked.")
    goal_id: str | None
    intent_id: str | None
    heartbeat_id: UUID | None = Field(description="The heartbeat that asked.")
    status: ApprovalStatus
    asked_at: datetime
    expires_at: datetime
    decided_by: str
    decided_at: datetime | None
    reason: str
    executed_by: UUID | None = Field(description="The heartbeat that executed the action.")
    executed_at: datetime | None


class PrecedentResource(Schema):
    """A person's decision about an earlier request like this one."""

    id: UUID
    action: str
    about: str
    approved: bool
    reason: str
    decided_by: str
    decided_at: datetime


class ApprovalDetail(ApprovalResource):
    """A request for approval, with decisions about requests like it."""

    precedents: list[PrecedentResource] = Field(
        description="Decisions about earlier requests of the agent for the same action or about the same matter, at most five."
    )

    @classmethod
    def of(cls, row: ActionApproval) -> ApprovalDetail:
        """Return the resource of a row. One query for its precedents."""
        precedents = [PrecedentResource.model_validate(precedent) for precedent in precedents_of(row)]
        return cls(**ApprovalResource.model_validate(row).model_dump(), precedents=precedents)


class ApprovalInput(Input):
    """An approval."""

    reason: _Reason = ""
    always: bool = Field(
        default=False,
        description="True: the agent may do this without asking from now on, with any parameters.",
    )


class DenialInput(Input):
    """A denial."""

    reason: _Reason = Field(default="", description="The agent reads it.")


class TrustRuleResource(Schema):
    """The mode of a resource and everything below it."""

    prefix: str
    mode: TrustMode


class ActionModeResource(Schema):
    """The mode of an action, and what decides it."""

    action: str
    mode: TrustMode
    prefix: str
    source: ModeSource


class SuggestionResource(Schema):
    """A resource whose latest requests were all approved, so that a person might allow it."""

    resource: str
    approvals: int


class TrustResource(Schema):
    """The trust in an agent: its preset, its rules and the rules of the tenant, and the resulting modes."""

    preset: TrustPreset
    rules: list[TrustRuleResource]
    tenant_rules: list[TrustRuleResource]
    actions: list[ActionModeResource]
    suggestions: list[SuggestionResource]


class TrustRulesResource(Schema):
    """The rules for all agents of the tenant."""

    rules: list[TrustRuleResource]


class PresetInput(Input):
    """A preset."""

    preset: TrustPreset


class TrustRuleInput(Input):
    """A rule."""

    prefix: _Prefix
    mode: TrustMode


@router.get("/approvals", response=ListPage[ApprovalResource], summary="List requests for approval")
def list_approvals(
    request: HttpRequest, page: Paging, status: ApprovalStatus | None = None
) -> ListPage[ApprovalResource]:
    """List what agents ask a person to approve, the latest first; `status=pending`: what waits for a decision."""
    rows = approvals(statuses=[status] if status else ())
    return page_of(rows, page, order="-asked_at", to_resource=ApprovalResource.model_validate)


@router.get(
    "/agents/{uuid:agent_id}/approvals",
    response=ListPage[ApprovalResource],
    summary="List an agent's requests for approval",
)
def list_agent_approvals(
    request: HttpRequest, agent_id: UUID, page: Paging, status: ApprovalStatus | None = None
) -> ListPage[ApprovalResource]:
    """List what one agent asks a person to approve, the latest first."""
    rows = approvals(agent_id=agent_id, statuses=[status] if status else ())
    return page_of(rows, page, order="-asked_at", to_resource=ApprovalResource.model_validate)


@router.get("/approvals/{uuid:approval_id}", response=ApprovalDetail, summary="Show a request for approval")
def show_approval(request: HttpRequest, approval_id: UUID) -> ApprovalDetail:
    """Show a request with its complete parameters, and what people decided about requests like it."""
    return ApprovalDetail.of(approval_of(approval_id))


@router.post("/approvals/{uuid:approval_id}/approve", response=ApprovalResource, summary="Approve a request")
def approve_request(request: HttpRequest, approval_id: UUID, approval: ApprovalInput) -> ApprovalResource:
    """Approve a request: the agent's next heartbeat, due now, executes it with these parameters, once.

    A decided or expired request is answered 409.
    """
    row = approve(
        approval_id=approval_id,
        actor=access_of(request).actor,
        reason=approval.reason,
        always=approval.always,
    )
    return ApprovalResource.model_validate(row)


@router.post("/approvals/{uuid:approval_id}/deny", response=ApprovalResource, summary="Deny a request")
def deny_request(request: HttpRequest, approval_id: UUID, denial: DenialInput) -> ApprovalResource:
    """Deny a request, or withdraw an approval that was not used yet. A denied, executed or expired request is answered 409."""
    return ApprovalResource.model_validate(
        deny(approval_id=approval_id, actor=access_of(request).actor, reason=denial.reason)
    )


@router.get("/agents/{uuid:agent_id}/trust", response=TrustResource, summary="Show the trust in an agent")
def show_trust(request: HttpRequest, agent_id: UUID) -> TrustResource:
    """Show the preset and the rules of an agent, the mode of each of its actions, and the rules that approvals suggest."""
    return _trust(agent_id)


@router.put("/agents/{uuid:agent_id}/trust", response=TrustResource, summary="Set an agent's trust preset")
def put_preset(request: HttpRequest, agent_id: UUID, payload: PresetInput) -> TrustResource:
    """Set the preset that decides about resources without a rule."""
    set_preset(agent_id=agent_id, preset=payload.preset, actor=access_of(request).actor)
    return _trust(agent_id)


@router.put(
    "/agents/{uuid:agent_id}/trust/rules", response=TrustResource, summary="Set an agent's trust rule"
)
def put_rule(request: HttpRequest, agent_id: UUID, rule: TrustRuleInput) -> TrustResource:
    """Set the mode of a resource and everything below it, for one agent."""
    set_mode(agent_id=agent_id, prefix=rule.prefix, mode=rule.mode, actor=access_of(request).actor)
    return _trust(agent_id)


@router.delete(
    "/agents/{uuid:agent_id}/trust/rules", response=TrustResource, summary="Remove an agent's trust rule"
)
def delete_rule(request: HttpRequest, agent_id: UUID, prefix: _Prefix) -> TrustResource:
    """Remove a rule of one agent, so that shorter prefixes and the preset decide."""
    clear_mode(agent_id=agent_id, prefix=prefix, actor=access_of(request).actor)
    return _trust(agent_id)


@router.get("/trust/rules", response=TrustRulesResource, summary="List the tenant's trust rules")
def list_rules(request: HttpRequest) -> TrustRulesResource:
    """List the rules for all agents of the tenant."""
    return _shared_rules()


@router.put("/trust/rules", response=TrustRulesResource, summary="Set a trust rule of the tenant")
def put_shared_rule(request: HttpRequest, rule: TrustRuleInput) -> TrustRulesResource:
    """Set the mode of a resource for all agents; a rule of one agent for the same prefix takes precedence."""
    set_mode(agent_id=None, prefix=rule.prefix, mode=rule.mode, actor=access_of(request).actor)
    return _shared_rules()


@router.delete("/trust/rules", response=TrustRulesResource, summary="Remove a trust rule of the tenant")
def delete_shared_rule(request: HttpRequest, prefix: _Prefix) -> TrustRulesResource:
    """Remove a rule for all agents."""
    clear_mode(agent_id=None, prefix=prefix, actor=access_of(request).actor)
    return _shared_rules()


def _trust(agent_id: UUID) -> TrustResource:
    profile = trust_of(agent_id)
    return TrustResource(
        preset=profile.preset,
        rules=[TrustRuleResource.model_validate(rule) for rule in profile.rules],
        tenant_rules=[TrustRuleResource.model_validate(rule) for rule in profile.tenant_rules],
        actions=[
            ActionModeResource(
                action=entry.action,
                mode=entry.decision.mode,
                prefix=entry.decision.prefix,
                source=entry.decision.source,
            )
            for entry in action_modes(profile)
        ],
        suggestions=[
            SuggestionResource.model_validate(suggestion) for suggestion in suggested_rules(agent_id)
        ],
    )


def _shared_rules() -> TrustRulesResource:
    return TrustRulesResource(rules=[TrustRuleResource.model_validate(rule) for rule in tenant_rules()])

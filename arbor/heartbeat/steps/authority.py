"""Apply the authority of an agent to its actions: check grants, sign and verify requests, ask people for approval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID, uuid5

import orjson

from arbor.authority.approvals import (
    APPROVAL_LIFETIME,
    ApprovalStatus,
    ApprovalView,
    NewApproval,
    Permission,
    permission_of,
)
from arbor.authority.authorization import AgentAuthority, Authorization, DenialCode, authorize, explain
from arbor.authority.grants import resource_of
from arbor.authority.modes import DEFAULT_PROFILE, TrustMode, effective_mode, limit_of_model
from arbor.authority.requests import ActionRequest, Nonce, SignedRequests, body_hash, canonical_body
from arbor.errors import ArborError
from arbor.heartbeat.decision import Decision, DecisionVerdict, refuse
from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.guards import opening_text
from arbor.heartbeat.replies.reply import ProposedAction
from arbor.heartbeat.situation import ApprovalRequestView
from arbor.heartbeat.state import HeartbeatState
from arbor.models.json_text import storable

#: The `AuditAction` of an action that no grant covers, of a request that is not what was signed, and of a reflex.
_DENIED, _REFUSED, _REFLEX = "denied", "request.refused", "reflex"
#: Faults of the request itself: somebody changed or repeated it.
_FORGED = frozenset(
    {
        DenialCode.BAD_SIGNATURE,
        DenialCode.BODY_CHANGED,
        DenialCode.OTHER_AGENT,
        DenialCode.REPLAYED,
        DenialCode.WIDENED,
    }
)
_ASKED, _EXECUTED = "approval.asked", "approval.executed"
#: Verdicts after which an approved request is not withdrawn: its action runs, or a later heartbeat may execute it.
_NOT_WITHDRAWN = frozenset(
    {
        DecisionVerdict.RUN,
        DecisionVerdict.AWAITS_APPROVAL,
        DecisionVerdict.UNAVAILABLE,
        DecisionVerdict.TOO_SOON,
        DecisionVerdict.TOO_LITTLE_ENERGY,
        DecisionVerdict.TOO_MANY,
    }
)


def check_grants(heartbeat: HeartbeatState, decision: Decision, used: Sequence[str]) -> Authorization:
    """Return whether a grant covers an action now; `used`: the grants of earlier actions of the round trip."""
    return explain(_resource(decision), authority=_authority(heartbeat, used), now=heartbeat.now)


def may_use(heartbeat: HeartbeatState, resource: str) -> bool:
    """Return whether a grant covers a resource beside the action's own."""
    return _authority(heartbeat).permits(resource, now=heartbeat.now)


def sign(heartbeat: HeartbeatState, decisions: Sequence[Decision]) -> SignedRequests | None:
    """Sign the requests of the running actions under one signature; None where none runs or the agent cannot sign."""
    running = [decision for decision in decisions if decision.runs]
    signer = heartbeat.moment.signer
    if not running or signer is None:
        return None
    agent = _authority(heartbeat).public_id
    try:
        return signer.sign_requests(
            [
                ActionRequest(
                    resource=_resource(decision),
                    agent=agent,
                    at=heartbeat.now,
                    body_hash=body_hash(decision.params),
                    nonce=_nonce(heartbeat, decision),
                )
                for decision in running
            ]
        )
    except ArborError:
        # The key does not open: the actions are refused as not signed.
        return None


def verify(heartbeat: HeartbeatState, decision: Decision, used: Sequence[str]) -> Authorization:
    """Return whether the action is the one that was signed, in this round trip, and a grant covers it now."""
    done = {record.decision.index for record in heartbeat.earlier.action_records}
    if decision.index in done:
        return Authorization(
            granted=False,
            code=DenialCode.REPLAYED,
            reason=f"action {decision.index} of this heartbeat was carried out already",
        )
    return authorize(
        heartbeat.signed,
        _nonce(heartbeat, decision),
        _resource(decision),
        decision.params,
        authority=_authority(heartbeat, used),
        now=heartbeat.now,
    )


def denial(heartbeat: HeartbeatState, decision: Decision) -> AuditNote:
    """Return the record of a denied action for the audit log."""
    why = decision.why
    code = why.code if why is not None else None
    if decision.verdict is DecisionVerdict.REFLEX:
        action, code = _REFLEX, DenialCode.REFLEX
    else:
        action = _REFUSED if code in _FORGED else _DENIED
    return AuditNote(
        action=action,
        message=f"{decision.action}: {decision.reason}",
        detail={
            "heartbeat_id": str(heartbeat.heartbeat_id),
            "resource": _resource(decision),
            "code": code.value if code is not None else "",
            "tried": [grant.capability_id for grant in why.tried] if why is not None else [],
        },
    )


def _authority(heartbeat: HeartbeatState, used: Iterable[str] = ()) -> AgentAuthority:
    """Return the agent's rights as they are now, with the uses of this leg; nobody's if it has no identity."""
    own = heartbeat.moment.authority
    if own is None:
        return AgentAuthority(
            tenant=str(heartbeat.tenant_id), public_id="", identity_fault="you have no identity to act with"
        )
    return own.with_uses([*heartbeat.effects.capability_uses, *filter(None, used)])


def _resource(decision: Decision) -> str:
    return resource_of(decision.action, decision.params)


def _nonce(heartbeat: HeartbeatState, decision: Decision) -> Nonce:
    return Nonce(
        heartbeat_id=heartbeat.heartbeat_id, round_trip=max(heartbeat.round_trip, 1), index=decision.index
    )


def approvals_of(heartbeat: HeartbeatState) -> tuple[ApprovalView, ...]:
    """Return the agent's requests for approval that still count, as they are now."""
    authority = heartbeat.moment.authority
    if authority is None:
        return ()
    return tuple(approval for approval in authority.approvals if not approval.has_expired(heartbeat.now))


def approved_requests(heartbeat: HeartbeatState) -> list[ApprovalView]:
    """Return the requests that people have approved, the oldest first; in the first round trip only."""
    if heartbeat.round_trip > 1:
        return []
    return [approval for approval in approvals_of(heartbeat) if approval.status is ApprovalStatus.APPROVED]


def approved_action(approval: ApprovalView) -> ProposedAction:
    """Return the action that a person has approved, with the parameters that were asked for."""
    return ProposedAction(
        action=approval.action,
        params=orjson.loads(approval.body),
        reasoning=approval.reasoning,
        goal_id=approval.goal_id,
        intent_id=approval.intent_id,
    )


def request_views(approvals: Iterable[ApprovalView]) -> list[ApprovalRequestView]:
    return [
        ApprovalRequestView(
            id=str(approval.id),
            status=approval.status,
            action=approval.action,
            about=approval.about,
            reason=approval.reason,
        )
        for approval in approvals
    ]


def apply_trust(heartbeat: HeartbeatState, decision: Decision, earlier: Sequence[Decision]) -> Decision:
    """Return a running decision, refused if a person blocks the action, and put off if a person has to approve it."""
    resource = _resource(decision)
    authority = heartbeat.moment.authority
    profile = authority.modes if authority is not None else DEFAULT_PROFILE
    limit = limit_of_model(heartbeat.model, heartbeat.rules.model_trust)
    mode = effective_mode(resource, profile, model_limit=limit)
    approvals = approvals_of(heartbeat)
    if not approvals and not decision.approval_id and mode.mode.runs:
        return decision
    hashed = body_hash(decision.params)
    asked = [
        (_resource(previous), body_hash(previous.params))
        for previous in earlier
        if previous.verdict is DecisionVerdict.AWAITS_APPROVAL
    ]
    allowed = permission_of(
        mode, resource=resource, body_hash=hashed, approvals=approvals, now=heartbeat.now, asked=asked
    )
    approval_id = str(allowed.approval.id) if allowed.approval is not None else ""
    if decision.approval_id and decision.approval_id != approval_id:
        # Withdrawn meanwhile, or the parameters are completed in another way than when they were approved.
        reason = allowed.reason or "what a person approved is another action, or the approval has ended"
        return refuse(decision, DecisionVerdict.NOT_AUTHORIZED, reason)
    match allowed.permission:
        case Permission.REFUSED:
            refused = refuse(decision, DecisionVerdict.NOT_AUTHORIZED, allowed.reason)
            # The audit log names a mode that is the reason.
            is_blocked = mode.mode is TrustMode.BLOCK
            why = (
                Authorization(granted=False, code=DenialCode.BLOCKED, reason=str(mode))
                if is_blocked
                else None
            )
            return refused.model_copy(update={"approval_id": approval_id, "why": why})
        case Permission.FULL:
            return refuse(decision, DecisionVerdict.TOO_MANY, allowed.reason)
        case Permission.ASK | Permission.WAITS:
            # The same action of a heartbeat that runs again asks under the same id.
            made = approval_id or str(uuid5(heartbeat.heartbeat_id, f"approval:{decision.index}"))
            waiting = refuse(decision, DecisionVerdict.AWAITS_APPROVAL, allowed.reason)
            return waiting.model_copy(update={"approval_id": made})
    if approval_id and any(previous.runs and previous.approval_id == approval_id for previous in earlier):
        reason = "it was approved for one time, and this heartbeat executes it already"
        return refuse(decision, DecisionVerdict.TOO_MANY, reason)
    return decision.model_copy(update={"approval_id": approval_id})


def with_approvals(heartbeat: HeartbeatState) -> HeartbeatState:
    """Return the state with the requests for approval that its decisions make, use and withdraw as effects.

    An approved request is withdrawn if its action is refused for good.
    """
    decisions = [decision for decision in heartbeat.decisions if decision.approval_id]
    if not decisions:
        return heartbeat
    requests = approvals_of(heartbeat)
    known = {str(request.id) for request in requests}
    approved = {str(request.id) for request in requests if request.status is ApprovalStatus.APPROVED}
    new = [
        _new_request(heartbeat, decision)
        for decision in decisions
        if decision.verdict is DecisionVerdict.AWAITS_APPROVAL and decision.approval_id not in known
    ]
    asked = {str(request.id) for request in new}
    return heartbeat.with_effects(
        approvals=new,
        approvals_used=[UUID(decision.approval_id) for decision in decisions if decision.runs],
        approvals_withdrawn=[
            (UUID(decision.approval_id), storable(decision.reason))
            for decision in decisions
            if decision.approval_id in approved and decision.verdict not in _NOT_WITHDRAWN
        ],
        audit=[
            _approval_note(heartbeat, decision)
            for decision in decisions
            if decision.runs or decision.approval_id in asked
        ],
    )


def _new_request(heartbeat: HeartbeatState, decision: Decision) -> NewApproval:
    return NewApproval(
        id=UUID(decision.approval_id),
        action=decision.action,
        resource=_resource(decision),
        body=canonical_body(decision.params).decode(),
        body_hash=body_hash(decision.params),
        about=storable(opening_text(decision.params)),
        reasoning=storable(decision.reasoning),
        why=decision.reason,
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
        round_trip=max(heartbeat.round_trip, 1),
        index=decision.index,
        asked_at=heartbeat.now,
        expires_at=heartbeat.now + APPROVAL_LIFETIME,
    )


def _approval_note(heartbeat: HeartbeatState, decision: Decision) -> AuditNote:
    return AuditNote(
        action=_EXECUTED if decision.runs else _ASKED,
        message=f"{'executed' if decision.runs else 'asked to execute'} {decision.action}: {opening_text(decision.params)}",
        detail={
            "approval_id": decision.approval_id,
            "heartbeat_id": str(heartbeat.heartbeat_id),
            "resource": _resource(decision),
            "body_hash": body_hash(decision.params),
        },
    )

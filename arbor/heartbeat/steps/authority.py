"""Check the grants of actions, sign the requests of those that run, and verify each before it is carried out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arbor.authority.authorization import AgentAuthority, Authorization, DenialCode, authorize, explain
from arbor.authority.grants import resource_of
from arbor.authority.requests import ActionRequest, Nonce, SignedRequests, body_hash
from arbor.errors import ArborError
from arbor.heartbeat.decision import Decision, DecisionVerdict
from arbor.heartbeat.effects import AuditNote
from arbor.heartbeat.state import HeartbeatState

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


def check_grants(heartbeat: HeartbeatState, decision: Decision, used: Sequence[str]) -> Authorization:
    """Return whether a grant covers an action now; `used`: the grants of earlier actions of the turn."""
    return explain(_resource(decision), authority=_authority(heartbeat, used), now=heartbeat.now)


def may_use(heartbeat: HeartbeatState, resource: str) -> bool:
    """Return whether a grant covers a resource beside the action's own."""
    return _authority(heartbeat).permits(resource, now=heartbeat.now)


def sign(heartbeat: HeartbeatState, decisions: Sequence[Decision]) -> SignedRequests | None:
    """Sign the requests of the running actions under one signature; None where none runs or the agent cannot sign."""
    assert heartbeat.moment is not None
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
    """Return whether the action is the one that was signed, in this turn, and a grant covers it now."""
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
    assert heartbeat.moment is not None
    own = heartbeat.moment.authority
    if own is None:
        return AgentAuthority(
            tenant=str(heartbeat.tenant_id), public_id="", identity_fault="you have no identity to act with"
        )
    return own.with_uses([*heartbeat.effects.capability_uses, *filter(None, used)])


def _resource(decision: Decision) -> str:
    return resource_of(decision.action, decision.params)


def _nonce(heartbeat: HeartbeatState, decision: Decision) -> Nonce:
    return Nonce(heartbeat_id=heartbeat.heartbeat_id, turn=max(heartbeat.turn, 1), index=decision.index)

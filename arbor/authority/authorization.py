"""Authorize signed requests by the grants of an agent, and explain denials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from arbor.authority.approvals import ApprovalView
from arbor.authority.grants import ALL_AGENTS, Capability, matches, read_uri, widening
from arbor.authority.modes import DEFAULT_PROFILE, TrustMode, TrustProfile, effective_mode
from arbor.authority.requests import Nonce, SignedRequests, body_hash
from arbor.errors import CapabilityInvalid
from arbor.quotations import counted

#: A request is used in the heartbeat that signed it, and no later than this.
MAX_AGE = timedelta(days=1)
#: The clocks of two workers differ by less than this.
CLOCK_SKEW = timedelta(minutes=5)
#: The most resources for which the grants of one agent are cached: replies may name any number of unknown actions.
_RESOURCES_CACHED = 256


class DenialCode(StrEnum):
    """The reasons to deny a request."""

    #: No grant of the agent covers the resource.
    NO_GRANT = "no_grant"
    #: The grant has expired.
    EXPIRED = "expired"
    #: The grant begins later.
    NOT_YET = "not_yet"
    #: The grant was revoked.
    REVOKED = "revoked"
    #: The grant is not in force at this hour.
    OUTSIDE_WINDOW = "outside_window"
    #: All uses of the grant are used up.
    USED_UP = "used_up"
    #: The grant was used too often within its period.
    RATE = "rate"
    #: The signature of the request or of the grant is missing or forged.
    BAD_SIGNATURE = "bad_signature"
    #: A delegated grant exceeds the grant above it.
    WIDENED = "widened"
    #: The agent's identity is not endorsed.
    NOT_ENDORSED = "not_endorsed"
    #: The request was made for another heartbeat, turn or action, or long ago.
    REPLAYED = "replayed"
    #: The action or its parameters differ from those that were signed.
    BODY_CHANGED = "body_changed"
    #: The request or the grant belongs to another agent or tenant.
    OTHER_AGENT = "other_agent"
    #: The trust settings block the resource.
    BLOCKED = "blocked"
    #: A reflex refuses the action.
    REFLEX = "reflex"


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantUses:
    """The uses of a counted grant: in all, and within the period of its rate."""

    total: int = 0
    recent: int = 0


class AgentGrants(tuple[Capability, ...]):
    """The grants of an agent. Caches the grants of each resource, because many heartbeats ask for the same few resources."""

    def covering(self, resource: str) -> tuple[Capability, ...]:
        """Return the grants that cover a resource, the most specific first. Raises CapabilityInvalid."""
        found = self._found.get(resource)
        if found is None:
            wanted = read_uri(resource)
            found = tuple(
                sorted(
                    (grant for grant in self if matches(grant.resource, wanted)),
                    key=lambda grant: (grant.resource.wildcard, -len(grant.resource.segments)),
                )
            )
            if len(self._found) < _RESOURCES_CACHED:
                self._found[resource] = found
        return found

    @cached_property
    def _found(self) -> dict[str, tuple[Capability, ...]]:
        return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class TriedGrant:
    """A grant that covers the resource, and why it does not authorize the request."""

    capability_id: str
    resource: str
    code: DenialCode
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Authorization:
    """The decision about a request: the grant that authorizes it, or why none does."""

    granted: bool
    capability_id: str = ""
    code: DenialCode | None = None
    reason: str = ""
    tried: tuple[TriedGrant, ...] = ()
    #: Whether the use of the grant has to be recorded.
    counted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentAuthority:
    """The identity and the rights of one agent, as read at the beginning of a leg."""

    tenant: str
    public_id: str
    #: Public signing keys by number.
    keys: Mapping[int, bytes] = field(default_factory=dict)
    #: Why the identity is not valid; empty for one that the System Authority endorses.
    identity_fault: str = ""
    #: Public keys by issuer, such as `authority:1`.
    issuers: Mapping[str, bytes] = field(default_factory=dict)
    grants: AgentGrants = field(default_factory=AgentGrants)
    #: The uses of counted grants, by the ids of the grants.
    uses: Mapping[str, GrantUses] = MappingProxyType({})
    #: The trust of people in the agent, and its requests for approval.
    modes: TrustProfile = DEFAULT_PROFILE
    approvals: tuple[ApprovalView, ...] = ()

    def with_uses(self, capability_ids: Iterable[str]) -> AgentAuthority:
        """Return a copy with further uses of counted grants, which may not be stored yet."""
        uses = dict(self.uses)
        for capability_id in capability_ids:
            before = uses.get(capability_id, GrantUses())
            uses[capability_id] = GrantUses(total=before.total + 1, recent=before.recent + 1)
        return replace(self, uses=uses) if uses != self.uses else self

    def permits(self, resource: str, *, now: datetime) -> bool:
        """Return whether to offer a resource: a grant seems to be in force, and nobody blocks it. Signatures are not verified."""
        if self.identity_fault:
            return False
        try:
            covering = self.grants.covering(resource)
            if effective_mode(resource, self.modes).mode is TrustMode.BLOCK:
                return False
        except CapabilityInvalid:
            return False
        for grant in covering:
            in_force = bool(grant.signature) and grant.revoked_at is None
            if in_force and _constraint_fault(grant, self.uses.get(grant.id), now) is None:
                return True
        return False


def authorize(
    signed: SignedRequests | None,
    nonce: Nonce,
    resource: str,
    params: Mapping[str, Any],
    *,
    authority: AgentAuthority,
    now: datetime,
) -> Authorization:
    """Decide whether the agent may carry out the action of this resource and nonce with these parameters.

    `resource`, `nonce` and `params` belong to the action that is about to run, and the signed request must have the same.
    """
    refusal = _request_fault(signed, nonce, resource, params, authority=authority, now=now)
    if refusal is not None:
        return _denied(*refusal)
    return explain(resource, authority=authority, now=now)


def with_trust(authorization: Authorization, resource: str, profile: TrustProfile) -> Authorization:
    """Apply the trust in the agent to a decision: a person blocks the resource, or is asked first."""
    mode = effective_mode(resource, profile)
    if not authorization.granted or mode.mode.runs:
        return authorization
    if mode.mode is TrustMode.ASK:
        return replace(authorization, reason=f"a person is asked first: {mode}")
    return replace(
        authorization, granted=False, code=DenialCode.BLOCKED, reason=f"a person blocks it: {mode}"
    )


def explain(resource: str, *, authority: AgentAuthority, now: datetime) -> Authorization:
    """Return whether a grant authorizes a resource now, and the grants that do not. Needs no signed request."""
    if authority.identity_fault:
        return _denied(DenialCode.NOT_ENDORSED, authority.identity_fault)
    try:
        covering = authority.grants.covering(resource)
    except CapabilityInvalid as error:
        return _denied(DenialCode.NO_GRANT, str(error))
    tried: list[TriedGrant] = []
    for grant in covering:
        fault = _grant_fault(grant, authority, now)
        if fault is None:
            return Authorization(
                granted=True, capability_id=grant.id, tried=tuple(tried), counted=grant.constraints.is_counted
            )
        code, reason = fault
        tried.append(
            TriedGrant(capability_id=grant.id, resource=str(grant.resource), code=code, reason=reason)
        )
    if not tried:
        return _denied(DenialCode.NO_GRANT, f"no grant of yours covers {resource}")
    # A revoked grant explains less than one that is in force at other times.
    best = min(tried, key=lambda grant: grant.code is DenialCode.REVOKED)
    return Authorization(granted=False, code=best.code, reason=best.reason, tried=tuple(tried))


def _denied(code: DenialCode, reason: str) -> Authorization:
    return Authorization(granted=False, code=code, reason=reason)


def _request_fault(
    signed: SignedRequests | None,
    nonce: Nonce,
    resource: str,
    params: Mapping[str, Any],
    *,
    authority: AgentAuthority,
    now: datetime,
) -> tuple[DenialCode, str] | None:
    """Return why the signed request does not authenticate the action; None if it does."""
    requests = signed.requests if signed is not None else ()
    request = next((made for made in requests if made.nonce.index == nonce.index), None)
    if signed is None or request is None:
        return DenialCode.BAD_SIGNATURE, "the action was not signed"
    if request.agent != authority.public_id:
        return DenialCode.OTHER_AGENT, "another agent signed the action"
    if authority.identity_fault:
        return DenialCode.NOT_ENDORSED, authority.identity_fault
    key = authority.keys.get(signed.key_number)
    if key is None or not signed.is_signed_by(key):
        return DenialCode.BAD_SIGNATURE, f"the signature is not that of the agent's key {signed.key_number}"
    if request.nonce != nonce:
        return DenialCode.REPLAYED, "the action was signed for another heartbeat or turn"
    if not now - MAX_AGE <= request.at <= now + CLOCK_SKEW:
        return DenialCode.REPLAYED, f"the action was signed at {request.at:%Y-%m-%d %H:%M} UTC, not now"
    if request.resource != resource:
        return DenialCode.BODY_CHANGED, f"{request.resource} was signed, not {resource}"
    if request.body_hash != body_hash(params):
        return DenialCode.BODY_CHANGED, "the parameters differ from those that were signed"
    return None


def _grant_fault(
    grant: Capability, authority: AgentAuthority, now: datetime
) -> tuple[DenialCode, str] | None:
    """Return why a grant does not authorize; None if it does."""
    if grant.tenant != authority.tenant or grant.agent not in (authority.public_id, ALL_AGENTS):
        return DenialCode.OTHER_AGENT, f"{grant.id} was granted to another agent"
    if grant.revoked_at is not None:
        why = f": {grant.revoked_reason}" if grant.revoked_reason else ""
        return DenialCode.REVOKED, f"{grant.id} was revoked on {grant.revoked_at:%Y-%m-%d %H:%M} UTC{why}"
    if not grant.signature:
        return DenialCode.BAD_SIGNATURE, f"{grant.id} is not signed yet; `arbor prepare` signs it"
    chain = (grant, *grant.ancestors)
    for link in chain:
        key = authority.issuers.get(link.issuer)
        if key is None or not link.is_signed_by(key):
            return DenialCode.BAD_SIGNATURE, f"the signature of {link.id} is not that of {link.issuer}"
    return _chain_fault(chain) or _constraint_fault(grant, authority.uses.get(grant.id), now)


def _chain_fault(chain: tuple[Capability, ...]) -> tuple[DenialCode, str] | None:
    """Return why a delegated grant exceeds a grant above it; None if it does not."""
    for child, parent in pairwise(chain):
        if child.parent_id != parent.id:
            return DenialCode.WIDENED, f"{child.id} was not delegated from {parent.id}"
        if wider := widening(child, parent):
            return DenialCode.WIDENED, f"{child.id} exceeds {parent.id}: {wider}"
    if chain[-1].parent_id:
        return DenialCode.WIDENED, f"the grant above {chain[-1].id} is missing"
    return None


def _constraint_fault(
    grant: Capability, uses: GrantUses | None, now: datetime
) -> tuple[DenialCode, str] | None:
    limits = grant.constraints
    if limits.expires_at is not None and now >= limits.expires_at:
        return DenialCode.EXPIRED, f"{grant.id} expired on {limits.expires_at:%Y-%m-%d %H:%M} UTC"
    if limits.not_before is not None and now < limits.not_before:
        return DenialCode.NOT_YET, f"{grant.id} begins on {limits.not_before:%Y-%m-%d %H:%M} UTC"
    if limits.window is not None and not limits.window.is_open(now):
        return DenialCode.OUTSIDE_WINDOW, f"{grant.id} is in force only {limits.window}"
    used = uses or GrantUses()
    if limits.max_uses is not None and used.total >= limits.max_uses:
        return DenialCode.USED_UP, f"{grant.id} allows {counted(limits.max_uses, 'use')}, and none is left"
    if limits.rate is not None and used.recent >= limits.rate.uses:
        return DenialCode.RATE, f"{grant.id} allows {limits.rate}"
    return None

"""Authorization: the processor time to verify and authorize one action."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from arbor.agents.identity import PrivateKey, generate_key_pair
from arbor.agents.keys import SigningKey
from arbor.authority.authorization import AgentAuthority, AgentGrants, authorize
from arbor.authority.grants import Capability, action_resource, read_uri
from arbor.authority.requests import ActionRequest, KeySigner, Nonce, body_hash
from arbor.heartbeat.actions import ACTIONS
from bench.support.figures import quantile, times_ms

_NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
_PARAMS = {"query": "what the pilots said", "limit": 5}


def measure(*, rounds: int) -> dict[str, Any]:
    """Return the processor time to verify and authorize one action, each time by a grant that was never verified before."""
    system, pair = _key(), generate_key_pair()
    own = SigningKey.build(pair.private, public_id=pair.public_id, number=1)
    grants = AgentGrants(_grant(system, pair.public_id, name) for name in ACTIONS)
    authority = AgentAuthority(
        tenant=str(UUID(int=1)),
        public_id=pair.public_id,
        keys={1: pair.public},
        issuers={"authority:1": system.public},
        grants=grants,
    )
    resource, round_trips = action_resource("recall"), count(1)
    # `times_ms` adds a round to warm up.
    prepared = rounds + 1
    signed = [_signed(own, pair.public_id, resource, round_trip) for round_trip in range(1, prepared + 1)]
    cold = [_with_new_grant(authority, system, resource) for _ in range(prepared)]

    def authorize_one() -> None:
        round_trip = next(round_trips)
        nonce = Nonce(heartbeat_id=UUID(int=3), round_trip=round_trip, index=0)
        found = authorize(
            signed[round_trip - 1], nonce, resource, _PARAMS, authority=cold[round_trip - 1], now=_NOW
        )
        assert found.granted, found.reason

    durations = times_ms(authorize_one, rounds, clock=time.thread_time)
    return {
        "rounds": rounds,
        "authorize_ms_p50": quantile(durations, 0.5),
        "authorize_ms_p95": quantile(durations, 0.95),
    }


def _key() -> SigningKey:
    private = PrivateKey(raw=hashlib.sha256(b"bench").digest())
    return SigningKey.build(private, public_id="system", number=1)


def _grant(system: SigningKey, agent: str, action: str) -> Capability:
    grant = Capability(
        id=f"cap_{uuid4().hex}",
        tenant=str(UUID(int=1)),
        agent=agent,
        issuer="authority:1",
        resource=read_uri(action_resource(action)),
        granted_at=_NOW,
    )
    return replace(grant, signature=system.sign(grant.message()).hex())


def _with_new_grant(authority: AgentAuthority, system: SigningKey, resource: str) -> AgentAuthority:
    others = tuple(grant for grant in authority.grants if str(grant.resource) != resource)
    return replace(authority, grants=AgentGrants((*others, _grant(system, authority.public_id, "recall"))))


def _signed(key: SigningKey, agent: str, resource: str, round_trip: int) -> Any:
    request = ActionRequest(
        resource=resource,
        agent=agent,
        at=_NOW,
        body_hash=body_hash(_PARAMS),
        nonce=Nonce(heartbeat_id=UUID(int=3), round_trip=round_trip, index=0),
    )
    return KeySigner(lambda: key).sign_requests([request])

"""The identity of an agent as one column of a statement, and its parser: what every heartbeat reads and checks.

The column is text, so that a process parses and verifies an identity once, however often its agent's heartbeats read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from apps.agents.services.authority import open_authority_key
from apps.tenants.encoding import from_json
from apps.tenants.keys import master_keys
from arbor.agents.endorsement import (
    Endorsement,
    EndorsementStatus,
    inactive_reason,
    verify_statement,
)
from arbor.agents.identity import open_private_key
from arbor.agents.keys import ChainKey, KeyChain, KeyPurpose, SigningKey, key_label
from arbor.errors import IdentityRefused, SealBroken
from arbor.sealing import SealedRecord

#: The identity of the agent `a` as JSON text, null for an agent without an endorsement. Needs `%(tenant)s`.
IDENTITY_COLUMN = """(
    SELECT json_build_object('status', e.status, 'serial', e.serial, 'at', e.at, 'reason', e.reason,
        'signature', encode(e.signature, 'hex'), 'authority', e.authority_number, 'authorities', (
            SELECT json_agg(json_build_array(w.number, encode(w.public_key, 'hex'), w.sealed_private_key::text)
                ORDER BY w.number)
            FROM agents_authoritykey w WHERE w.sealed_private_key <> '{}'::jsonb
        ), 'keys', (
            SELECT json_agg(json_build_array(k.number, encode(k.public_key, 'hex'), encode(k.previous_signature, 'hex'),
                k.sealed_private_key::text) ORDER BY k.number)
            FROM agents_agentkey k
            WHERE k.tenant_id = %(tenant)s AND k.agent_id = a.id AND k.purpose = 'signing'
        ))::text
    FROM agents_agentendorsement e
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = a.id
)"""
#: Identities that a process has parsed, about 3 KB each.
_IDENTITIES_CACHED = 2048
#: Signing keys that a process has opened and built, under 1 KB each.
_KEYS_CACHED = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentIdentity:
    """An agent's keys and endorsement as stored, and whether they are genuine."""

    chain: KeyChain
    endorsement: Endorsement | None
    #: Why the agent may not act, for people; empty if it may.
    refusal: str
    #: Numbers and public halves of the System Authority's keys in use: one, and two during a rotation.
    authority_keys: tuple[tuple[int, bytes], ...] = ()
    #: The current signing key's private half as a sealed record in JSON text.
    sealed: str = field(default="", repr=False)

    def require_active(self) -> None:
        """Raise IdentityRefused with the reason unless the agent may act."""
        if self.refusal:
            raise IdentityRefused(self.refusal)

    def signing_key(self) -> SigningKey:
        """Return the key with which the agent signs. Raises IdentityRefused unless the agent may act, and SealBroken."""
        self.require_active()
        return _signing_key(
            self.sealed,
            public_id=self.chain.public_id,
            tenant_id=self.chain.tenant_id,
            number=self.chain.current.number,
        )


def parse_identity(text: str | None, *, public_id: str, tenant_id: str) -> AgentIdentity:
    """Parse the identity that `IDENTITY_COLUMN` read, and verify it; the result says whether the agent may act."""
    if text is None:
        return _refused(public_id, tenant_id, f"{public_id} is not endorsed; `arbor prepare` endorses agents")
    identity, signed_by, authorities = _parsed(text, public_id, tenant_id)
    genuine: list[tuple[int, bytes]] = []
    for number, public, sealed in authorities:
        try:
            # Not cached with the identity: after a rotation of the master key a process may open the key a moment later.
            open_authority_key(number, public, sealed)
        except SealBroken as error:
            if number == signed_by:
                return _refused(public_id, tenant_id, str(error))
        else:
            genuine.append((number, public))
    return identity if len(genuine) == len(authorities) else replace(identity, authority_keys=tuple(genuine))


def _refused(public_id: str, tenant_id: str, reason: str) -> AgentIdentity:
    chain = KeyChain(public_id=public_id, tenant_id=tenant_id, keys=())
    return AgentIdentity(chain=chain, endorsement=None, refusal=reason)


@lru_cache(maxsize=_IDENTITIES_CACHED)
def _parsed(
    text: str, public_id: str, tenant_id: str
) -> tuple[AgentIdentity, int, tuple[tuple[int, bytes, str], ...]]:
    """Parse an identity, and verify it by the System Authority's public keys.

    Also returns the number of the authority's key that signed the endorsement, and the rows of these keys: the caller checks
    whether their private halves open.
    """
    columns: dict[str, Any] = from_json(text)
    keys: list[Any] = columns["keys"] or []
    chain = KeyChain(
        public_id=public_id,
        tenant_id=tenant_id,
        keys=tuple(
            ChainKey(number=number, public=bytes.fromhex(public), signature=bytes.fromhex(signature))
            for number, public, signature, _ in keys
        ),
    )
    authorities = tuple(
        (number, bytes.fromhex(public), sealed) for number, public, sealed in columns["authorities"] or ()
    )
    public_keys = {number: public for number, public, _ in authorities}
    endorsement = Endorsement(
        status=EndorsementStatus(columns["status"]),
        serial=columns["serial"],
        at=datetime.fromisoformat(columns["at"]),
        reason=columns["reason"],
        authority_number=columns["authority"],
        signature=bytes.fromhex(columns["signature"]),
    )
    try:
        verify_statement(chain, endorsement, public_keys)
    except IdentityRefused as error:
        refused = AgentIdentity(chain=chain, endorsement=None, refusal=str(error))
        return refused, endorsement.authority_number, authorities
    identity = AgentIdentity(
        chain=chain,
        endorsement=endorsement,
        refusal="" if endorsement.is_active else inactive_reason(endorsement),
        authority_keys=tuple(public_keys.items()),
        sealed=keys[-1][3] if keys else "",
    )
    return identity, endorsement.authority_number, authorities


@lru_cache(maxsize=_KEYS_CACHED)
def _signing_key(sealed: str, *, public_id: str, tenant_id: str, number: int) -> SigningKey:
    """Open and build a signing key from its sealed record in JSON text. Raises SealBroken."""
    private = open_private_key(
        SealedRecord.from_json(from_json(sealed)),
        keys=master_keys(),
        agent_public_id=public_id,
        tenant_id=tenant_id,
        label=key_label(KeyPurpose.SIGNING, number),
    )
    return SigningKey.build(private, public_id=public_id, number=number)

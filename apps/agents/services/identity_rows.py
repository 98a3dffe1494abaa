"""Rows of identities and their values: keys, sealed private halves, endorsements."""

from __future__ import annotations

from collections.abc import Sequence

from apps.agents.models import Agent, AgentEndorsement, AgentKey
from arbor.agents.endorsement import Endorsement
from arbor.agents.identity import PrivateKey, open_private_key, seal_private_key
from arbor.agents.keys import (
    ChainKey,
    KeyChain,
    KeyPurpose,
    exchange_key,
    generate_exchange_pair,
    key_label,
)
from arbor.errors import IdentityRefused
from arbor.sealing import MasterKeys, SealedRecord


def chain_of(agent: Agent, keys: Sequence[ChainKey]) -> KeyChain:
    """Return an agent's chain of these signing keys."""
    return KeyChain(public_id=agent.public_id, tenant_id=str(agent.tenant_id), keys=tuple(keys))


def chain_key(row: AgentKey) -> ChainKey:
    """Return the public part of a key."""
    return ChainKey(number=row.number, public=bytes(row.public_key), signature=bytes(row.previous_signature))


def open_key(agent: Agent, row: AgentKey, keys: MasterKeys) -> PrivateKey:
    """Open the private half of a key. Raises IdentityRefused where it has been deleted, and SealBroken."""
    if not row.sealed_private_key:
        raise IdentityRefused(f"the private half of the {row} has been deleted")
    return open_private_key(
        SealedRecord.from_json(row.sealed_private_key),
        keys=keys,
        agent_public_id=agent.public_id,
        tenant_id=str(agent.tenant_id),
        label=key_label(KeyPurpose(row.purpose), row.number),
    )


def exchange_row(
    agent: Agent, chain: KeyChain, *, number: int, signing: PrivateKey, keys: MasterKeys
) -> AgentKey:
    """Return the row of a new exchange key, signed with the agent's private signing key."""
    pair = generate_exchange_pair()
    key = exchange_key(chain, pair.public, number=number, private=signing)
    return key_row(agent, KeyPurpose.EXCHANGE, key, pair.private, keys)


def key_row(
    agent: Agent, purpose: KeyPurpose, key: ChainKey, private: PrivateKey, keys: MasterKeys
) -> AgentKey:
    """Return the row of a new key, its private half sealed."""
    sealed = seal_private_key(
        private,
        keys=keys,
        agent_public_id=agent.public_id,
        tenant_id=str(agent.tenant_id),
        label=key_label(purpose, key.number),
    )
    return AgentKey(
        tenant_id=agent.tenant_id,
        agent=agent,
        number=key.number,
        purpose=purpose,
        public_key=key.public,
        sealed_private_key=sealed.to_json(),
        previous_signature=key.signature,
    )


def endorsement_row(agent: Agent, statement: Endorsement) -> AgentEndorsement:
    """Return the row of an agent's first endorsement."""
    return AgentEndorsement(
        tenant_id=agent.tenant_id,
        agent=agent,
        status=statement.status,
        serial=statement.serial,
        at=statement.at,
        reason=statement.reason,
        authority_number=statement.authority_number,
        signature=statement.signature,
    )

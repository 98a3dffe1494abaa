"""Read the profiles of agents, with the public half of their identities."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from apps.agents.models import AgentKey, RequestedCapability
from apps.agents.services.identity import identity_of
from apps.agents.services.identity_rows import chain_key
from apps.agents.services.lookup import agent_by_id
from arbor.agents.keys import ChainKey, KeyPurpose
from arbor.agents.profile import (
    AgentProfile,
    EndorsementEntry,
    IdentityEntry,
    PublicKeyEntry,
    RequestedCapabilityEntry,
)


def identity_entry(agent_id: UUID) -> IdentityEntry:
    """Return the public half of an agent's identity. Raises NotFound."""
    identity = identity_of(agent_id)
    statement = identity.endorsement
    rows = list(AgentKey.objects.filter(agent_id=agent_id).defer("sealed_private_key").order_by("number"))
    signing = [chain_key(row) for row in rows if row.purpose == KeyPurpose.SIGNING]
    return IdentityEntry(
        agent_id=identity.chain.public_id,
        public_key_hex=signing[-1].public.hex() if signing else "",
        endorsement=None
        if statement is None
        else EndorsementEntry(
            status=statement.status,
            serial=statement.serial,
            at=statement.at,
            reason=statement.reason,
            authority_number=statement.authority_number,
            signature_hex=statement.signature.hex(),
        ),
        refusal=identity.refusal,
        keys=_entries(signing),
        keychain=_entries(chain_key(row) for row in rows if row.purpose == KeyPurpose.EXCHANGE),
    )


def profile_of(agent_id: UUID) -> AgentProfile:
    """Return an agent's profile. Raises NotFound."""
    agent = agent_by_id(agent_id)
    requests = RequestedCapability.objects.filter(agent_id=agent_id).order_by("resource", "id")
    return AgentProfile(
        id=agent.id,
        name=agent.name,
        status=agent.status,
        trust_tier=agent.trust_tier,
        template=agent.template_name,
        template_version=agent.template_version,
        character=agent.character,
        identity=identity_entry(agent_id),
        requested_capabilities=tuple(
            RequestedCapabilityEntry(
                resource=row.resource, description=row.description, constraints=row.constraints
            )
            for row in requests
        ),
        created_at=agent.created_at,
    )


def _entries(keys: Iterable[ChainKey]) -> tuple[PublicKeyEntry, ...]:
    return tuple(
        PublicKeyEntry(number=key.number, public_key_hex=key.public.hex(), signature_hex=key.signature.hex())
        for key in keys
    )

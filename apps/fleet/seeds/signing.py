"""Sign seeds by an agent's key and the System Authority, and verify seeds of this and of other installations."""

from __future__ import annotations

from apps.agents.models import Agent, AgentKey
from apps.agents.services.authority import authority_public_keys, ensure_system_authority
from apps.agents.services.identity_rows import chain_key, chain_of, open_key
from apps.tenants.keys import master_keys
from arbor.agents.identity import sign
from arbor.agents.keys import KeyPurpose
from arbor.errors import IdentityRefused
from arbor.seeds.manifest import SeedManifest, SeedSignatures
from arbor.seeds.signing import SeedSigner, is_own, links_of, signature_of, verify_signatures


def seed_signer(agent: Agent) -> SeedSigner:
    """Return the signer of an agent's seeds; a suspended or revoked identity signs them too.

    Raises IdentityRefused for an agent without a key, and SealBroken.
    """
    rows = list(AgentKey.objects.filter(agent_id=agent.id, purpose=KeyPurpose.SIGNING).order_by("number"))
    if not rows:
        raise IdentityRefused(f"{agent.name} has no key to sign its seed with")
    chain = chain_of(agent, [chain_key(row) for row in rows])
    chain.verify()
    private = open_key(agent, rows[-1], master_keys())
    authority = ensure_system_authority()

    def sign_seed(signed: bytes, /) -> SeedSignatures:
        return SeedSignatures(
            tenant_id=chain.tenant_id,
            keys=links_of(chain),
            agent=signature_of(chain.current.public, sign(private, signed), number=chain.current.number),
            authority=signature_of(authority.public, authority.sign(signed), number=authority.number),
        )

    return sign_seed


def verify_seed_signatures(manifest: SeedManifest) -> bool:
    """Check the signatures of a seed, and return whether this installation made it. Raises SeedInvalid."""
    verify_signatures(manifest)
    return is_own(manifest, authority_public_keys().values())

"""Rotation of the System Authority's key: endorsements and grants are signed again, and the old key becomes worthless."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.agents.models import Agent, AgentEndorsement, AuthorityKey
from apps.agents.services.authority import add_authority_key, authority_public_keys
from apps.agents.services.identity import identity_of
from apps.audit.models import PlatformEvent
from apps.authority.models import CapabilityGrant
from apps.authority.services.grants import delegate_capability, grant_capability, revoke_capability
from apps.fleet.authority_rotation import authority_key_uses, retire_authority, rotate_authority
from apps.fleet.key_rotation import key_uses
from apps.tenants.keys import master_keys
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import TransitionIllegal
from tests.factories.agents import AgentFactory
from tests.support.capability_rows import change_as_owner, may

ACTOR = "cli:test"
DOCS = "arbor://fs/read/docs/*"
PAGE = "arbor://fs/read/docs/a"


@pytest.fixture
def agents(tenant: Tenant, other_tenant: Tenant) -> tuple[Agent, Agent, Agent]:
    """Return two agents of one tenant and one of another, with grants; that of the second is delegated from the first's."""
    with tenant_transaction(tenant.id):
        ada, bo = AgentFactory(name="Ada"), AgentFactory(name="Bo")
        grant = grant_capability(agent_id=ada.id, resource=DOCS, actor=ACTOR)
        delegate_capability(capability_id=grant.id, to_agent_id=bo.id, actor=ACTOR)
    with tenant_transaction(other_tenant.id):
        eve = AgentFactory(name="Eve")
        grant_capability(agent_id=eve.id, resource=DOCS, actor=ACTOR)
    return ada, bo, eve


def delegated_to(agent: Agent) -> CapabilityGrant:
    return CapabilityGrant.objects.get(agent=agent, parent__isnull=False)


def test_agents_act_during_and_after_a_rotation(agents: tuple[Agent, Agent, Agent]) -> None:
    ada, bo, _ = agents
    add_authority_key()
    with tenant_transaction(ada.tenant_id):
        # Signed by the new key, with a copy of a grant that the old one signed.
        cy = AgentFactory(name="Cy")
        parent = delegated_to(bo)
        delegate_capability(capability_id=parent.id, to_agent_id=cy.id, actor=ACTOR)
    all_agents = (*agents, cy)
    assert [may(agent, PAGE) for agent in all_agents] == ["yes"] * 4
    old, _ = authority_key_uses()
    # The fourth agent, Cy, is endorsed by the new key.
    assert old.endorsements == 3
    with pytest.raises(TransitionIllegal, match=f"has signed 3 endorsements and {old.grants} grants"):
        retire_authority(actor=ACTOR)

    # Two keys are in use, so the rotation is continued, in batches of one.
    rotation = rotate_authority(actor=ACTOR, batch=1)

    assert (rotation.number, rotation.endorsements, rotation.grants, rotation.refused) == (
        2,
        3,
        old.grants,
        (),
    )
    assert [may(agent, PAGE) for agent in all_agents] == ["yes"] * 4
    assert retire_authority(actor=ACTOR) == [1]
    assert [may(agent, PAGE) for agent in all_agents] == ["yes"] * 4
    retired, new = authority_key_uses()
    assert (retired.retired, retired.endorsements, retired.grants) == (True, 0, 0)
    assert (new.signs, new.endorsements) == (True, 4)
    assert new.grants >= old.grants
    assert list(authority_public_keys()) == [2]
    # A retired key is not counted as unreadable under the master key.
    assert not any(use.unreadable for use in key_uses(master_keys()))
    messages = list(PlatformEvent.objects.using("ops").order_by("at").values_list("message", flat=True))
    assert messages[-1] == "retired keys of the System Authority: 1"
    with pytest.raises(TransitionIllegal, match="none to retire"):
        retire_authority(actor=ACTOR)


def test_rows_that_a_retired_key_signed_are_worth_nothing(agents: tuple[Agent, Agent, Agent]) -> None:
    ada, bo, _ = agents
    with tenant_transaction(ada.tenant_id):
        endorsement = AgentEndorsement.objects.get(agent=ada)
        grant = delegated_to(bo)
    rotate_authority(actor=ACTOR)
    retire_authority(actor=ACTOR)
    change_as_owner(
        "agents_agentendorsement",
        "UPDATE agents_agentendorsement SET authority_number = %s, signature = %s WHERE agent_id = %s",
        endorsement.authority_number,
        endorsement.signature,
        ada.id,
    )
    change_as_owner(
        "authority_capabilitygrant",
        "UPDATE authority_capabilitygrant SET issuer = %s, signature = %s WHERE id = %s",
        grant.issuer,
        grant.signature,
        grant.id,
    )
    assert may(ada, PAGE) == "not_endorsed"
    assert may(bo, PAGE) == "bad_signature"
    with tenant_transaction(ada.tenant_id):
        assert "not signed by this installation's System Authority" in identity_of(ada.id).refusal


def test_rows_that_are_not_genuine_are_not_signed(agents: tuple[Agent, Agent, Agent]) -> None:
    ada, bo, eve = agents
    change_as_owner(
        "agents_agentendorsement",
        "UPDATE agents_agentendorsement SET status = 'active', serial = 9 WHERE agent_id = %s",
        eve.id,
    )
    change_as_owner(
        "authority_capabilitygrant",
        "UPDATE authority_capabilitygrant SET resource = 'arbor://**' WHERE agent_id = %s AND parent_id IS NOT NULL",
        bo.id,
    )
    with tenant_transaction(ada.tenant_id):
        revoked = grant_capability(agent_id=ada.id, resource="arbor://fs/read/x", actor=ACTOR)
        revoke_capability(capability_id=revoked.id, reason="over", actor=ACTOR)
    rotation = rotate_authority(actor=ACTOR)
    assert len(rotation.refused) == 2
    assert (may(ada, PAGE), may(bo, PAGE), may(eve, PAGE)) == ("yes", "bad_signature", "not_endorsed")
    with pytest.raises(TransitionIllegal, match="signed 1 endorsement and 1 grant:"):
        retire_authority(actor=ACTOR)
    assert retire_authority(actor=ACTOR, force=True) == [1]
    assert (may(ada, PAGE), may(bo, PAGE), may(eve, PAGE)) == ("yes", "bad_signature", "not_endorsed")


def test_agents_act_beside_a_key_that_cannot_be_opened(agents: tuple[Agent, Agent, Agent]) -> None:
    ada, *_ = agents
    first = AuthorityKey.objects.get(number=1)
    AuthorityKey.objects.create(
        number=2,
        public_key=bytes(32),
        sealed_private_key=first.sealed_private_key,
        created_at=datetime.now(UTC),
    )
    # The private key of the row was sealed for another number, so it does not open.
    assert may(ada, PAGE) == "yes"

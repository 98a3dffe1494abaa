"""Identities in use: endorsed agents act, others have no heartbeat and no answer, and nobody forges an endorsement."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import (
    Agent,
    AgentEndorsement,
    AgentKey,
    AuthorityKey,
    ScheduleState,
)
from apps.agents.services.authority import seal_authority_key
from apps.agents.services.identity import identity_of, rotate_agent_key
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import ExternalCall
from apps.fleet.identities import endorse_all_agents, reinstate_identity, revoke_identity, suspend_identity
from apps.fleet.lifecycle import start_agent, stop_agent
from apps.heartbeats.models import HeartbeatStatus
from apps.heartbeats.services.schedule import claim_now
from apps.tenants.keys import master_keys
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.endorsement import SYSTEM_AUTHORITY, EndorsementStatus, endorse
from arbor.agents.identity import generate_key_pair, seal_private_key, verify
from arbor.agents.keys import SigningKey
from arbor.errors import IdentityRefused, Invalid, TransitionIllegal
from tests.factories.agents import AgentFactory
from tests.integration.chat.conftest import Talk, model_answer, talk
from tests.integration.heartbeats.conftest import REST, last_heartbeat, schedule_of
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, Script

__all__ = ["talk"]

ACTOR = "cli:tests"


def suspend(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        suspend_identity(agent_id=agent.id, reason="its key leaked", actor=ACTOR)


def claim_and_suspend(fleet: Fleet, agent: Agent) -> None:
    fleet.claim(agent)
    suspend(agent)


def test_a_suspended_agents_heartbeat_is_skipped_without_a_call(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    model = scripted(REST)
    claim_and_suspend(fleet, agent)
    fleet.run()
    with tenant_transaction(agent.tenant_id):
        heartbeat = last_heartbeat(agent)
        assert (heartbeat.status, heartbeat.reason) == (
            HeartbeatStatus.SKIPPED,
            "the identity is suspended: its key leaked",
        )
        assert not ExternalCall.objects.exists()
        refused = AuditEvent.objects.get(action=AuditAction.REQUEST_REFUSED)
    assert refused.agent_id == agent.id
    assert model.requests == []
    assert schedule_of(agent).state == ScheduleState.OFF


def test_a_suspension_ends_a_heartbeat_that_waits_for_its_model(
    fleet: Fleet, agent: Agent, scripted: Script
) -> None:
    scripted(REST)
    fleet.claim(agent)
    fleet.step()
    suspend(agent)
    fleet.run()
    with tenant_transaction(agent.tenant_id):
        heartbeat = last_heartbeat(agent)
    assert (heartbeat.status, heartbeat.reason) == (
        HeartbeatStatus.FAILED,
        "the identity is suspended: its key leaked",
    )
    assert heartbeat.actions == []
    assert schedule_of(agent).state == ScheduleState.OFF


def test_a_reinstated_agent_has_heartbeats_again(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    suspend(agent)
    assert schedule_of(agent).state == ScheduleState.OFF
    with tenant_transaction(agent.tenant_id):
        with pytest.raises(TransitionIllegal, match="has no heartbeats: the identity is suspended"):
            claim_now(agent_id=agent.id)
        reinstate_identity(agent_id=agent.id, actor=ACTOR)
    heartbeats.run(REST)
    with tenant_transaction(agent.tenant_id):
        assert last_heartbeat(agent).status == HeartbeatStatus.DONE
        acts = AuditEvent.objects.filter(agent_id=agent.id, action__startswith="identity.").order_by("id")
        assert [(act.action, act.actor) for act in acts] == [
            (AuditAction.IDENTITY_SUSPENDED, ACTOR),
            (AuditAction.IDENTITY_ENDORSED, ACTOR),
        ]
        endorsement = identity_of(agent.id).endorsement
        assert endorsement is not None
        assert endorsement.serial == 3


def test_a_revoked_identity_stays_revoked(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        with pytest.raises(Invalid, match="a reason has 1 to 500 characters"):
            revoke_identity(agent_id=agent.id, reason=" ", actor=ACTOR)
        revoke_identity(agent_id=agent.id, reason="it was stolen", actor=ACTOR)
        with pytest.raises(TransitionIllegal, match="a revoked identity stays revoked"):
            reinstate_identity(agent_id=agent.id, actor=ACTOR)
        stop_agent(agent_id=agent.id, actor=ACTOR)
        with pytest.raises(IdentityRefused, match="the identity is revoked: it was stolen"):
            start_agent(agent_id=agent.id, actor=ACTOR)
        with pytest.raises(IdentityRefused):
            rotate_agent_key(agent_id=agent.id, actor=ACTOR)
        with pytest.raises(IdentityRefused):
            identity_of(agent.id).signing_key()


def test_a_suspended_agent_answers_nobody(talk: Talk, agent: Agent, scripted: Script) -> None:
    model = scripted(model_answer("Hello."))
    suspend(agent)
    assert talk("Are you there?").error == "no model is asked: the identity is suspended: its key leaked"
    assert model.requests == []


def test_rotated_keys_verify_under_the_same_id(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        before = identity_of(agent.id)
        for _ in range(2):
            rotate_agent_key(agent_id=agent.id, actor=ACTOR)
        identity = identity_of(agent.id)
        key = identity.signing_key()
        stored_keys = [
            (row.purpose, row.number, bool(row.sealed_private_key))
            for row in AgentKey.objects.filter(agent_id=agent.id).order_by("purpose", "number")
        ]
    assert identity.chain.public_id == before.chain.public_id == agent.public_id
    assert identity.refusal == ""
    assert (key.number, len(identity.chain.keys)) == (3, 3)
    assert verify(identity.chain.current.public, b"mine", key.sign(b"mine"))
    assert stored_keys == [
        ("exchange", 1, False),
        ("exchange", 2, True),
        ("exchange", 3, True),
        ("signing", 1, False),
        ("signing", 2, False),
        ("signing", 3, True),
    ]
    heartbeats.run(REST)


def forge_status(agent: Agent, other: Agent) -> None:
    AgentEndorsement.objects.filter(agent_id=agent.id).update(status=EndorsementStatus.ACTIVE)


def copy_endorsement(agent: Agent, other: Agent) -> None:
    theirs = AgentEndorsement.objects.get(agent_id=other.id)
    AgentEndorsement.objects.filter(agent_id=agent.id).update(
        status=theirs.status, serial=theirs.serial, at=theirs.at, reason="", signature=theirs.signature
    )


def forge_authority(agent: Agent, other: Agent) -> None:
    pair = generate_key_pair()
    keys = master_keys()
    sealed = seal_authority_key(generate_key_pair().private, number=2, keys=keys)
    AuthorityKey.objects.create(number=2, public_key=pair.public, sealed_private_key=sealed)
    key = SigningKey.build(pair.private, public_id=SYSTEM_AUTHORITY, number=2)
    row = AgentEndorsement.objects.get(agent_id=agent.id)
    statement = endorse(identity_of(agent.id).chain, authority=key, serial=9, at=row.at)
    AgentEndorsement.objects.filter(agent_id=agent.id).update(
        status=EndorsementStatus.ACTIVE,
        serial=9,
        reason="",
        authority_number=2,
        signature=statement.signature,
    )


@pytest.mark.parametrize("forge", [forge_status, copy_endorsement, forge_authority])
def test_a_forged_endorsement_is_refused(
    forge: Any, tenant: Tenant, agent: Agent, new_agent: Any, fleet: Fleet, scripted: Script
) -> None:
    model, other = scripted(REST), new_agent(tenant, "Ben")
    claim_and_suspend(fleet, agent)
    with tenant_transaction(tenant.id):
        forge(agent, other)
        assert identity_of(agent.id).endorsement is None
    fleet.run()
    assert model.requests == []
    with tenant_transaction(tenant.id):
        assert "System Authority" in last_heartbeat(agent).reason
        with pytest.raises(IdentityRefused):
            reinstate_identity(agent_id=agent.id, actor=ACTOR)


def create_older_agent(name: str, **key: Any) -> Agent:
    """Create an agent as versions before endorsements did, with one key; return it."""
    pair = generate_key_pair()
    agent = AgentFactory(name=name, public_id=pair.public_id)
    sealed = seal_private_key(
        pair.private, keys=master_keys(), agent_public_id=pair.public_id, tenant_id=str(agent.tenant_id)
    ).to_json()
    columns = {"public_key": pair.public, "sealed_private_key": sealed} | key
    AgentKey.objects.create(tenant_id=agent.tenant_id, agent=agent, **columns)
    return agent


def test_agents_older_than_endorsements_are_endorsed_once(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        good = create_older_agent("Ada")
        create_older_agent("Ben", public_key=generate_key_pair().public)
        create_older_agent("Cleo", sealed_private_key=good.keys.get().sealed_private_key)
        AgentFactory(name="Dan", public_id="agent_0")
        assert identity_of(good.id).refusal.endswith("`arbor prepare` endorses agents")
    done = endorse_all_agents(actor=ACTOR)
    assert done.endorsed == 1
    assert [reason.split(":")[0] for reason in sorted(done.refused)] == ["Ben", "Cleo", "Dan"]
    assert endorse_all_agents(actor=ACTOR).endorsed == 0
    with tenant_transaction(tenant.id):
        assert identity_of(good.id).refusal == ""
        assert identity_of(good.id).signing_key().public == bytes(good.keys.get(purpose="signing").public_key)
        act = AuditEvent.objects.get(action=AuditAction.IDENTITY_ENDORSED)
        assert (act.agent_id, act.actor) == (good.id, ACTOR)

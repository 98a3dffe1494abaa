"""Capabilities as rows: granted, delegated, revoked, explained and verified by their signatures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.agents.services.locks import lock_schedule
from apps.audit.models import AuditAction, AuditEvent
from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.explanations import authority_of, explain_authorization
from apps.authority.services.grants import (
    delegate_capability,
    grant_capability,
    grant_to_all,
    revoke_capability,
    to_value,
)
from apps.fleet.pending_grants import sign_all_pending_grants
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.authority.constraints import Constraints, Rate
from arbor.errors import AlreadyExists, CapabilityDenied, CapabilityInvalid, Invalid, NotFound
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import ScheduleFactory
from tests.support.capability_rows import change_as_owner, may
from tests.support.races import in_tenant
from tests.support.threads import start_blocked

ACTOR = "test"
DOCS = "arbor://fs/read/docs/*"
NOW = datetime.now(UTC)


@pytest.fixture
def ada(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        return AgentFactory(name="Ada")


@pytest.fixture
def bo(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        return AgentFactory(name="Bo")


def grant_to(agent: Agent, resource: str = DOCS, **limits: Any) -> CapabilityGrant:
    with tenant_transaction(agent.tenant_id):
        return grant_capability(agent_id=agent.id, resource=resource, actor=ACTOR, **limits)


def delegate_to(grant: CapabilityGrant, to: Agent, **limits: Any) -> CapabilityGrant:
    with tenant_transaction(to.tenant_id):
        return delegate_capability(capability_id=grant.id, to_agent_id=to.id, actor=ACTOR, **limits)


def audit_messages(agent: Agent, action: AuditAction) -> list[str]:
    with tenant_transaction(agent.tenant_id):
        rows = AuditEvent.objects.filter(agent_id=agent.id, action=action)
        return list(rows.values_list("message", flat=True))


def test_a_grant_is_signed_explained_and_revoked(ada: Agent) -> None:
    assert may(ada, "arbor://fs/read/docs/a") == "no_grant"
    grant = grant_to(ada)
    assert may(ada, "arbor://fs/read/docs/a") == "yes"
    assert may(ada, "arbor://fs/read/docs/a/b") == "no_grant"
    with tenant_transaction(ada.tenant_id):
        assert to_value(CapabilityGrant.objects.select_related("agent").get(id=grant.id)).is_signed_by(
            authority_of(ada.id).issuers["authority:1"]
        )
        revoke_capability(capability_id=grant.id, reason="no longer needed", actor=ACTOR)
        report = explain_authorization(agent_id=ada.id, resource="arbor://fs/read/docs/a")
    assert report.authorization.code == "revoked"
    assert "no longer needed" in report.authorization.reason
    assert len(audit_messages(ada, AuditAction.CAPABILITY_GRANTED)) == 1
    assert len(audit_messages(ada, AuditAction.CAPABILITY_REVOKED)) == 1


def test_a_grant_is_given_once(ada: Agent) -> None:
    grant_to(ada)
    with pytest.raises(AlreadyExists):
        grant_to(ada)
    grant_to(ada, constraints=Constraints(max_uses=3))


@pytest.mark.parametrize(
    ("resource", "limits"),
    [
        ("arbor://nothing/known", {}),
        ("arbor://fs/read/../secret", {}),
        ("http://example.org", {}),
        (DOCS, {"depth": 11}),
        (DOCS, {"constraints": Constraints(expires_at=NOW - timedelta(days=1))}),
    ],
)
def test_a_wrong_grant_is_refused(ada: Agent, resource: str, limits: dict[str, Any]) -> None:
    with pytest.raises(CapabilityInvalid):
        grant_to(ada, resource, **limits)


def test_a_revocation_reaches_delegates_of_delegates(ada: Agent, bo: Agent) -> None:
    with tenant_transaction(ada.tenant_id):
        cy = AgentFactory(name="Cy")
    grant = grant_to(ada)
    delegate = delegate_to(grant, bo)
    delegate_to(delegate, cy, resource="arbor://fs/read/docs/a")
    assert [may(agent, "arbor://fs/read/docs/a") for agent in (ada, bo, cy)] == ["yes"] * 3
    assert may(cy, "arbor://fs/read/docs/b") == "no_grant"
    with tenant_transaction(ada.tenant_id):
        assert revoke_capability(capability_id=grant.id, reason="over", actor=ACTOR) == 3
    revoked = [len(audit_messages(agent, AuditAction.CAPABILITY_REVOKED)) for agent in (ada, bo, cy)]
    assert revoked == [1, 1, 1]
    assert [may(agent, "arbor://fs/read/docs/a") for agent in (ada, bo, cy)] == ["revoked"] * 3


def test_a_revocation_reaches_a_delegation_under_way(ada: Agent, bo: Agent) -> None:
    with tenant_transaction(ada.tenant_id):
        cy = AgentFactory(name="Cy")
    grant = grant_to(ada)
    delegate = delegate_to(grant, bo)
    revocation = {"capability_id": grant.id, "reason": "over", "actor": ACTOR}
    with tenant_transaction(ada.tenant_id):
        delegate_capability(capability_id=delegate.id, to_agent_id=cy.id, actor=ACTOR)
        start_blocked(in_tenant(ada.tenant_id, revoke_capability, **revocation))
    assert may(cy, "arbor://fs/read/docs/a") == "revoked"


def test_a_delegation_of_uses_waits_for_a_leg_of_the_holder(ada: Agent, bo: Agent) -> None:
    with tenant_transaction(ada.tenant_id):
        ScheduleFactory(agent=ada)
    grant = grant_to(ada, constraints=Constraints(max_uses=1))
    refusals: list[CapabilityDenied] = []

    def delegate() -> None:
        try:
            delegate_to(grant, bo)
        except CapabilityDenied as refusal:
            refusals.append(refusal)

    with tenant_transaction(ada.tenant_id):
        # As a leg of the holder's heartbeat, which uses the grant and ends.
        lock_schedule(ada.id)
        start_blocked(delegate)
        CapabilityUse.objects.create(tenant_id=ada.tenant_id, capability=grant, at=NOW)
    assert "0 left" in str(refusals)
    assert may(bo, "arbor://fs/read/docs/a") == "no_grant"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"resource": "arbor://fs/read/**"}, "is not within"),
        ({"resource": "arbor://fs/read/docs-secret"}, "is not within"),
        ({"depth": 3}, "delegated further"),
        ({"constraints": Constraints(expires_at=NOW + timedelta(days=30))}, "expire after"),
        ({"constraints": Constraints(max_uses=6)}, "uses"),
    ],
)
def test_a_widened_delegation_is_refused_and_audited(
    ada: Agent, bo: Agent, limits: dict[str, Any], reason: str
) -> None:
    own = Constraints(expires_at=NOW + timedelta(days=7), max_uses=5)
    grant = grant_to(ada, constraints=own)
    with pytest.raises(CapabilityDenied, match=reason):
        delegate_to(grant, bo, **limits)
    with tenant_transaction(bo.tenant_id):
        assert not CapabilityGrant.objects.filter(agent=bo, parent__isnull=False).exists()
        assert not CapabilityUse.objects.exists()
    # The record outlives the transaction, which was rolled back.
    (message,) = audit_messages(bo, AuditAction.REQUEST_REFUSED)
    assert reason in message


def test_delegated_uses_count_as_used(ada: Agent, bo: Agent) -> None:
    grant = grant_to(ada, constraints=Constraints(max_uses=5))
    delegate_to(grant, bo, constraints=Constraints(max_uses=5))
    assert may(ada, "arbor://fs/read/docs/a") == "used_up"
    with pytest.raises(CapabilityDenied, match=r"it would have 1 use, and \S+ has 0 left"):
        delegate_to(grant, bo, constraints=Constraints(max_uses=1))


def test_a_delegation_that_a_grant_excludes_is_refused(ada: Agent, bo: Agent) -> None:
    for limits, reason in (
        ({"depth": 0}, "not be delegated further"),
        ({"constraints": Constraints(rate=Rate(uses=1, seconds=60))}, "rate"),
    ):
        grant = grant_to(ada, **limits)
        with pytest.raises(CapabilityDenied, match=reason):
            delegate_to(grant, bo)
    with pytest.raises(Invalid, match="itself"):
        delegate_to(grant, ada)


def test_a_grant_of_another_tenant_is_out_of_reach(ada: Agent, other_tenant: Tenant) -> None:
    grant = grant_to(ada)
    with tenant_transaction(other_tenant.id):
        eve = AgentFactory(name="Eve")
        with pytest.raises(NotFound):
            delegate_capability(capability_id=grant.id, to_agent_id=eve.id, actor=ACTOR)
        with pytest.raises(NotFound):
            revoke_capability(capability_id=grant.id, reason="mine now", actor=ACTOR)
        # A copy of the signed row authorizes nobody else.
        CapabilityGrant.objects.create(
            tenant_id=other_tenant.id,
            agent=eve,
            resource=grant.resource,
            issuer=grant.issuer,
            signature=grant.signature,
            granted_by=ACTOR,
            granted_at=grant.granted_at,
        )
    assert may(eve, "arbor://fs/read/docs/a") == "bad_signature"
    assert may(ada, "arbor://fs/read/docs/a") == "yes"


def test_a_row_that_somebody_widened_is_no_grant(ada: Agent) -> None:
    grant = grant_to(ada)
    change_as_owner(
        "authority_capabilitygrant",
        "UPDATE authority_capabilitygrant SET resource = 'arbor://**' WHERE id = %s",
        grant.id,
    )
    assert may(ada, "arbor://shell/exec") == "bad_signature"


def test_grants_of_a_migration_are_signed_at_prepare(ada: Agent) -> None:
    with tenant_transaction(ada.tenant_id):
        for resource, by in (("arbor://actions/execute/observe", "system:migration"), ("arbor://**", "eve")):
            CapabilityGrant.objects.create(
                tenant_id=ada.tenant_id, agent=ada, resource=resource, granted_by=by, granted_at=NOW
            )
    assert may(ada, "observe") == "bad_signature"
    assert sign_all_pending_grants(actor="cli:prepare") == 1
    assert may(ada, "observe") == "yes"
    assert may(ada, "arbor://shell/exec") == "bad_signature"
    assert sign_all_pending_grants(actor="cli:prepare") == 0


def test_a_grant_to_all_agents_reaches_those_of_the_future(ada: Agent) -> None:
    with tenant_transaction(ada.tenant_id):
        grant_to_all(actions=["mcp.weather.forecast"], actor=ACTOR)
        later = AgentFactory(name="Later")
    assert may(ada, "mcp.weather.forecast") == may(later, "mcp.weather.forecast") == "yes"

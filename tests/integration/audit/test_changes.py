"""Records of acts: their levels, the values before and after, and the search by agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.audit.services import record
from apps.audit.services.search import events_with
from apps.authority.services.grants import grant_capability, revoke_capability
from apps.authority.services.modes import clear_mode, set_mode, set_preset
from apps.authority.services.trust_tiers import set_tier
from apps.calls.services.provider_keys import ProviderAccess, remove_provider_key, store_provider_key
from apps.fleet.administration import limit_tenant, suspend_tenant
from apps.fleet.lifecycle import pause_agent
from apps.fleet.members import dismiss_member, set_member_role
from apps.fleet.policy import set_policy
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.agents.template import TrustTier
from arbor.audit.levels import LEVELS, AuditLevel, level_of
from arbor.authority.modes import TrustMode, TrustPreset
from tests.factories.users import UserFactory
from tests.integration.audit.conftest import record_acts

ACTOR = "user:nora"


def audited_change(tenant: Tenant, act: Callable[..., Any], **arguments: Any) -> tuple[Any, Any]:
    """Run an act in the tenant; return the fields before and after it from its audit record."""
    with tenant_transaction(tenant.id):
        act(**arguments, actor=ACTOR)
        row = AuditEvent.objects.filter(actor=ACTOR).order_by("position", "id").last()
    assert row is not None
    return row.before, row.after


def test_a_record_has_the_level_of_its_act_unless_another_is_named(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        truncated = record(action=AuditAction.TRUNCATED, actor="agent:x", message="cut")
        other = record(action=AuditAction.TRUNCATED, actor="agent:x", message="cut", level=AuditLevel.ERROR)
    # Seed 001: a warning whenever something is truncated.
    assert (truncated.level, other.level) == ("warning", "error")


def test_acts_with_a_level_of_their_own_exist() -> None:
    assert LEVELS.keys() <= set(AuditAction.values)
    assert {level_of(action) for action in AuditAction.values} == set(AuditLevel)


def test_agents_find_the_latest_acts_by_a_text_in_any_case(tenant: Tenant, other_tenant: Tenant) -> None:
    record_acts(tenant, "raised the Limit", "100% done", "lowered the limit")
    record_acts(other_tenant, "no limit")
    with tenant_transaction(tenant.id):
        assert [act.message for act in events_with("LIMIT")] == ["lowered the limit", "raised the Limit"]
        assert [act.message for act in events_with("0%")] == ["100% done"]


def test_changes_of_policies_and_status_are_audited(agent: Agent, tenant: Tenant) -> None:
    first = audited_change(tenant, set_policy, agent_id=agent.id, changes={"daily_heartbeats": 5})
    assert first[1] == {"daily_heartbeats": 5}
    assert audited_change(tenant, set_policy, agent_id=agent.id, changes={"daily_heartbeats": 7}) == (
        {"daily_heartbeats": 5},
        {"daily_heartbeats": 7},
    )
    assert audited_change(tenant, pause_agent, agent_id=agent.id) == (
        {"status": "active"},
        {"status": "paused"},
    )


def test_changes_of_trust_are_audited(agent: Agent, tenant: Tenant) -> None:
    before, after = audited_change(tenant, set_tier, agent_id=agent.id, tier=TrustTier.VETERAN)
    assert (before, after) == ({"tier": "probationary"}, {"tier": "veteran"})
    assert audited_change(tenant, set_preset, agent_id=agent.id, preset=TrustPreset.CAUTIOUS)[1] == {
        "preset": "cautious"
    }
    rule = {"agent_id": agent.id, "prefix": "arbor://net/search"}
    assert audited_change(tenant, set_mode, **rule, mode=TrustMode.ASK) == ({}, {"mode": "ask"})
    assert audited_change(tenant, set_mode, **rule, mode=TrustMode.BLOCK) == (
        {"mode": "ask"},
        {"mode": "block"},
    )
    assert audited_change(tenant, clear_mode, **rule) == ({"mode": "block"}, {})


def test_grants_and_revocations_are_audited(agent: Agent, tenant: Tenant) -> None:
    resource = "arbor://historian/query/audit"
    before, after = audited_change(tenant, grant_capability, agent_id=agent.id, resource=resource)
    assert (before, after["resource"], after["revoked"]) == ({}, resource, False)
    with tenant_transaction(tenant.id):
        grant = agent.capabilities.get(resource=resource)
    revoked = audited_change(tenant, revoke_capability, capability_id=grant.id, reason="no longer")
    assert revoked == ({"revoked": False}, {"revoked": True, "reason": "no longer"})


def test_changes_of_provider_keys_are_audited(tenant: Tenant) -> None:
    entered = audited_change(
        tenant, store_provider_key, access=ProviderAccess.of("openai", key="sk-" + "a" * 40), listed=[]
    )
    assert entered[0] == {}
    assert entered[1]["key_end"] == "aaaa"
    replaced = audited_change(
        tenant, store_provider_key, access=ProviderAccess.of("openai", key="sk-" + "b" * 40), listed=[]
    )
    assert (replaced[0]["key_end"], replaced[1]["key_end"]) == ("aaaa", "bbbb")
    removed = audited_change(tenant, remove_provider_key, provider="openai")
    assert (removed[0]["key_end"], removed[1]) == ("bbbb", {})
    assert "a" * 10 not in str(entered)


def test_changes_of_members_and_tenants_are_audited(tenant: Tenant) -> None:
    user = UserFactory(username="ada")
    member = {"slug": tenant.slug, "username": user.username}

    def last_change() -> tuple[Any, Any]:
        row = PlatformEvent.objects.using(OPS).order_by("position", "id").last()
        assert row is not None
        return row.before, row.after

    set_member_role(**member, role=Role.VIEWER, actor=ACTOR)
    assert last_change() == ({}, {"role": "viewer"})
    set_member_role(**member, role=Role.OPERATOR, actor=ACTOR)
    assert last_change() == ({"role": "viewer"}, {"role": "operator"})
    dismiss_member(**member, actor=ACTOR)
    assert last_change() == ({"role": "operator"}, {})
    limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": 10}, actor=ACTOR)
    assert last_change() == ({"daily_heartbeats": None}, {"daily_heartbeats": 10})
    limit_tenant(slug=tenant.slug, limits={"daily_heartbeats": None}, actor=ACTOR)
    assert last_change() == ({"daily_heartbeats": 10}, {"daily_heartbeats": None})
    latest = PlatformEvent.objects.using(OPS).order_by("-id").first()
    assert latest is not None
    assert latest.message == f"changed the daily limits of tenant {tenant.slug}"
    suspend_tenant(slug=tenant.slug, actor=ACTOR)
    assert last_change() == ({"status": "active"}, {"status": "suspended"})

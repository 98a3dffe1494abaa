"""The page of an agent's trust: its preset, rules and tier."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEvent
from apps.authority.services.modes import trust_of
from apps.authority.services.trust_tiers import trust_score_of
from apps.tenants.scope import tenant_transaction
from arbor.authority.modes import TrustPreset
from tests.support.console import World


def _address(world: World) -> str:
    return reverse("admin:agent-trust", args=[world.agent.id])


def _post(client: Client, world: World, **values: str) -> str:
    return client.post(_address(world), values, follow=True).content.decode()


def test_a_viewer_reads_trust_and_changes_nothing(viewer: Client, world: World) -> None:
    text = viewer.get(_address(world)).content.decode()
    assert "No rule is set; the preset decides." in text
    assert "by the preset arbor://actions/execute/**" in text
    assert "away from its birth" in text
    assert 'name="act"' not in text
    assert viewer.post(_address(world), {"act": "preset", "preset": "cautious"}).status_code == 403


def test_an_operator_sets_preset_rules_and_tier(operator: Client, world: World) -> None:
    assert "The preset is cautious now." in _post(operator, world, act="preset", preset="cautious")
    text = _post(operator, world, act="rule", resource="recall", mode="block")
    assert "arbor://actions/execute/recall is set to block." in text
    assert "by the rule arbor://actions/execute/recall" in text
    shared = {"act": "rule", "resource": "arbor://actions/execute/observe", "mode": "ask", "all": "on"}
    assert "is set to ask for all agents." in _post(operator, world, **shared)
    assert "The tier is veteran now" in _post(operator, world, act="tier", tier="veteran", reason="known")
    with tenant_transaction(world.tenant.id):
        profile = trust_of(world.agent.id)
        score = trust_score_of(world.agent.id)
        actors = AuditEvent.objects.filter(action="trust.changed").values_list("actor", flat=True)
        assert [actor.partition(":")[0] for actor in actors] == ["user"] * 4
    assert profile.preset is TrustPreset.CAUTIOUS
    assert [rule.mode for rule in (*profile.rules, *profile.tenant_rules)] == ["block", "ask"]
    assert (score.tier, score.by_person) == ("veteran", True)
    assert "is removed." in _post(operator, world, act="clear", resource="recall")
    assert "is removed." in _post(operator, world, **{**shared, "act": "clear"})
    with tenant_transaction(world.tenant.id):
        profile = trust_of(world.agent.id)
    assert (profile.rules, profile.tenant_rules) == ((), ())


def test_an_invalid_form_changes_nothing(operator: Client, world: World) -> None:
    for invalid in (
        {"act": "preset", "preset": "brave"},
        {"act": "tier", "tier": "king"},
        {"act": "tier", "tier": "veteran", "reason": "x" * 501},
        {"act": "rule", "resource": "recall", "mode": "perhaps"},
        {"act": "rule", "resource": "arbor://nothing/here", "mode": "ask"},
        {"act": "rule", "resource": " ", "mode": "allow"},
        {"act": "rule", "resource": "arbor://shell/**", "mode": "allow"},
    ):
        assert "Nothing was done" in _post(operator, world, **invalid)
    assert operator.post(_address(world), {"act": "forge"}).status_code == 404

"""The page of a self with its versions, and the rollback by its form."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.selves.models import IdentityAspect
from apps.selves.services.aspects import add_aspect
from apps.selves.services.history import latest_version
from apps.tenants.scope import tenant_transaction
from arbor.selves.values import AspectKind, NewAspect
from tests.support.console import World, page_text


def test_an_operator_compares_a_version_and_restores_it(
    operator: Client, viewer: Client, world: World
) -> None:
    with tenant_transaction(world.tenant.id):
        before = latest_version(world.agent.id)
        add_aspect(
            agent_id=world.agent.id,
            aspect=NewAspect(content="<b>bold</b>", kind=AspectKind.TRAIT, strength=0.8),
            actor="cli:ann",
        )
        version = latest_version(world.agent.id)
        add_aspect(
            agent_id=world.agent.id, aspect=NewAspect(content="rash", kind=AspectKind.TRAIT), actor="cli:ann"
        )
    assert version > before
    page, rollback = reverse("admin:self-versions"), reverse("admin:self-rollback")
    assert "choose an agent" in page_text(viewer, page)
    shown = page_text(viewer, f"{page}?agent={world.agent.id}&earlier={version}")
    assert "&lt;b&gt;bold&lt;/b&gt; 80 %" in shown
    assert f'data-version="{version}"' in shown
    assert 'id="differences"' in shown
    assert 'id="rollback"' not in shown
    payload = {
        "agent": str(world.agent.id),
        "version": str(version),
        "part": ["aspect"],
        "reason": "too rash",
    }
    assert viewer.post(rollback, payload).status_code == 403
    assert 'id="rollback"' in page_text(operator, f"{page}?agent={world.agent.id}&earlier={version}")
    done = operator.post(rollback, payload, follow=True).content.decode()
    assert f"Version {version} is restored: " in done
    with tenant_transaction(world.tenant.id):
        assert IdentityAspect.objects.get(content="rash").status == "dropped"
        assert IdentityAspect.objects.get(content="<b>bold</b>").status == "held"
    assert "already" in operator.post(rollback, payload, follow=True).content.decode()
    for unknown in ("999", "9" * 5_000):
        assert operator.post(rollback, payload | {"version": unknown}).status_code == 404
    assert operator.post(rollback, payload | {"part": ["soul"]}).status_code == 404
    for unknown in ("999", "9" * 5_000):
        assert 'id="differences"' not in page_text(viewer, f"{page}?agent={world.agent.id}&earlier={unknown}")


def test_a_rollback_without_a_chosen_part_restores_nothing(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        before = latest_version(world.agent.id)
        rash = NewAspect(content="rash", kind=AspectKind.TRAIT)
        add_aspect(agent_id=world.agent.id, aspect=rash, actor="cli:ann")
    payload = {"agent": str(world.agent.id), "version": str(before)}
    refused = operator.post(reverse("admin:self-rollback"), payload, follow=True).content.decode()
    assert "choose at least one part of the self" in refused
    long = payload | {"part": ["aspect"], "reason": "x" * 501}
    refused = operator.post(reverse("admin:self-rollback"), long, follow=True).content.decode()
    assert "a reason must have at most 500 characters" in refused
    with tenant_transaction(world.tenant.id):
        assert IdentityAspect.objects.get(content="rash").status == "held"

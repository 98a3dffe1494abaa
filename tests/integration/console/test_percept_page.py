"""The page of something that reached an agent."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.tenants.scope import tenant_transaction
from tests.factories.heartbeats import PerceptFactory
from tests.support.console import World


def test_a_percept_shows_what_came_with_it(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        percept = PerceptFactory(kind="environment", detail={"sensor": "<b>river</b>"}, urgent=True)
    page = viewer.get(reverse("admin:agents_percept_change", args=[percept.pk])).content.decode()
    assert "&lt;b&gt;river&lt;/b&gt;" in page
    assert "sensor" in page
    assert "Urgent" in page

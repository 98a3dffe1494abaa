"""Every console page against WCAG 2.2 A and AA, in light and dark, at phone width, and by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib import admin
from django.core.wsgi import get_wsgi_application
from django.urls import reverse

from apps.tenants.models import Role
from apps.tenants.services import add_member, create_tenant
from tests.acceptance.accessibility import audit, overflow
from tests.acceptance.browser import Browser, find_chromium
from tests.acceptance.console_server import served, sign_in
from tests.factories.heartbeats import ProcessFactory
from tests.factories.users import UserFactory
from tests.support.console import World, page_of
from tests.support.console_rows import make_world
from tests.support.database import DatabaseCleaner

CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium was found on this machine"),
]
DESK, PHONE = 1440, 390
CONTENT = "#content"
#: The rules that depend on colours.
COLORS = ("color-contrast",)
#: Lists that are opened in dark too.
DARK_LISTS = 12


@dataclass(frozen=True, kw_only=True)
class AccessScene:
    """A tenant with a row of everything, an empty one, and a browser signed in as their owner, who runs the installation."""

    browser: Browser
    address: str
    world: World

    @property
    def lists(self) -> list[str]:
        return [
            reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
            for model in admin.site._registry
        ]

    @property
    def forms(self) -> list[str]:
        """The pages that are neither lists nor rows."""
        names = (
            "index",
            "own-sessions",
            "password_change",
            "inbox",
            "signals",
            "recall",
            "graph",
            "model-usage",
        )
        adds = ("agents_agent_add", "contacts_channel_add", "operations", "template-edit")
        return [reverse(f"admin:{name}") for name in (*names, *adds)]

    @property
    def rows(self) -> list[str]:
        """The page of one row of each kind, and the operator's pages with something to show."""
        first = {type(row): page_of(row) for row in reversed(self.world.rows)}
        destroy = reverse("admin:agents_agent_delete", args=[self.world.agent.pk])
        return [
            *first.values(),
            *self.world.operator_pages,
            self.world.chat,
            page_of(self.world.beat),
            destroy,
        ]


@pytest.fixture(scope="module")
def scene(django_db_setup: None, emptier: DatabaseCleaner, django_db_blocker: Any) -> Iterator[AccessScene]:
    assert CHROMIUM is not None
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.conf.settings.ARBOR_PAGES_PER_MINUTE", 0)
        ProcessFactory()
        tenants = [create_tenant(slug=slug, name=slug.title()) for slug in ("acme", "vacant")]
        ann = UserFactory(username="ann", is_superuser=True)
        for tenant in tenants:
            add_member(tenant=tenant, user=ann, role=Role.OWNER)
        world = make_world(tenants[0])
        with served(get_wsgi_application()) as address, Browser(CHROMIUM) as browser:
            browser.view(dark=False)
            sign_in(browser, address)
            yield AccessScene(browser=browser, address=address, world=world)
        emptier.empty()


def faults(scene: AccessScene, page: str, *, within: str = CONTENT, in_dark: bool = True) -> list[str]:
    """Open a page; return its violations in light, in dark and at phone width."""
    browser = scene.browser
    browser.open(f"{scene.address}{page}")
    found = audit(browser, within=within)
    if in_dark:
        browser.evaluate("document.documentElement.classList.add('dark')")
        found += [f"dark: {fault}" for fault in audit(browser, rules=COLORS, within=within)]
    browser.view(width=PHONE)
    found += [f"phone: {fault}" for fault in overflow(browser)]
    browser.view(width=DESK)
    return [f"{page} {fault}" for fault in found]


def test_frames_of_pages_violate_no_rule(scene: AccessScene) -> None:
    found = []
    for page in ("/admin/", scene.lists[0], scene.world.agents_page, "/admin/nowhere/"):
        found += faults(scene, page, within="html")
        scene.browser.view(width=PHONE)
        found += [f"phone: {fault}" for fault in audit(scene.browser)]
        scene.browser.view(width=DESK)
    assert found == []


def test_contents_of_lists_violate_no_rule(scene: AccessScene) -> None:
    # All lists have the colours of one template: in dark the first of them are enough.
    assert [
        fault
        for place, page in enumerate(scene.lists)
        for fault in faults(scene, page, in_dark=place < DARK_LISTS)
    ] == []


def test_contents_of_rows_violate_no_rule(scene: AccessScene) -> None:
    assert [fault for page in scene.rows for fault in faults(scene, page)] == []


def test_contents_of_forms_violate_no_rule(scene: AccessScene) -> None:
    assert [fault for page in scene.forms for fault in faults(scene, page)] == []

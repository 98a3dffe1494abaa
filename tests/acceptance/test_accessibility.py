"""Every console page against WCAG 2.2 A and AA, in light and dark, at phone width, and by keyboard alone.

The contents of lists and forms are checked against the content security policy, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings
from django.contrib import admin
from django.urls import reverse

from apps.agents.models import Agent
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import OWNER, tenant_transaction
from apps.tenants.services import add_member, create_tenant
from tests.acceptance.accessibility import COLORS, ColorCheck, axe_source, find_overflow, find_violations
from tests.acceptance.browser import Browser, needs_chromium
from tests.acceptance.console_server import sign_in
from tests.factories.heartbeats import ProcessFactory
from tests.factories.users import UserFactory
from tests.support.console import World, list_of, page_of
from tests.support.console_rows import make_world
from tests.support.database import DatabaseCleaner

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600), needs_chromium]
DESKTOP, PHONE = 1440, 390
CONTENT = "#content"
#: The rule about parts that scroll, which few do on a wide screen.
SCROLLED = ("scrollable-region-focusable",)


@dataclass(frozen=True, kw_only=True)
class AccessScene:
    """A tenant with a row of everything, an empty one, and a browser signed in as their owner, who runs the installation."""

    browser: Browser
    address: str
    world: World
    colors: ColorCheck = field(default_factory=ColorCheck)

    @property
    def lists(self) -> list[str]:
        return [list_of(model) for model in admin.site._registry]

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
            "search-sources",
            "graph",
            "self-versions",
            "model-usage",
            "audit-chain",
            "operations",
            "template-edit",
            "agents_agent_add",
            "contacts_channel_add",
            "fleet_savedseed_add",
            "knowledge_document_add",
        )
        return [reverse(f"admin:{name}") for name in names]

    @property
    def rows(self) -> list[str]:
        """The page of one row of each kind, and the operator's pages with something to show."""
        first = {type(row): page_of(row) for row in reversed(self.world.rows)}
        destroy = reverse("admin:agents_agent_delete", args=[self.world.agent.pk])
        return [
            *first.values(),
            *self.world.operator_pages,
            self.world.chat_page,
            page_of(self.world.heartbeat),
            destroy,
        ]


@pytest.fixture(scope="module")
def scene(address: str, emptier: DatabaseCleaner, django_db_blocker: Any) -> Iterator[AccessScene]:
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "ARBOR_PAGES_PER_MINUTE", 0)
        ProcessFactory()
        tenants = [create_tenant(slug=slug, name=slug.title()) for slug in ("acme", "vacant")]
        ann = UserFactory(username="ann", is_superuser=True)
        for tenant in tenants:
            add_member(tenant=tenant, user=ann, role=Role.OWNER)
        world = make_world(tenants[0])
        with Browser() as browser:
            browser.view(dark=False)
            browser.run_on_each_page(axe_source())
            sign_in(browser, address)
            yield AccessScene(browser=browser, address=address, world=world)
        emptier.empty()


def rename_scene(world: World, name: str) -> None:
    """Give the agent and its tenant a long name of one word."""
    with tenant_transaction(world.tenant.id):
        Agent.objects.filter(id=world.agent.id).update(name=name)
    Tenant.objects.using(OWNER).filter(id=world.tenant.id).update(name=name)


def find_faults(scene: AccessScene, page: str, *, within: str = CONTENT) -> list[str]:
    """Open a page; return its violations, those of colors in light and in dark, and what is too wide on a phone."""
    browser = scene.browser
    browser.open(f"{scene.address}{page}")
    found = find_violations(browser, within=within, colors=False)
    found += scene.colors.find_violations(browser, within=within)
    browser.evaluate("document.documentElement.classList.add('dark')")
    found += [f"dark: {fault}" for fault in scene.colors.find_violations(browser, within=within)]
    browser.view(width=PHONE)
    found += [f"phone: {fault}" for fault in find_overflow(browser)]
    found += [f"phone: {fault}" for fault in find_violations(browser, rules=SCROLLED, within=within)]
    browser.view(width=DESKTOP)
    return [f"{page} {fault}" for fault in found]


def find_faults_and_blocked(scene: AccessScene, page: str) -> list[str]:
    """Open a page; return its violations of rules, and what the content security policy blocked on it."""
    found = find_faults(scene, page)
    # Alpine has started, and sets the width of the sidebar.
    scene.browser.evaluate("document.querySelector('[x-on\\\\:click*=openUserLinks]').click()")
    scene.browser.wait_for(
        "[...document.querySelectorAll('[x-show=openUserLinks]')].some(box => box.checkVisibility())"
    )
    return found + [f"{page} blocked: {violation}" for violation in scene.browser.violations()]


def test_frames_of_pages_violate_no_rule(scene: AccessScene) -> None:
    found = []
    for page in ("/admin/", scene.lists[0], scene.world.agent_page, "/admin/nowhere/"):
        found += find_faults(scene, page, within="html")
        scene.browser.view(width=PHONE)
        found += [f"phone: {fault}" for fault in find_violations(scene.browser)]
        scene.browser.view(width=DESKTOP)
    assert found == []


def test_contents_of_lists_violate_no_rule_and_no_policy(scene: AccessScene) -> None:
    assert [fault for page in scene.lists for fault in find_faults_and_blocked(scene, page)] == []


def test_contents_of_rows_violate_no_rule(scene: AccessScene) -> None:
    assert [fault for page in scene.rows for fault in find_faults(scene, page)] == []


def test_contents_of_forms_violate_no_rule_and_no_policy(scene: AccessScene) -> None:
    assert [fault for page in scene.forms for fault in find_faults_and_blocked(scene, page)] == []


def test_text_that_is_hard_to_read_is_found_once(scene: AccessScene) -> None:
    browser, colors = scene.browser, ColorCheck()
    browser.open(f"{scene.address}/admin/")
    assert colors.find_violations(browser, within=CONTENT) == []
    browser.evaluate("document.querySelector('#content a').style.color = '#f4f4f4'")
    assert [fault.split(":")[0] for fault in colors.find_violations(browser, within=CONTENT)] == [*COLORS]
    assert colors.find_violations(browser, within=CONTENT) == []


#: A script that describes the focused element: its place in the page, its tag, its link, and whether it is visible,
#: shows the focus by an outline or a shadow, and is inside the content.
FOCUS = """
(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  const around = getComputedStyle(element.parentElement);
  return {
    place: [...document.querySelectorAll("*")].indexOf(element),
    name: element.outerHTML.slice(0, 120),
    href: element.getAttribute("href") ?? "",
    seen: box.width > 0 && box.height > 0 && style.visibility !== "hidden",
    marked: style.outlineStyle !== "none" || style.boxShadow !== "none" || around.outlineStyle !== "none",
    inside: Boolean(element.closest("#content")),
  };
})()
"""


def tab_through(browser: Browser) -> list[dict[str, Any]]:
    """Press Tab until the focus has left the page; return the focused elements."""
    stops: list[dict[str, Any]] = []
    for _ in range(200):
        browser.press("Tab")
        stop = browser.evaluate(FOCUS)
        if stop is None or (stops and stop["place"] == stops[0]["place"]):
            return stops
        stops.append(stop)
    raise AssertionError(f"the focus does not leave the page: {stops[-1]}")


#: A script that returns the places of the controls of the content that Tab must reach.
CONTROLS = """
[...document.querySelectorAll('#content a[href], #content button:not([disabled]), #content input:not([type=hidden]):not([disabled]), #content select, #content textarea, #content summary')]
  .filter((element) => element.checkVisibility({visibilityProperty: true}) && element.tabIndex >= 0)
  .map((element) => [...document.querySelectorAll('*')].indexOf(element))
"""


def test_a_page_is_used_by_keyboard_alone(scene: AccessScene) -> None:
    browser = scene.browser
    for page in (scene.world.agent_page, reverse("admin:operations")):
        browser.open(f"{scene.address}{page}")
        stops = tab_through(browser)
        assert stops[0]["href"] == "#content", "the first stop leads past the sidebar"
        assert [stop["name"] for stop in stops if not stop["seen"]] == []
        assert [stop["name"] for stop in stops if not stop["marked"]] == []
        places = [stop["place"] for stop in stops]
        assert places == sorted(places), "the focus follows the order of the page"
        assert set(browser.evaluate(CONTROLS)) <= set(places)
    browser.open(f"{scene.address}{reverse('admin:operations')}")
    browser.press("Tab")
    browser.press("Enter")
    browser.press("Tab")
    assert browser.evaluate(FOCUS)["inside"]


def test_escape_closes_the_menus_of_a_page(scene: AccessScene) -> None:
    browser = scene.browser
    browser.open(f"{scene.address}/admin/")
    for opener, opened in (
        (".ar-tenant summary", ".ar-tenant[open]"),
        ("[x-on\\\\:click*=openUserLinks]", "[x-show=openUserLinks]"),
    ):
        shown = f"Boolean([...document.querySelectorAll('{opened}')].some(box => box.checkVisibility()))"
        browser.evaluate(f"document.querySelector('{opener}').focus()")
        browser.press("Enter")
        browser.wait_for(shown)
        browser.press("Escape")
        browser.wait_for(f"!({shown})")
        assert browser.evaluate(f"document.activeElement === document.querySelector('{opener}')"), opener


def test_times_are_written_in_the_viewers_zone(scene: AccessScene) -> None:
    browser = scene.browser
    browser.set_zone("Asia/Tokyo")
    for page in (
        page_of(scene.world.heartbeat),
        reverse("admin:access_apitoken_changelist"),
        scene.world.agent_page,
    ):
        browser.open(f"{scene.address}{page}")
        titles = "[...document.querySelectorAll('[title]')].map(element => element.title).join(' ')"
        assert "GMT+9" in browser.text() + browser.evaluate(titles), page
        assert " UTC" not in browser.text("#content"), page
    browser.set_zone("")


#: A script that submits a form twice, without leaving the page, and returns which of the submissions were refused.
TWICE = """
(() => {
  const refused = [];
  window.addEventListener("submit", (event) => (refused.push(event.defaultPrevented), event.preventDefault()));
  const form = document.querySelector("#new-agent");
  for (let time = 0; time < 2; time++) form.requestSubmit();
  return refused;
})()
"""


def test_a_double_click_sends_a_form_once(scene: AccessScene) -> None:
    scene.browser.open(f"{scene.address}{reverse('admin:agents_agent_add')}")
    scene.browser.fill("#id_name", "Vega")
    assert scene.browser.evaluate(TWICE) == [False, True]


def test_a_refused_form_keeps_what_was_typed(scene: AccessScene) -> None:
    browser = scene.browser
    workflow = next(row for row in scene.world.rows if row._meta.label == "workflows.Workflow")
    field = "#start-run [name=values]"
    browser.open(f"{scene.address}{page_of(workflow)}")
    browser.fill(field, "topic: eels")
    browser.click("#start-run button")
    assert "Nothing was done" in browser.text(".errornote")
    assert browser.evaluate(f"document.querySelector('{field}').value") == "topic: eels"
    browser.open(f"{scene.address}{page_of(workflow)}")
    assert browser.evaluate(f"document.querySelector('{field}').value") == ""


def test_the_tab_of_the_page_is_in_view_on_a_phone(scene: AccessScene) -> None:
    browser = scene.browser
    browser.view(width=PHONE)
    browser.open(f"{scene.address}{reverse('admin:tools_toolserver_changelist')}")
    edges = "(({left, right}) => [left, right])(document.querySelector('#section-tabs [aria-current]').getBoundingClientRect())"
    left, right = browser.evaluate(edges)
    browser.view(width=DESKTOP)
    assert 0 <= left < right <= PHONE


def test_times_to_the_minute_stay_so_in_the_viewers_zone(scene: AccessScene) -> None:
    browser = scene.browser
    session = next(row for row in scene.world.rows if row._meta.label == "contacts.ChatSession")
    browser.set_zone("Asia/Tokyo")
    browser.open(f"{scene.address}{page_of(session)}")
    assert re.search(r"\d\d-\d\d \d\d:\d\d GMT", browser.text("h1"))
    browser.set_zone("")


def test_moving_parts_update_and_report_a_lost_connection(scene: AccessScene) -> None:
    browser = scene.browser
    browser.open(f"{scene.address}/admin/")
    assert "ago" in browser.text("#live")
    browser.evaluate("document.querySelector('#fleet-cards .ar-label').textContent = 'STALE'")
    browser.evaluate("document.querySelector('.ar-strip').focus()")
    browser.evaluate("window.livePage.ask()")
    assert "STALE" not in browser.text("#fleet-cards")
    assert browser.evaluate("document.activeElement.className") == "ar-strip", "the focus stays"
    browser.evaluate("document.querySelector('#live button').click()")
    assert "Paused" in browser.text("#live")
    browser.evaluate("document.querySelector('#live button').click()")
    browser.evaluate("window.fetch = () => Promise.reject(new TypeError('offline'))")
    browser.evaluate("window.livePage.ask()")
    assert "Connection lost" in browser.text("#live [role=status]")
    assert browser.count("#live.ar-stale") == 1


def test_pages_are_read_and_used_without_a_script(scene: AccessScene) -> None:
    browser = scene.browser
    browser.view(scripts=False)
    try:
        for page in ("/admin/", scene.world.agent_page, reverse("admin:heartbeats_heartbeat_changelist")):
            browser.open(f"{scene.address}{page}")
            content = browser.text(CONTENT)
            assert "Updated" not in content, page
            assert scene.world.agent.name in content, page
            beside = "document.querySelector('#content').getBoundingClientRect().left"
            assert browser.evaluate(f"{beside} >= document.querySelector('#nav-sidebar').offsetWidth"), page
    finally:
        browser.view(scripts=True)


def test_long_names_fit_a_phone(scene: AccessScene) -> None:
    browser, name = scene.browser, "Donaudampfschifffahrt" * 4
    rename_scene(scene.world, name)
    browser.view(width=PHONE)
    found = []
    for address in (scene.world.agent_page, reverse("admin:agents_agent_add"), reverse("admin:operations")):
        browser.open(f"{scene.address}{address}")
        assert name in browser.text(CONTENT), address
        found += find_overflow(browser)
    browser.view(width=DESKTOP)
    assert found == []

"""The sidebar, which is short and from which every page is two clicks away."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from apps.console.navigation import SECTIONS
from tests.support.console import PLATFORM, World, list_of

ENTRIES_AT_MOST = 12


class _LinkCollector(HTMLParser):
    """A parser that collects the addresses of the links of a page, without their queries."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.addresses.add(str(dict(attrs).get("href")).partition("?")[0])


def links_on(client: Client, address: str) -> set[str]:
    response = client.get(address)
    assert response.status_code == 200, address
    parser = _LinkCollector()
    parser.feed(response.content.decode())
    return parser.addresses


def entries(client: Client) -> list[str]:
    groups = client.get(reverse("admin:index")).context["sidebar_navigation"]
    return [item["link"] for group in groups for item in group["items"] if item["has_permission"]]


def test_the_sidebar_has_at_most_a_dozen_entries(chief: Client, viewer: Client) -> None:
    for client in (chief, viewer):
        assert 8 < len(entries(client)) <= ENTRIES_AT_MOST
    assert len(SECTIONS) <= ENTRIES_AT_MOST


def test_a_badge_of_the_sidebar_is_on_its_tab_too(viewer: Client, world: World) -> None:
    response = viewer.get(reverse("admin:contacts_chatsession_changelist"))
    badges = {title: badge for title, _, _, badge in response.context["section_tabs"].tabs if badge}
    assert badges == {"Inbox": "1"}


@pytest.mark.timeout(300)
def test_every_page_is_two_clicks_from_the_sidebar(chief: Client) -> None:
    reached = set(entries(chief))
    for address in entries(chief):
        reached |= links_on(chief, address)
    for model in admin.site._registry:
        assert list_of(model) in reached, model
    for section in SECTIONS:
        for page in section.pages:
            assert reverse(f"admin:{page.url_name}") in reached, page.url_name


def test_links_lead_only_to_permitted_pages(viewer: Client, root: Client, world: World) -> None:
    for client in (viewer, root):
        for address in entries(client):
            tabs = client.get(address).context["section_tabs"]
            for _title, tab, _current, _badge in tabs.tabs if tabs else ():
                assert client.get(tab).status_code == 200, tab
    shown = set(entries(viewer))
    for label in PLATFORM:
        assert reverse(f"admin:{label.lower().replace('.', '_')}_changelist") not in shown


def test_the_current_section_and_page_are_marked(viewer: Client, world: World) -> None:
    response = viewer.get(world.agent_page)
    items = response.context["sidebar_navigation"][0]["items"]
    assert [item["title"] for item in items if item["active"]] == ["Agents"]
    agents = reverse("admin:agents_agent_changelist")
    assert f'<a href="{agents}" aria-current="page">Agents</a>' in response.content.decode()


def test_a_link_skips_the_sidebar(viewer: Client) -> None:
    text = viewer.get(reverse("admin:index")).content.decode()
    assert 'href="#content"' in text
    assert 'id="content"' in text

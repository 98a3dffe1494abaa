"""Goals, plans and their parts on the console's pages."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.console import paging
from apps.console.paging import ROWS_BELOW
from apps.tenants.scope import tenant_transaction
from tests.factories.goals import GoalFactory, ProgressNoteFactory
from tests.integration.console.test_pages import QUERIES_AT_MOST
from tests.support.console import World, page_of
from tests.support.console_crawls import ViewerCrawl


def test_every_page_of_goals_opens_with_few_queries(seen_by_viewer: ViewerCrawl) -> None:
    pages = [page for page in seen_by_viewer.pages if "/goals/" in page.address]
    assert len(pages) >= 14
    for page in pages:
        assert page.status == 200, page.address
        assert len(page.queries) <= QUERIES_AT_MOST, page.address


def test_a_goals_page_shows_its_parts_plans_memories_and_worth(viewer: Client, world: World) -> None:
    page = next(page for page in world.pages if "/goals/goal/" in page and page.endswith("/change/"))
    text = viewer.get(page).content.decode()
    for words in ("Part of", "steps", "progress", "0.8"):
        assert words in text


def test_an_agents_page_shows_each_goal_above_its_parts(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        coast = GoalFactory(agent=world.agent, title="Chart the coast")
        reef = GoalFactory(agent=world.agent, title="Sound the reef", parent=coast)
        GoalFactory(agent=world.agent, title="Drop the lead", parent=reef)
    text = viewer.get(world.agents_page).content.decode()
    tree = text[text.index('id="goal-tree"') :]
    places = [tree.index(title) for title in ("Chart the coast", "Sound the reef", "Drop the lead")]
    assert places == sorted(places)
    assert "padding: 4px 0 4px 36px" in tree


def test_of_many_notes_a_goals_page_shows_the_first_and_says_so(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "ROWS_COUNTED", 25)
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent)
        for number in range(30):
            ProgressNoteFactory(goal=goal, text=f"Sounding number {number}.")
    first = viewer.get(page_of(goal)).content.decode()
    assert "the first 25 progress notes" in first
    assert first.count("Sounding number") == ROWS_BELOW
    assert viewer.get(page_of(goal), {"notes-page": 2}).content.decode().count("Sounding number") == 5


def test_a_goal_without_parts_and_notes_says_so(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent)
    assert viewer.get(page_of(goal)).content.decode().count("none yet") == 6

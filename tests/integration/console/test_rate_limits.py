"""Limits of pages and acts a minute, for a person and for a tenant."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.console import rate_limits
from apps.console.rate_limits import PEOPLE_PER_TENANT, SEARCH_PAGES
from apps.tenants.models import Role
from apps.tenants.services import add_member
from arbor.rate_limits import RateLimiter
from tests.factories.users import UserFactory
from tests.support.console import World, sign_in


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time of a new limiter, which the test may change."""
    time = [0.0]
    monkeypatch.setattr(rate_limits, "limiter", RateLimiter(lambda: time[0]))
    return time


def goals_page() -> str:
    return reverse("admin:goals_goal_changelist")


def test_too_many_pages_of_a_person_are_refused(
    owner: Client, world: World, now: list[float], settings: Any
) -> None:
    settings.ARBOR_PAGES_PER_MINUTE = 3
    assert [owner.get(goals_page()).status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = owner.get(goals_page())
    assert refused.headers["Retry-After"] == "20"
    assert "a person may open 3 pages a minute, a tenant 15" in refused.content.decode().lower()
    now[0] += 20
    assert [owner.get(goals_page()).status_code for _ in range(2)] == [200, 429]


def test_acts_have_a_limit_of_their_own(owner: Client, world: World, now: list[float], settings: Any) -> None:
    settings.ARBOR_ACTS_PER_MINUTE = 2
    statuses = [owner.post(world.act_address, {"act": "run"}).status_code for _ in range(3)]
    assert statuses == [302, 302, 429]
    assert owner.post(world.chat_page, {"text": "Hello"}).status_code == 429
    assert owner.get(goals_page()).status_code == 200


def test_a_search_counts_as_several_pages(
    owner: Client, world: World, now: list[float], settings: Any
) -> None:
    settings.ARBOR_PAGES_PER_MINUTE = SEARCH_PAGES
    assert owner.get(goals_page(), {"q": "reef"}).status_code == 200
    assert owner.get(goals_page()).status_code == 429


def test_the_people_of_a_tenant_share_its_limit(world: World, now: list[float], settings: Any) -> None:
    settings.ARBOR_PAGES_PER_MINUTE = 1
    people = [UserFactory() for _ in range(PEOPLE_PER_TENANT + 1)]
    for person in people:
        add_member(tenant=world.tenant, user=person, role=Role.VIEWER)
    statuses = [sign_in(person).get(goals_page()).status_code for person in people]
    assert statuses == [200] * PEOPLE_PER_TENANT + [429]


def test_signing_out_stays_possible(owner: Client, world: World, now: list[float], settings: Any) -> None:
    settings.ARBOR_ACTS_PER_MINUTE = 1
    owner.post(world.act_address, {"act": "run"})
    refused = owner.post(world.act_address, {"act": "run"})
    assert refused.status_code == 429
    assert "a person may carry out 1 act a minute, a tenant 5" in refused.content.decode().lower()
    owner.post(reverse("admin:logout"))
    assert owner.get(goals_page()).status_code == 302

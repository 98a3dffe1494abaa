"""Limits of pages and acts a minute, for a person and for a tenant."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

import arbor.rate_limits
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
    assert "at most 3 pages a minute" in refused.content.decode().lower()
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
    assert owner.post(world.act_address, {"act": "run"}).status_code == 429
    owner.post(reverse("admin:logout"))
    assert owner.get(goals_page()).status_code == 302


def test_a_limit_of_zero_is_no_limit() -> None:
    assert RateLimiter(lambda: 0.0).seconds_to_wait({"anybody": 0}, uses=1_000) == 0


def test_a_refused_use_is_charged_to_nobody() -> None:
    time = [0.0]
    limiter = RateLimiter(lambda: time[0])
    limiter.seconds_to_wait({"ann": 1})
    assert limiter.seconds_to_wait({"ann": 1, "acme": 2}) == 60
    assert limiter.seconds_to_wait({"acme": 2}, uses=2) == 0


def test_a_use_above_the_limit_itself_is_allowed_once() -> None:
    limiter = RateLimiter(lambda: 0.0)
    assert limiter.seconds_to_wait({"ann": 2}, uses=5) == 0
    assert limiter.seconds_to_wait({"ann": 2}, uses=5) > 0


def test_unused_keys_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arbor.rate_limits, "_MAX_KEYS", 2)
    time = [0.0]
    limiter = RateLimiter(lambda: time[0])
    for key in ("ann", "bob"):
        limiter.seconds_to_wait({key: 5})
    time[0] = 61.0
    limiter.seconds_to_wait({"cy": 5})
    assert limiter._allowances.keys() == {"cy"}

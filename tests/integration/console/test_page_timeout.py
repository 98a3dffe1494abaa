"""Time limits of statements: of a page by its transaction, of all others by the serving role."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse

from apps.console.listing import ConsoleAdmin
from apps.tenants.scope import APP, OPS, tenant_transaction
from tests.support.console import World


def test_a_page_that_takes_too_long_is_stopped(
    owner: Client, world: World, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_slowly(_admin: ConsoleAdmin, _rows: Sequence[Any]) -> None:
        with connections[APP].cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")

    limit = settings.ARBOR_PAGE_TIMEOUT
    settings.ARBOR_PAGE_TIMEOUT = timedelta(milliseconds=300)
    with monkeypatch.context() as patch:
        patch.setattr(ConsoleAdmin, "complete", read_slowly)
        response = owner.get(reverse("admin:goals_goal_changelist"))
    settings.ARBOR_PAGE_TIMEOUT = limit
    assert response.status_code == 503
    assert "needed more than 0.3 s" in response.content.decode()
    assert owner.get(reverse("admin:goals_goal_changelist")).status_code == 200


def test_a_transaction_has_its_own_limit(world: World, settings: Any) -> None:
    with tenant_transaction(world.tenant.id, statement_timeout=timedelta(seconds=7)):
        assert _limit(APP, "statement_timeout") == "7s"


@pytest.mark.parametrize("alias", [APP, OPS])
@pytest.mark.parametrize("limit", ["statement_timeout", "idle_in_transaction_session_timeout"])
@pytest.mark.django_db(databases=[APP, OPS])
def test_serving_roles_have_limits(alias: str, limit: str) -> None:
    assert _limit(alias, limit) == "5min"


def _limit(alias: str, name: str) -> str:
    with connections[alias].cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])

"""Flower's check of accounts, which needs only the role of accounts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connections

from apps.tenants.scope import APP, OPS
from config.cli.installation.operator_check import OperatorCheck
from tests.factories.users import PASSWORD, UserFactory


@pytest.fixture
def accounts_only(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse the connections of the other roles."""
    with monkeypatch.context() as patch:
        for alias in (APP, OPS):
            connections[alias].close()
            patch.setitem(connections[alias].settings_dict, "PASSWORD", "withheld")
        yield


@pytest.mark.usefixtures("accounts_only")
def test_flower_needs_the_role_of_accounts_alone() -> None:
    UserFactory(username="root", is_superuser=True)
    UserFactory(username="ann")
    check = OperatorCheck()
    assert not check.accepts("root", "wrong", "127.0.0.1")
    assert not check.accepts("ann", PASSWORD, "127.0.0.1")
    assert check.accepts("root", PASSWORD, "127.0.0.1")
    assert check.accepts("ｒｏｏｔ", PASSWORD, "127.0.0.1"), "as in the console, wide letters are normalized"

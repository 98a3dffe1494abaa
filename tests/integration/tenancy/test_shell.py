"""`manage.py shell` in one tenant, or in none."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from apps.memories.models import Memory
from apps.tenants.scope import current_scope, tenant_transaction
from arbor.errors import NotFound, TenantRequired
from tests.integration.tenancy.conftest import TenantRows

COUNT = "from apps.memories.models import Memory; print('memories:', Memory.objects.count())"
CHANGE = "from apps.memories.models import Memory; Memory.objects.update(content='changed')"


def shell(command: str, **options: str) -> None:
    call_command("shell", command=command, verbosity=0, stdout=StringIO(), **options)


def test_a_shell_for_a_tenant_sees_that_tenant(
    ours: TenantRows, theirs: TenantRows, capsys: pytest.CaptureFixture[str]
) -> None:
    shell(COUNT, tenant="acme")
    assert "memories: 1" in capsys.readouterr().out
    assert current_scope() is None


def test_a_shell_without_a_tenant_sees_nothing(ours: TenantRows) -> None:
    with pytest.raises(TenantRequired):
        shell(COUNT)


def test_a_shell_that_succeeds_commits(ours: TenantRows) -> None:
    shell(CHANGE, tenant="acme")
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "changed"


def test_a_shell_that_fails_rolls_back(ours: TenantRows) -> None:
    with pytest.raises(ZeroDivisionError):
        shell(f"{CHANGE}; 1 / 0", tenant="acme")
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "the secret of acme"


def test_a_shell_for_an_unknown_tenant_lists_the_tenants(ours: TenantRows, theirs: TenantRows) -> None:
    with pytest.raises(NotFound, match="acme, globex"):
        shell(COUNT, tenant="initech")

"""The audit log in the console: search by words, its chain, verification and export."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.services import record
from apps.console import windows
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.audit.conftest import record_acts, seal
from tests.support.console import World, page_of

type SignIn = Callable[[Role], Client]


@pytest.fixture(autouse=True)
def _no_pauses(settings: Any) -> None:
    """Run jobs without the pauses between their steps."""
    settings.ARBOR_MAINTENANCE_SHARE = 1.0


def text_of(client: Client, name: str, **query: str) -> str:
    response = client.get(reverse(f"admin:{name}"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_messages_are_searched_by_words(tenant: Tenant, as_role: SignIn) -> None:
    record_acts(tenant, "raised the daily limit of Vega", "lowered the daily limit of Lyra")
    viewer = as_role(Role.VIEWER)
    found = text_of(viewer, "audit_auditevent_changelist", q="vega daily")
    assert "raised the daily limit" in found
    assert "lowered the daily limit" not in found
    assert "lowered the daily limit" in text_of(viewer, "audit_auditevent_changelist", q="user:nora")
    assert "raised the daily limit" not in text_of(
        viewer, "audit_auditevent_changelist", level__exact="error"
    )
    assert reverse("admin:audit-chain") in text_of(viewer, "audit_auditevent_changelist")


def test_the_acts_of_an_agent_are_found_however_old(
    tenant: Tenant, as_role: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROWS_FILTERED", 1)
    agent_id = uuid4()
    with tenant_transaction(tenant.id):
        record(action=AuditAction.OPERATOR_ACT, actor="cli:ann", agent_id=agent_id, message="named Vega")
    record_acts(tenant, "first", "second")
    viewer = as_role(Role.VIEWER)
    assert "named Vega" in text_of(viewer, "audit_auditevent_changelist", agent_id__exact=str(agent_id))


def test_an_act_links_its_agent(world: World, viewer: Client) -> None:
    event = next(row for row in world.rows if isinstance(row, AuditEvent))
    assert f'href="{world.agent_page}"' in viewer.get(page_of(event)).content.decode()
    with tenant_transaction(world.tenant.id):
        destroyed = record(action=AuditAction.OPERATOR_ACT, actor="cli:ann", agent_id=uuid4(), message="gone")
    assert str(destroyed.agent_id) in viewer.get(page_of(destroyed)).content.decode()


def test_a_search_says_where_it_ends(
    tenant: Tenant, as_role: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROWS_FILTERED", 1)
    agent_id = uuid4()
    with tenant_transaction(tenant.id):
        record(action=AuditAction.OPERATOR_ACT, actor="cli:ann", agent_id=agent_id, message="named Vega")
    record_acts(tenant, "first", "second")
    viewer = as_role(Role.VIEWER)
    everywhere = text_of(viewer, "audit_auditevent_changelist", q="named vega")
    assert "Searched in the latest 1 records" in everywhere
    of_agent = text_of(viewer, "audit_auditevent_changelist", q="named vega", agent_id__exact=str(agent_id))
    assert "named Vega" in of_agent


def test_the_chain_is_shown_to_viewers_and_verified_for_owners(
    tenant: Tenant, as_role: SignIn, superuser: psycopg.Connection[Any]
) -> None:
    viewer = as_role(Role.VIEWER)
    address = reverse("admin:audit-verification")
    record_acts(tenant, "first")
    assert "Nothing is sealed yet" in text_of(viewer, "audit-chain")
    seal()
    page = text_of(viewer, "audit-chain")
    assert 'data-seal="1"' in page
    assert address not in page
    assert viewer.post(address).status_code == 403
    with tenant_transaction(tenant.id):
        assert (
            AuditEvent.objects.get(action=AuditAction.DENIED).message
            == "was not allowed to verify the audit log"
        )
    owner = as_role(Role.OWNER)
    assert address in text_of(owner, "audit-chain")
    assert "intact" in owner.post(address).content.decode()
    superuser.execute("UPDATE audit_auditevent SET message = 'never done' WHERE message = 'first'")
    assert "of seal 1 was changed" in owner.post(address).content.decode()


def test_only_an_owner_exports_lines(tenant: Tenant, as_role: SignIn) -> None:
    record_acts(tenant, "first")
    address = reverse("admin:audit-lines")
    assert as_role(Role.OPERATOR).post(address).status_code == 403
    response = as_role(Role.OWNER).post(address)
    lines = b"".join(response).decode().splitlines()
    assert "first" in [json.loads(line)["message"] for line in lines]
    with tenant_transaction(tenant.id):
        assert AuditEvent.objects.filter(action=AuditAction.AUDIT_EXPORTED).count() == 1

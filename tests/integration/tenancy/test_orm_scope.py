"""The ORM's scope: queries without a tenant are refused, others are limited to the tenant of the scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.checks import tenant_models
from apps.tenants.models import Membership, TenantModel
from apps.tenants.scope import OPS, current_tenant, tenant_transaction, user_transaction
from arbor.errors import TenantMismatch, TenantRequired
from tests.integration.tenancy.conftest import TenantRows

ATTEMPTS: dict[str, Callable[[TenantRows], Any]] = {
    "all": lambda rows: list(Memory.objects.all()),
    "count": lambda rows: Memory.objects.count(),
    "get": lambda rows: Memory.objects.get(id=rows.memory.id),
    "filter by the tenant itself": lambda rows: list(Memory.objects.filter(tenant_id=rows.id)),
    "exists": lambda rows: Memory.objects.exists(),
    "values": lambda rows: list(Memory.objects.values("content")),
    "aggregate": lambda rows: Memory.objects.aggregate(Count("id")),
    "raw": lambda rows: list(Memory.objects.raw("SELECT * FROM memories_memory")),
    "through the operations role": lambda rows: list(Memory.objects.using(OPS)),
    "bulk update": lambda rows: Memory.objects.update(content="mine"),
    "bulk delete": lambda rows: Memory.objects.all().delete(),
    "bulk create": lambda rows: Memory.objects.bulk_create(
        [Memory(tenant_id=rows.id, agent=rows.agent, content="mine", occurred_at=timezone.now())]
    ),
    "create": lambda rows: Memory.objects.create(tenant_id=rows.id, agent=rows.agent, content="mine"),
    "get or create": lambda rows: Memory.objects.get_or_create(id=rows.memory.id),
    "save": lambda rows: rows.memory.save(),
    "refresh": lambda rows: rows.memory.refresh_from_db(),
    "a related manager": lambda rows: list(rows.agent.memories.all()),
    "a reference": lambda rows: Memory(tenant_id=rows.id, agent_id=rows.agent.id).agent,
    "a prefetch": lambda rows: list(Agent.objects.prefetch_related("memories")),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_without_a_tenant_nothing_is_queried(ours: TenantRows, attempt: Callable[[TenantRows], Any]) -> None:
    with pytest.raises(TenantRequired):
        attempt(ours)
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "the secret of acme"


@pytest.mark.parametrize("model", list(tenant_models()), ids=lambda model: model._meta.label)
def test_no_model_of_a_tenant_is_read_without_one(database: None, model: type[TenantModel]) -> None:
    with pytest.raises(TenantRequired):
        list(model._default_manager.all() if model is not Membership else Membership.objects.all())
    with pytest.raises(TenantRequired):
        list(model._base_manager.all())


def test_the_scope_of_a_user_is_no_tenant(ours: TenantRows) -> None:
    with user_transaction(1), pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_plain_transaction_is_no_tenant(ours: TenantRows) -> None:
    with transaction.atomic(), pytest.raises(TenantRequired):
        Memory.objects.count()


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(TenantRequired, match=r"tenant_transaction\(tenant_id\)"):
        current_tenant()


def test_each_tenant_reads_its_own_rows(ours: TenantRows, theirs: TenantRows) -> None:
    for rows in (ours, theirs):
        with tenant_transaction(rows.id):
            assert [memory.content for memory in Memory.objects.all()] == [f"the secret of {rows.slug}"]
            assert [agent.id for agent in Agent.objects.all()] == [rows.agent.id]


def test_a_row_of_another_tenant_is_not_found(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        with pytest.raises(Memory.DoesNotExist):
            Memory.objects.get(id=theirs.memory.id)
        assert not Memory.objects.filter(tenant_id=theirs.id).exists()
        assert list(theirs.agent.memories.all()) == []


def test_a_query_outside_the_tenant_of_its_making_finds_nothing(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        query = Memory.objects.all()
    assert list(query.all()) == []
    with tenant_transaction(theirs.id):
        assert list(query.all()) == []


def test_bulk_updates_and_deletes_stay_in_the_tenant(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        assert Memory.objects.update(content="changed") == 1
        assert Memory.objects.filter(id=theirs.memory.id).update(content="changed again") == 0
        assert Memory.objects.filter(id=theirs.memory.id).delete()[0] == 0
    with tenant_transaction(theirs.id):
        assert Memory.objects.get().content == "the secret of globex"


def test_deleting_an_instance_outside_its_tenant_deletes_nothing(
    ours: TenantRows, theirs: TenantRows
) -> None:
    # Django calls no manager here: only row-level security applies.
    assert Agent(id=ours.agent.id).delete()[0] == 0
    with tenant_transaction(theirs.id):
        assert Agent(id=ours.agent.id).delete()[0] == 0
    with tenant_transaction(ours.id):
        assert Agent.objects.get() == ours.agent


def test_a_tenant_inside_another_tenant_is_refused(ours: TenantRows, theirs: TenantRows) -> None:
    with (
        tenant_transaction(ours.id),
        pytest.raises(TenantMismatch, match=str(ours.id)),
        tenant_transaction(theirs.id),
    ):
        pass


def test_the_outer_tenant_stays_after_a_refusal(ours: TenantRows, theirs: TenantRows) -> None:
    with tenant_transaction(ours.id):
        with pytest.raises(TenantMismatch), tenant_transaction(theirs.id):
            pass
        assert current_tenant() == ours.id
        assert Memory.objects.count() == 1


def test_the_same_tenant_entered_again_joins_the_transaction(ours: TenantRows) -> None:
    with tenant_transaction(ours.id):
        with tenant_transaction(ours.id):
            Memory.objects.update(content="changed")
        transaction.set_rollback(True)
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "the secret of acme"

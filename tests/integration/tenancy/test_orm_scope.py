"""The ORM refuses queries without a tenant, and limits queries to the tenant of the scope."""

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
from tests.integration.tenancy.conftest import Home

ATTEMPTS: dict[str, Callable[[Home], Any]] = {
    "all": lambda home: list(Memory.objects.all()),
    "count": lambda home: Memory.objects.count(),
    "get": lambda home: Memory.objects.get(id=home.memory.id),
    "filter by the tenant itself": lambda home: list(Memory.objects.filter(tenant_id=home.id)),
    "exists": lambda home: Memory.objects.exists(),
    "values": lambda home: list(Memory.objects.values("content")),
    "aggregate": lambda home: Memory.objects.aggregate(Count("id")),
    "raw": lambda home: list(Memory.objects.raw("SELECT * FROM memories_memory")),
    "through the operations role": lambda home: list(Memory.objects.using(OPS)),
    "bulk update": lambda home: Memory.objects.update(content="mine"),
    "bulk delete": lambda home: Memory.objects.all().delete(),
    "bulk create": lambda home: Memory.objects.bulk_create(
        [Memory(tenant_id=home.id, agent=home.agent, content="mine", occurred_at=timezone.now())]
    ),
    "create": lambda home: Memory.objects.create(tenant_id=home.id, agent=home.agent, content="mine"),
    "get or create": lambda home: Memory.objects.get_or_create(id=home.memory.id),
    "save": lambda home: home.memory.save(),
    "refresh": lambda home: home.memory.refresh_from_db(),
    "a related manager": lambda home: list(home.agent.memories.all()),
    "a reference": lambda home: Memory(tenant_id=home.id, agent_id=home.agent.id).agent,
    "a prefetch": lambda home: list(Agent.objects.prefetch_related("memories")),
}


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_without_a_tenant_nothing_is_asked(ours: Home, attempt: Callable[[Home], Any]) -> None:
    with pytest.raises(TenantRequired):
        attempt(ours)
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "the secret of acme"


@pytest.mark.parametrize("model", list(tenant_models()), ids=lambda model: model._meta.label)
def test_every_model_of_a_tenant_refuses_to_be_read_without_one(
    database: None, model: type[TenantModel]
) -> None:
    with pytest.raises(TenantRequired):
        list(model._default_manager.all() if model is not Membership else Membership.objects.all())
    with pytest.raises(TenantRequired):
        list(model._base_manager.all())


def test_a_users_own_scope_is_no_tenant(ours: Home) -> None:
    with user_transaction(1), pytest.raises(TenantRequired):
        Memory.objects.count()


def test_a_plain_transaction_is_no_tenant(ours: Home) -> None:
    with transaction.atomic(), pytest.raises(TenantRequired):
        Memory.objects.count()


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(TenantRequired, match=r"tenant_transaction\(tenant_id\)"):
        current_tenant()


def test_each_tenant_sees_its_own(ours: Home, theirs: Home) -> None:
    for home in (ours, theirs):
        with tenant_transaction(home.id):
            assert [memory.content for memory in Memory.objects.all()] == [f"the secret of {home.slug}"]
            assert [agent.id for agent in Agent.objects.all()] == [home.agent.id]


def test_the_other_tenants_row_is_not_there(ours: Home, theirs: Home) -> None:
    with tenant_transaction(ours.id):
        with pytest.raises(Memory.DoesNotExist):
            Memory.objects.get(id=theirs.memory.id)
        assert not Memory.objects.filter(tenant_id=theirs.id).exists()
        assert list(theirs.agent.memories.all()) == []


def test_a_query_carried_out_of_its_tenant_finds_nothing(ours: Home, theirs: Home) -> None:
    with tenant_transaction(ours.id):
        query = Memory.objects.all()
    assert list(query.all()) == []
    with tenant_transaction(theirs.id):
        assert list(query.all()) == []


def test_bulk_updates_and_deletes_stay_inside(ours: Home, theirs: Home) -> None:
    with tenant_transaction(ours.id):
        assert Memory.objects.update(content="changed") == 1
        assert Memory.objects.filter(id=theirs.memory.id).update(content="stolen") == 0
        assert Memory.objects.filter(id=theirs.memory.id).delete()[0] == 0
    with tenant_transaction(theirs.id):
        assert Memory.objects.get().content == "the secret of globex"


def test_deleting_an_instance_outside_its_tenant_deletes_nothing(ours: Home, theirs: Home) -> None:
    # Django calls no manager here: only row-level security applies.
    assert Agent(id=ours.agent.id).delete()[0] == 0
    with tenant_transaction(theirs.id):
        assert Agent(id=ours.agent.id).delete()[0] == 0
    with tenant_transaction(ours.id):
        assert Agent.objects.get() == ours.agent


def test_work_for_another_tenant_inside_a_tenants_is_refused(ours: Home, theirs: Home) -> None:
    with (
        tenant_transaction(ours.id),
        pytest.raises(TenantMismatch, match=str(ours.id)),
        tenant_transaction(theirs.id),
    ):
        pass


def test_the_outer_tenants_transaction_survives_a_refusal(ours: Home, theirs: Home) -> None:
    with tenant_transaction(ours.id):
        with pytest.raises(TenantMismatch), tenant_transaction(theirs.id):
            pass
        assert current_tenant() == ours.id
        assert Memory.objects.count() == 1


def test_the_same_tenant_entered_again_joins_the_transaction(ours: Home) -> None:
    with tenant_transaction(ours.id):
        with tenant_transaction(ours.id):
            Memory.objects.update(content="changed")
        transaction.set_rollback(True)
    with tenant_transaction(ours.id):
        assert Memory.objects.get().content == "the secret of acme"

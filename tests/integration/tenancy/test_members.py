"""Memberships: each user reads their own, a tenant reads its members."""

from __future__ import annotations

import pytest
from django.db import ProgrammingError

from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import tenant_transaction, user_transaction
from apps.tenants.services import add_member, tenants_of
from tests.factories.users import UserFactory


@pytest.fixture
def ann(tenant: Tenant, other_tenant: Tenant) -> User:
    user = UserFactory(username="ann")
    add_member(tenant=tenant, user=user, role=Role.OPERATOR)
    add_member(tenant=other_tenant, user=user, role=Role.VIEWER)
    return user


@pytest.fixture
def bob(other_tenant: Tenant) -> User:
    user = UserFactory(username="bob")
    add_member(tenant=other_tenant, user=user, role=Role.OWNER)
    return user


def test_a_user_reads_their_own_memberships_only(ann: User, bob: User) -> None:
    with user_transaction(ann.pk):
        assert set(Membership.own.values_list("user_id", flat=True)) == {ann.pk}
        assert Membership.own.count() == 2
    with user_transaction(bob.pk):
        assert Membership.own.get().role == Role.OWNER


def test_without_a_user_no_membership_is_read(ann: User) -> None:
    assert not Membership.own.exists()


def test_a_user_reads_the_names_of_their_tenants_only(ann: User, bob: User) -> None:
    assert [(access.slug, access.role) for access in tenants_of(ann)] == [
        ("acme", Role.OPERATOR),
        ("globex", Role.VIEWER),
    ]
    assert [access.slug for access in tenants_of(bob)] == ["globex"]
    assert tenants_of(UserFactory()) == []
    with user_transaction(bob.pk):
        assert [tenant.slug for tenant in Tenant.objects.all()] == ["globex"]


def test_a_tenant_reads_its_members_only(ann: User, bob: User, tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        assert list(Membership.objects.values_list("user__username", flat=True)) == ["ann"]
        assert [membership.user_id for membership in Membership.own.all()] == [ann.pk]


def test_nobody_makes_themselves_a_member(bob: User, tenant: Tenant) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), user_transaction(bob.pk):
        Membership.own.bulk_create([Membership(tenant_id=tenant.id, user_id=bob.pk, role=Role.OWNER)])


def test_nobody_raises_their_own_role(ann: User) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), user_transaction(ann.pk):
        Membership.own.update(role=Role.OWNER)
    assert [access.role for access in tenants_of(ann)] == [Role.OPERATOR, Role.VIEWER]


def test_adding_a_member_again_changes_their_role(ann: User, tenant: Tenant) -> None:
    add_member(tenant=tenant, user=ann, role=Role.OWNER)
    assert [access.role for access in tenants_of(ann)] == [Role.OWNER, Role.VIEWER]

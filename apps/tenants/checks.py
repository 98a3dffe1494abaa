"""Checks that a model, and the database as it stands, keep tenants apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import connections, models

from apps.tenants.fields import WithinTenant
from apps.tenants.scope import APP


def tenant_models() -> Iterator[type[models.Model]]:
    """Return every concrete model whose rows belong to a tenant."""
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and any(field.column == "tenant_id" for field in model._meta.concrete_fields):
            yield model


def check_models(**_options: Any) -> list[CheckMessage]:
    """Refuse a tenant's model whose references or unique keys leave the tenant out."""
    own = {model._meta.label for model in tenant_models()}
    faults: list[CheckMessage] = []
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            target = getattr(field.remote_field, "model", None)
            inside = target is not None and getattr(target, "_meta", None) and target._meta.label in own
            if inside and not isinstance(field, WithinTenant):
                faults.append(
                    Error(
                        f"{field} refers to a tenant's table: make it a TenantForeignKey",
                        obj=model,
                        id="tenants.E1",
                    )
                )
            if field.unique and not field.primary_key:
                faults.append(
                    Error(
                        f"{field} is unique across tenants: use a UniqueConstraint with tenant",
                        obj=model,
                        id="tenants.E2",
                    )
                )
        for constraint in model._meta.constraints:
            if isinstance(constraint, models.UniqueConstraint) and "tenant" not in constraint.fields:
                faults.append(Error(f"{constraint.name} leaves out the tenant", obj=model, id="tenants.E3"))
    return faults


def check_database(databases: Sequence[str] | None = None, **_options: Any) -> list[CheckMessage]:
    """Refuse to serve from a role that row-level security does not bind, or with a table it does not cover."""
    if not databases or APP not in databases:
        return []
    faults = [Error(text, id="tenants.E4") for text in unsafe_role()]
    faults += [Error(text, id="tenants.E5") for text in unprotected_tables()]
    return list(faults)


def unsafe_role() -> list[str]:
    """Return why the serving role would not be bound by row-level security; empty when it is."""
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relowner = r.oid AND c.relkind = 'r' AND n.nspname = current_schema()) FROM pg_roles r WHERE rolname = current_user"
        )
        name, superuser, bypasses, owner = cursor.fetchone()
    reasons = {"is a superuser": superuser, "has BYPASSRLS": bypasses, "owns tables": owner}
    return [
        f"the serving role {name} {reason}; serve as a role of its own"
        for reason, true in reasons.items()
        if true
    ]


def unprotected_tables() -> list[str]:
    """Return each tenant's table without forced row-level security, policy, or a key that starts with the tenant.

    A tenant's table is one of a tenant's model, or one with a column `tenant_id` that no model knows.
    """
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,"
            " EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'tenant_isolation'),"
            " (SELECT a.attname FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]"
            "  WHERE k.conrelid = c.oid AND k.contype = 'p'),"
            " EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname = current_schema()"
        )
        tables = {name: found for name, *found in cursor.fetchall()}
    known = {model._meta.db_table for model in tenant_models()}
    unknown = {name for name, (*_, has_tenant) in tables.items() if has_tenant} - known
    faults = []
    for name in sorted(known | unknown):
        forced, policy, key, _ = tables.get(name, (False, False, None, False))
        remedy = (
            "run `arbor manage migrate`" if name in known else "no model knows it: give it one, or drop it"
        )
        if not forced:
            faults.append(f"{name} has no forced row-level security; {remedy}")
        if not policy:
            faults.append(f"{name} has no policy; {remedy}")
        if key != "tenant_id":
            faults.append(f"{name} has a primary key that does not start with the tenant")
    return faults

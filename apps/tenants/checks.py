"""Check that the models and the database keep tenants apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import connections, models

from apps.tenants.fields import WithinTenant
from apps.tenants.scope import APP


def tenant_models() -> Iterator[type[models.Model]]:
    """Iterate over the concrete models whose rows belong to a tenant."""
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and any(field.column == "tenant_id" for field in model._meta.concrete_fields):
            yield model


def check_models(**_options: Any) -> list[CheckMessage]:
    """Report references and unique keys of tenants' models that leave out the tenant."""
    labels = {model._meta.label for model in tenant_models()}
    faults: list[CheckMessage] = []
    for model in tenant_models():
        for field in model._meta.concrete_fields:
            target = getattr(field.remote_field, "model", None)
            refers_to_tenant_data = (
                target is not None and getattr(target, "_meta", None) and target._meta.label in labels
            )
            if refers_to_tenant_data and not isinstance(field, WithinTenant):
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
    """Report a serving role that row-level security does not bind, and tables that it does not protect."""
    if not databases or APP not in databases:
        return []
    faults = [Error(text, id="tenants.E4") for text in find_role_faults()]
    faults += [Error(text, id="tenants.E5") for text in find_table_faults()]
    return list(faults)


def find_role_faults() -> list[str]:
    """Return the reasons why row-level security does not bind the serving role; none if it does."""
    with connections[APP].cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relowner = r.oid AND c.relkind = 'r' AND n.nspname = current_schema()) FROM pg_roles r WHERE rolname = current_user"
        )
        name, superuser, bypasses, owner = cursor.fetchone()
    reasons = {"is a superuser": superuser, "has BYPASSRLS": bypasses, "owns tables": owner}
    return [
        f"the serving role {name} {reason}; serve as a role of its own"
        for reason, applies in reasons.items()
        if applies
    ]


def find_table_faults() -> list[str]:
    """Return the faults of tenants' tables: no forced row-level security, no policy, a key that does not start with the tenant.

    A tenant's table belongs to a model with a tenant, or has a column `tenant_id` without belonging to any model.
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
        tables = {name: properties for name, *properties in cursor.fetchall()}
    known = {model._meta.db_table for model in tenant_models()}
    unknown = {name for name, (*_, has_tenant) in tables.items() if has_tenant} - known
    faults = []
    for name in sorted(known | unknown):
        forced, policy, key, _ = tables.get(name, (False, False, None, False))
        remedy = (
            "run `arbor manage migrate`"
            if name in known
            else "no model has this table: add a model, or drop the table"
        )
        if not forced:
            faults.append(f"{name} has no forced row-level security; {remedy}")
        if not policy:
            faults.append(f"{name} has no policy; {remedy}")
        if key != "tenant_id":
            faults.append(f"{name} has a primary key that does not start with the tenant")
    return faults

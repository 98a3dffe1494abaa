"""Route accounts, sessions and failed sign-ins to the connection of their own role."""

from __future__ import annotations

from typing import Any

from django.db import models

from apps.tenants.scope import ACCOUNTS

#: The models of `tenants` that tell who signs in; memberships, which tell what for, are a tenant's rows.
_OF_TENANTS = frozenset({"user", "user_groups", "user_user_permissions", "consolesession", "signinfailure"})


class AccountsRouter:
    """Keeps the serving role away from passwords and sessions: they have a role that only the console and Flower use."""

    def db_for_read(self, model: type[models.Model], **_hints: Any) -> str | None:
        """Return the connection of accounts for its models; None leaves others to Django."""
        meta = model._meta
        is_account = meta.app_label == "auth" or (
            meta.app_label == "tenants" and meta.model_name in _OF_TENANTS
        )
        return ACCOUNTS if is_account else None

    db_for_write = db_for_read

    def allow_relation(self, *_objects: models.Model, **_hints: Any) -> bool:
        """Allow all: every role uses the same database."""
        return True

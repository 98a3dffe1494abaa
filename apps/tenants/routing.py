"""Route accounts, sessions and failed sign-ins to the connection of their own role."""

from __future__ import annotations

from typing import Any

from django.db import models

from apps.tenants.scope import ACCOUNTS

#: The models of `tenants` about accounts and sessions. Memberships are not among them: they are rows of a tenant.
_ACCOUNT_MODELS = frozenset(
    {"user", "user_groups", "user_user_permissions", "consolesession", "signinfailure"}
)


class AccountsRouter:
    """Reads and writes accounts by a role of their own, which workers and the API do not have: they cannot read passwords."""

    def db_for_read(self, model: type[models.Model], **_hints: Any) -> str | None:
        """Return the connection of accounts for its models; None leaves others to Django."""
        meta = model._meta
        is_account = meta.app_label == "auth" or (
            meta.app_label == "tenants" and meta.model_name in _ACCOUNT_MODELS
        )
        return ACCOUNTS if is_account else None

    db_for_write = db_for_read

    def allow_relation(self, *_objects: models.Model, **_hints: Any) -> bool:
        """Allow all: every role uses the same database."""
        return True

"""The configuration of the app `tenants`."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import Tags, register

from apps.tenants.checks import check_database, check_models


class TenantsConfig(AppConfig):
    """Registers the checks that keep tenants apart."""

    name = "apps.tenants"
    verbose_name = "Tenants"

    def ready(self) -> None:
        """Register the static checks, and those that ask the database (`check --database default`)."""
        register(check_models, Tags.models)
        register(check_database, Tags.database)

"""Django's shell, opened for one tenant."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands import shell

from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug


class Command(shell.Command):
    """Opens a shell, in a tenant's transaction if one is named; without a tenant, a query on tenant data raises TenantRequired."""

    help = "Open a Python shell. --tenant SLUG opens it in that tenant's transaction, which is committed on leaving."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the option that names the tenant."""
        super().add_arguments(parser)
        parser.add_argument("--tenant", metavar="SLUG", help="work in this tenant")

    def handle(self, **options: Any) -> None:
        """Run the shell inside the tenant's transaction, if one is named."""
        slug = options.pop("tenant")
        with ExitStack() as stack:
            if slug:
                stack.enter_context(tenant_transaction(tenant_by_slug(slug).id))
            super().handle(**options)

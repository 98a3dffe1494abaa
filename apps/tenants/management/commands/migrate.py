"""Run Django's migrate as the owner of the tables, then protect the tables of tenants."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import connections

from apps.tenants.protection import OWNER, protect


class Command(migrate.Command):
    """Migrates the database as its owner, then creates roles, privileges, policies and keys."""

    help = "Create and change the tables, then the roles and policies that keep tenants apart."

    def add_arguments(self, parser: CommandParser) -> None:
        """Migrate as the owner unless told otherwise."""
        super().add_arguments(parser)
        parser.set_defaults(database=OWNER)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then protect."""
        super().handle(*args, **options)
        if options["plan"] or options["check_unapplied"]:
            return
        new = protect()
        connections[OWNER].close()
        if new and options["verbosity"] > 0:
            self.stdout.write(f"  Protected {len(new)} new tables: {', '.join(sorted(new))}")

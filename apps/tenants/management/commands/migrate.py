"""Run Django's migrate as the owner of the tables, then protect the tables of tenants."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from apps.tenants.protection import OWNER, protect


class Command(migrate.Command):
    """Migrates the database as its owner, then creates roles, privileges, policies and keys."""

    help = "Create and change the tables, then the roles and policies that keep tenants apart."

    def add_arguments(self, parser: CommandParser) -> None:
        """Migrate as the owner unless told otherwise."""
        super().add_arguments(parser)
        parser.set_defaults(database=OWNER)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then protect. Raises CommandError for a database with a part of the migrations that one replaces."""
        _refuse_partly_replaced(options["database"])
        super().handle(*args, **options)
        if options["plan"] or options["check_unapplied"]:
            return
        new = protect()
        connections[OWNER].close()
        if new and options["verbosity"] > 0:
            self.stdout.write(f"  Protected {len(new)} new tables: {', '.join(sorted(new))}")


def _refuse_partly_replaced(alias: str) -> None:
    """Raise CommandError where Django would pass over an app: the migrations that its first one replaces are gone."""
    loader = MigrationLoader(connections[alias], replace_migrations=False)
    applied = loader.applied_migrations
    for node, migration in loader.disk_migrations.items():
        missing = [name for app, name in migration.replaces if (app, name) not in applied]
        if node not in applied and 0 < len(missing) < len(migration.replaces):
            raise CommandError(
                f"the database has a part of the migrations of {node[0]} that {node[1]} replaces, and not"
                f" {', '.join(missing)}: migrate it with a version of Arbor that has them one by one, then with this one"
            )

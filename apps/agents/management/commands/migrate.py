"""Run Django's migrate as the owner of the tables, under the installation's master key, then protect the tables of tenants."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from apps.agents.services.authority import refuse_other_master_key
from apps.tenants.protection import protect
from apps.tenants.scope import OWNER
from arbor.errors import ArborError
from arbor.quotations import counted


class Command(migrate.Command):
    """Migrates the database as its owner, then creates roles, privileges, policies and keys."""

    help = "Create and change the tables, then the roles and policies that keep tenants apart."

    def add_arguments(self, parser: CommandParser) -> None:
        """Make the owner's connection the default."""
        super().add_arguments(parser)
        parser.set_defaults(database=OWNER)

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, then protect the tables.

        Raises CommandError, before anything is changed, without the master key of this database, and if only a part of the migrations
        that a squashed one replaces is applied.
        """
        try:
            # The serving roles get passwords of this master key, which would shut out the processes that run with another one.
            refuse_other_master_key()
        except ArborError as error:
            raise CommandError(str(error)) from error
        _refuse_partly_replaced(options["database"])
        super().handle(*args, **options)
        if options["plan"] or options["check_unapplied"]:
            return
        new = protect()
        connections[OWNER].close()
        if new and options["verbosity"] > 0:
            tables = counted(len(new), "new table")
            self.stdout.write(f"  Protected {tables}: {', '.join(sorted(new))}")


def _refuse_partly_replaced(alias: str) -> None:
    """Raise CommandError if an app has tables of an earlier version, but lacks migrations that a squashed one replaces.

    Django would skip the squashed one, or fail halfway.
    """
    loader = MigrationLoader(connections[alias], replace_migrations=False)
    applied = loader.applied_migrations
    known = set(loader.disk_migrations)
    known.update(node for migration in loader.disk_migrations.values() for node in migration.replaces)
    # Migrations that this version neither contains nor replaces made the tables of a still earlier one. Others of the same app may be
    # those of a first migration that was interrupted.
    outdated = {app for app, name in applied if (app, name) not in known}
    for node, migration in loader.disk_migrations.items():
        missing = [name for app, name in migration.replaces if (app, name) not in applied]
        is_partly_applied = len(missing) < len(migration.replaces) or node[0] in outdated
        if node not in applied and missing and is_partly_applied:
            raise CommandError(
                f"{node[1]} of {node[0]} replaces migrations of which the database lacks {', '.join(missing)}; apply"
                " them with a version of Arbor that still contains them, then migrate with this one"
            )

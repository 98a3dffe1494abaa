"""Update the built-in templates in the database from the code."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.agents.services.templates import SeedChange, seed_builtin_templates


class Command(BaseCommand):
    """Seed the built-in templates; idempotent."""

    help = "Write the built-in templates into the database, and print which were new, changed, unchanged or removed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the command's options."""
        parser.add_argument(
            "--check", action="store_true", help="change nothing; exit with 1 if something would change"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        """Seed the templates; with `--check`, print what seeding would change, and raise CommandError if anything would."""
        check = bool(options["check"])
        changes = seed_builtin_templates(dry_run=check)
        stale = [name for name, change in changes.items() if change is not SeedChange.UNCHANGED]
        if options["json"]:
            self.stdout.write(json.dumps({"changes": changes, "check": check}))
        elif options["verbosity"] > 0:
            for name, change in sorted(changes.items()):
                self.stdout.write(f"  {change.value:<10} {name}")
            counts = Counter(change.value for change in changes.values())
            self.stdout.write(", ".join(f"{counts[change.value]} {change.value}" for change in SeedChange))
        if check and stale:
            raise CommandError(
                f"the database is behind the code; run seed_templates: {', '.join(sorted(stale))}",
                returncode=1,
            )

"""`arbor manage`: Django's own commands, with Arbor's settings."""

from __future__ import annotations

import importlib
import os

from django.core.management import execute_from_command_line


def manage(arguments: tuple[str, ...]) -> None:
    """Run a management command of Django: `arbor manage help` lists them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if arguments[:1] == ("migrate",) and not {"-h", "--help"}.intersection(arguments):
        # Before the serving roles get passwords of this master key, as in `arbor prepare`.
        importlib.import_module("config.cli.kit.with_django")
        importlib.import_module("apps.agents.services.authority").refuse_other_master_key()
    execute_from_command_line(["arbor manage", *arguments])

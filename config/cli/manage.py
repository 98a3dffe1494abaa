"""`arbor manage`: Django's own commands, with Arbor's settings."""

from __future__ import annotations

import os

from django.core.management import execute_from_command_line


def manage(arguments: tuple[str, ...]) -> None:
    """Run a management command of Django: `arbor manage help` lists them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    execute_from_command_line(["arbor manage", *arguments])

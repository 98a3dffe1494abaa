"""`arbor manage`: Django's own commands, with Arbor's settings."""

from __future__ import annotations

import os

import click
from django.core.management import execute_from_command_line


@click.command(
    add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manage(arguments: tuple[str, ...]) -> None:
    """Run a management command of Django: `arbor manage help` lists them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    execute_from_command_line(["arbor manage", *arguments])

"""The tree of `arbor`'s commands, walked by the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from config.cli.main import cli

ROOT = Path(__file__).parents[2]


@cache
def commands() -> dict[tuple[str, ...], click.Command]:
    """Return all commands without the groups, by path, such as `("agent", "policy", "set")`."""
    return {path: command for path, command in nodes().items() if not isinstance(command, click.Group)}


@cache
def nodes() -> dict[tuple[str, ...], click.Command]:
    """Return all commands and groups by path."""
    return dict(_iter_commands(cli, ()))


def _iter_commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from _iter_commands(member, (*path, name))


def options_of(command: click.Command) -> Iterator[tuple[str, ...]]:
    """Yield the names of each visible option; an on/off switch yields its two sides separately."""
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            yield tuple(param.opts)
            if param.secondary_opts:
                yield tuple(param.secondary_opts)

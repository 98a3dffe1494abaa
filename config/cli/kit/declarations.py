"""Commands as data, declared without Django; the module of a command's function is imported when the command is called.

A declaration names its function as `module:function` under `config.cli`. The function gets the parameters by name and returns an
`Output`, which this module prints: as JSON with `--json`, else for people. A function with a parameter `as_json` prints itself.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from rich.console import RenderableType


class ExitCode(IntEnum):
    """The exit codes of the command line."""

    #: The command is done.
    DONE = 0
    #: The command failed; the reason is on standard error.
    FAILED = 1
    #: The command line is wrong (click's own code).
    USAGE = 2
    #: The installation of this data folder runs already.
    ALREADY_RUNNING = 3
    #: Stopped by Ctrl-C (what shells expect).
    INTERRUPTED = 130


@dataclass(frozen=True)
class Output:
    """The result of a command: one object for programs, a text or table for people, and the exit code."""

    value: Mapping[str, Any]
    text: RenderableType | str
    code: ExitCode = ExitCode.DONE


class Run:
    """The function that runs a command, imported when the command is called."""

    def __init__(self, target: str, *, needs_django: bool) -> None:
        self.target = target
        self.needs_django = needs_django

    def load(self) -> Callable[..., Any]:
        """Import the function's module, after setting Django up if it is needed, and return the function."""
        if self.needs_django:
            importlib.import_module("config.cli.kit.with_django")
        module, _, name = self.target.partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(f"config.cli.{module}"), name)
        return function

    def __call__(self, **parameters: Any) -> int:
        """Run the function and print its output; return the exit code."""
        function = self.load()
        as_json = parameters.pop("as_json", False)
        if "as_json" in inspect.signature(function).parameters:
            parameters["as_json"] = as_json
        output = function(**parameters)
        if not isinstance(output, Output):
            return int(output or ExitCode.DONE)
        # Imported here, because rich takes a tenth of a second.
        importlib.import_module("config.cli.kit.output").show(output.value, as_json=as_json, text=output.text)
        return output.code


class PassedArguments(click.Command):
    """A command that passes everything after its name on, `--help` included."""

    allow_interspersed_args = False
    ignore_unknown_options = True


def option(*names: str, **attributes: Any) -> click.Option:
    """Return an option; a Python name that differs from the `--long` name follows it, as in `click.option`.

    The help shows a default that is not empty, unless `show_default` is False.
    """
    if attributes.get("default"):
        attributes.setdefault("show_default", True)
    return click.Option(names, **attributes)


def argument(name: str, **attributes: Any) -> click.Argument:
    """Return a positional argument."""
    return click.Argument([name], **attributes)


def is_given(name: str) -> bool:
    """Return whether an option was typed; `name` is its parameter."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def one_of(values: type[Enum] | Sequence[str]) -> click.Choice[str]:
    """Return the choice among the values of an enumeration, or among texts."""
    return click.Choice([value.value if isinstance(value, Enum) else value for value in values])


def tenant_option() -> click.Option:
    """Return `--tenant`."""
    return option(
        "--tenant",
        "tenant_slug",
        metavar="SLUG",
        help="The tenant.  [default: ARBOR_TENANT, the only tenant, or the only one that has what is named]",
    )


def command(
    name: str,
    summary: str,
    *params: click.Parameter,
    run: str,
    details: str = "",
    examples: Sequence[str] = (),
    json: bool = True,
    needs_django: bool = True,
) -> click.Command:
    """Return a command; `summary` is its line in the overview of its group, `run` its function."""
    options = [option("--json", "as_json", is_flag=True, help="Print one JSON object.")] if json else []
    return click.Command(
        name,
        callback=Run(run, needs_django=needs_django),
        params=[*params, *options],
        help=_help(summary, details, examples),
        short_help=_first_clause(summary),
    )


def tenant_command(name: str, summary: str, *params: click.Parameter, **attributes: Any) -> click.Command:
    """Return a command about one tenant, or one row of it, with `--tenant`."""
    return command(name, summary, *params, tenant_option(), **attributes)


def agent_command(name: str, summary: str, *params: click.Parameter, **attributes: Any) -> click.Command:
    """Return a command about one agent: AGENT comes before its own arguments, `--tenant` after its own options."""
    return tenant_command(name, summary, argument("agent"), *params, **attributes)


def group(name: str, summary: str, *commands: click.Command, details: str = "") -> click.Group:
    """Return a group of commands, listed in the order given."""
    click_group = _OrderedGroup(name, help=_help(summary, details, ()), short_help=_first_clause(summary))
    for member in commands:
        click_group.add_command(member)
    return click_group


class _OrderedGroup(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in order."""
        return list(self.commands)


def _first_clause(summary: str) -> str:
    """Return the first clause, for the overview of a group."""
    return re.split(r"[.;:] ", f"{summary} ", maxsplit=1)[0].rstrip(".") + "."


def _help(summary: str, details: str, examples: Sequence[str]) -> str:
    parts = [summary, details] if details else [summary]
    if examples:
        lines = "\n".join(f"  {example}" for example in examples)
        parts.append(f"\b\n{'Examples' if len(examples) > 1 else 'Example'}:\n{lines}")
    return "\n\n".join(parts)

"""Run benchmarks as commands on temporary servers, and print their figures."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import django

from bench.support.figures import print_progress, table
from bench.support.installation import Installation
from bench.support.stub_process import RunningStub
from config.interpreter import this_interpreter

#: Settings of the database that record each statement.
_STATISTICS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "1000",
    "pg_stat_statements.track_planning": "on",
}
#: A benchmark that sets this figure to False found a fault; the command then ends with exit code 1.
EXACTLY_ONCE = "exactly_once"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Measure Arbor. Each benchmark sets up its own servers and data, and removes them.

    Progress goes to standard error; with --json, the last line of standard output is one JSON object.
    """


def benchmark_command(command: Callable[..., dict[str, Any]]) -> click.Command:
    """Turn a function that returns figures into a command that prints them."""

    def run(as_json: bool, **options: Any) -> None:
        python = this_interpreter()
        figures = {"benchmark": command.__name__, "python": asdict(python), **command(**options)}
        if as_json:
            click.echo(json.dumps(figures))
        else:
            _print({**figures, "python": str(python)})
        if figures.get(EXACTLY_ONCE) is False:
            sys.exit(1)

    click_command = click.command(name=command.__name__, help=command.__doc__)(run)
    click_command.params[:0] = getattr(command, "__click_params__", [])[::-1]
    click_command.params.append(
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
    )
    cli.add_command(click_command)
    return click_command


def _print(figures: dict[str, Any]) -> None:
    for name in [name for name, value in figures.items() if isinstance(value, dict)]:
        del figures[name]  # nested figures are printed as JSON only
    tables = {name: figures.pop(name) for name in list(figures) if isinstance(figures[name], list)}
    width = max(map(len, figures))
    for name, value in figures.items():
        click.echo(f"{name:<{width}}  {value}")
    for name, rows in tables.items():
        click.echo(f"\n{name}\n{table(rows)}")


def stub_settings(stub: RunningStub) -> dict[str, str]:
    """Return the settings that make the stub the agents' model."""
    return {
        "OPENAI_BASE_URL": stub.base_url,
        "ARBOR_DEFAULT_MODEL": "openai/stub",
        # The limit of a hosted provider: that of a server on this machine would be lower.
        "ARBOR_PROVIDER_CALLS": "openai=1000",
    }


def measure_on_servers(
    module: str,
    *,
    settings: Mapping[str, str] | None = None,
    durable: bool = True,
    database_folder: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run `measure` of the module on an installation of its own, whose database stays in `database_folder`, if given."""
    # Prepared statements, as in workers.
    all_settings = {"ARBOR_PREPARED_STATEMENTS": "true", **(settings or {})}
    with Installation(
        settings=all_settings,
        postgres_settings=_STATISTICS,
        durable=durable,
        database_folder=database_folder,
        print_progress=print_progress,
    ) as installation:
        installation.enter_environment()
        os.environ.setdefault("ARBOR_LOG_LEVEL", "WARNING")
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        # Settings, and modules that need them, are read only now that the servers' addresses are known.
        django.setup()
        print_progress("migrating")
        importlib.import_module("bench.support.database").migrate()
        figures: dict[str, Any] = importlib.import_module(module).measure(installation, **options)
        print_progress("cleaning up")
    return figures

"""`python -m bench NAME`: what is fast, measured on servers of its own, which are gone afterwards."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import django

from bench.figures import table
from bench.installation import Installation
from bench.progress import say
from bench.stub_process import RunningStub, stub_model
from config.interpreter import this_interpreter

#: What each statement cost, by the database's own account.
_STATISTICS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "1000",
    "pg_stat_statements.track_planning": "on",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Measure Arbor. Each benchmark sets up its own servers and data, and removes them.

    Progress goes to standard error; with --json, the last line of standard output is one JSON object.
    """


def _measured(command: Callable[..., dict[str, Any]]) -> click.Command:
    """Make a command of a measurement: it prints the figures."""

    def run(as_json: bool, **options: Any) -> None:
        python = this_interpreter()
        figures = {"benchmark": command.__name__, "python": asdict(python), **command(**options)}
        if as_json:
            click.echo(json.dumps(figures))
            return
        figures["python"] = str(python)
        for name in [name for name, value in figures.items() if isinstance(value, dict)]:
            del figures[name]  # one benchmark's within another's: in JSON
        tables = {name: figures.pop(name) for name in list(figures) if isinstance(figures[name], list)}
        width = max(map(len, figures))
        for name, value in figures.items():
            click.echo(f"{name:<{width}}  {value}")
        for name, rows in tables.items():
            click.echo(f"\n{name}\n{table(rows)}")

    made = click.command(name=command.__name__, help=command.__doc__)(run)
    made.params[:0] = getattr(command, "__click_params__", [])[::-1]
    made.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."))
    cli.add_command(made)
    return made


@_measured
@click.option("--agents", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--tenants", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Measured at least, after the warm-up, in whole rounds.",
)
@click.option("--beats", type=click.IntRange(min=1), help="Measure until so many beats are done, instead.")
@click.option(
    "--latency-ms", type=click.FloatRange(min=0), default=0.0, show_default=True, help="Of the stub model."
)
@click.option(
    "--memories",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of each agent, at the start.",
)
@click.option(
    "--not-durable",
    is_flag=True,
    help="Let the servers write as those of the tests do: without waiting for the disk.",
)
def heartbeats(latency_ms: float, not_durable: bool, **options: Any) -> dict[str, Any]:
    """Complete heartbeats per second: real dispatcher, workers and beat, and a stub in the model's place."""
    with stub_model(latency_s=latency_ms / 1000) as stub:
        return _on_servers(
            "bench.heartbeats",
            settings=_asking(stub),
            durable=not not_durable,
            stub=stub,
            latency_ms=latency_ms,
            **options,
        )


@_measured
@click.option("--agents", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--tenants", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--beats", type=click.IntRange(min=1), default=200, show_default=True, help="In whole rounds.")
@click.option(
    "--memories",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of each agent, at the start.",
)
def profile(**options: Any) -> dict[str, Any]:
    """Where a heartbeat's own work goes: processor time by leg, node, statement and function, in one process."""
    with stub_model() as stub:
        return _on_servers("bench.profile", settings=_asking(stub), **options)


@_measured
@click.option(
    "--memories", type=click.IntRange(min=1), default=10_000, show_default=True, help="Of each agent."
)
@click.option("--agents", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--queries", type=click.IntRange(min=10), default=300, show_default=True)
@click.option(
    "--clients", type=click.IntRange(min=1), default=16, show_default=True, help="Recalling at once."
)
def recall(**options: Any) -> dict[str, Any]:
    """One recall, end to end: by the index alone, and side by side the same query through the table."""
    return _on_servers("bench.recall", **options)


@_measured
@click.option("--memories", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--batch", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--agents", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--alone", is_flag=True, help="Facts in no session, each compared with all that are there.")
def store(**options: Any) -> dict[str, Any]:
    """Memories stored per second, embedded and indexed, in batches."""
    return _on_servers("bench.store", **options)


@_measured
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Dialogs in LoCoMo's JSON.",
)
@click.option(
    "--tune", "tuned", is_flag=True, help="Also with each weight removed, halved and doubled (a minute more)."
)
@click.option(
    "--related", is_flag=True, help="Let the agents have related the pieces of evidence of each question."
)
def locomo(**options: Any) -> dict[str, Any]:
    """Evidence recall on real dialogs, one agent for each, with no language model."""
    return _on_servers("bench.locomo", **options)


@_measured
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Dialogs in LoCoMo's JSON.",
)
@click.option(
    "--agents",
    type=click.IntRange(min=10),
    default=100,
    show_default=True,
    help="Of the recall, with 10,000 memories each.",
)
def memory(**options: Any) -> dict[str, Any]:
    """The memory engine against its bars: recall, store, neighborhoods and locomo, one after another."""
    return importlib.import_module("bench.memory").measure(**options)  # type: ignore[no-any-return]


@_measured
@click.option("--memories", type=click.IntRange(min=1), default=10_000, show_default=True)
def neighborhoods(**options: Any) -> dict[str, Any]:
    """Neighborhoods computed per second, of one agent with so many memories."""
    return _on_servers("bench.neighborhoods", **options)


@_measured
@click.option(
    "--memories", type=click.IntRange(min=1), default=10_000, show_default=True, help="Of each agent."
)
@click.option("--agents", type=click.IntRange(min=1), default=10, show_default=True)
def reembed(**options: Any) -> dict[str, Any]:
    """Moving one agent to vectors of another length: how long, and what recall costs before, meanwhile, afterwards."""
    return _on_servers("bench.reembed", **options)


@_measured
@click.option("--agents", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--tenants", type=click.IntRange(min=1), default=20, show_default=True)
def dispatch(**options: Any) -> dict[str, Any]:
    """The dispatcher: a tick when nobody is due, and claims per second when all are."""
    return _on_servers("bench.dispatch", **options)


@_measured
@click.option("--rounds", type=click.IntRange(min=10), default=200, show_default=True)
def runtime(**options: Any) -> dict[str, Any]:
    """The Python API: loading a full agent, storing its working memory, one tick in this process."""
    return _on_servers("bench.runtime", **options)


@_measured
@click.option("--rounds", type=click.IntRange(min=10), default=2_000, show_default=True)
def goals(**options: Any) -> dict[str, Any]:
    """Goal prioritization: a full backlog put in order, without a database."""
    return importlib.import_module("bench.goals").measure(**options)  # type: ignore[no-any-return]


def _asking(stub: RunningStub) -> dict[str, str]:
    """Return the settings that put the stub in the model's place."""
    return {"OPENAI_BASE_URL": stub.base_url, "ARBOR_DEFAULT_MODEL": "openai/stub"}


def _on_servers(
    module: str, *, settings: Mapping[str, str] | None = None, durable: bool = True, **options: Any
) -> dict[str, Any]:
    """Run `measure` of the module on an installation of its own."""
    # Measured as workers run it.
    wishes = {"ARBOR_PREPARED_STATEMENTS": "true", **(settings or {})}
    with Installation(settings=wishes, postgres_settings=_STATISTICS, durable=durable, say=say) as place:
        os.environ.update(place.env)
        os.environ.setdefault("ARBOR_LOG_LEVEL", "WARNING")
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        # The settings are read now, when the servers are named; so are the modules that need them.
        django.setup()
        say("migrating")
        importlib.import_module("bench.database").migrate()
        figures: dict[str, Any] = importlib.import_module(module).measure(place, **options)
        say("cleaning up")
    return figures


def main() -> None:
    """Run; a polite kill cleans up as Ctrl-C does."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        cli.main(prog_name="python -m bench", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)


if __name__ == "__main__":
    main()

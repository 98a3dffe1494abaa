"""`python -m bench NAME`: benchmarks on temporary servers."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bench import kill_plan
from bench.support.runner import benchmark_command, cli, measure_on_servers, stub_settings
from bench.support.stub_model import Mode
from bench.support.stub_process import stub_model

DIALOGS = click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Dialogs in LoCoMo's JSON.",
)


def integer(name: str, default: int, *, least: int = 1, help: str = "") -> Callable[[Any], Any]:  # noqa: A002
    """Return an option for a whole number, shown with its default."""
    return click.option(
        name, type=click.IntRange(min=least), default=default, show_default=True, help=help or None
    )


def number(name: str, default: float, *, least: float = 0, help: str = "") -> Callable[[Any], Any]:  # noqa: A002
    """Return an option for a number, shown with its default."""
    return click.option(
        name, type=click.FloatRange(min=least), default=default, show_default=True, help=help or None
    )


@benchmark_command
@integer("--agents", 500)
@integer("--tenants", 5)
@number("--seconds", 30.0, least=1, help="Least measured time, after the warm-up, in whole rounds.")
@click.option(
    "--heartbeats",
    type=click.IntRange(min=1),
    help="Measure until this number of heartbeats has ended, instead.",
)
@number("--latency-ms", 0.0, help="Latency of the stub model.")
@integer("--memories", 0, least=0, help="Memories of each agent at the start.")
@integer("--warm-up", 1, help="Heartbeats of each agent before the measurement.")
@integer("--lone", 50, help="Heartbeats measured at the end, one at a time without load.")
@click.option(
    "--not-durable",
    is_flag=True,
    help="Let the servers write without waiting for the disk, like those of the tests.",
)
def heartbeats(latency_ms: float, not_durable: bool, **options: Any) -> dict[str, Any]:
    """Complete heartbeats per second, with real dispatcher, workers and scheduler and a stub model."""
    with stub_model(latency_s=latency_ms / 1000) as stub:
        return measure_on_servers(
            "bench.heartbeats",
            settings=stub_settings(stub),
            durable=not not_durable,
            stub=stub,
            latency_ms=latency_ms,
            **options,
        )


@benchmark_command
@integer("--calls", 1_500, least=20, help="Pending calls at the start.")
@integer("--threads", 500, help="Tasks at once in the process (ARBOR_MODEL_THREADS).")
@number("--latency-s", 5.0, help="Latency of the stub model.")
def calls(threads: int, latency_s: float, **options: Any) -> dict[str, Any]:
    """Model calls waiting at once in one model worker process, and its memory, connections and rate."""
    with stub_model(latency_s=latency_s) as stub:
        settings = {**stub_settings(stub), "ARBOR_MODEL_THREADS": str(threads)}
        return measure_on_servers(
            "bench.calls", settings=settings, stub=stub, threads=threads, latency_s=latency_s, **options
        )


@benchmark_command
@integer("--kills", 1_000)
@integer("--agents", 24)
@integer("--tenants", 3)
@number("--latency-ms", 50.0, help="Latency of the stub model.")
@number("--gap-s", 0.8, least=0.01, help="Mean time between two kills.")
@integer("--crash-every", 100, least=0, help="Kills between two crashes of the database server; 0: none.")
@integer("--flush-every", 50, least=0, help="Kills between two losses of all data of the broker; 0: none.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the kills' order and times.")
def kills(latency_ms: float, **options: Any) -> dict[str, Any]:
    """Lost and doubled work when processes get SIGKILL at random moments; exit code 1 if there is any."""
    with stub_model(latency_s=latency_ms / 1000, mode=Mode.WRITE) as stub:
        return measure_on_servers(
            "bench.kills", settings={**stub_settings(stub), **kill_plan.SETTINGS}, **options
        )


@benchmark_command
@integer("--agents", 10)
@integer("--tenants", 2)
@integer("--heartbeats", 200, help="Heartbeats measured, in whole rounds.")
@integer("--memories", 0, least=0, help="Memories of each agent at the start.")
@click.option(
    "--batch", type=click.IntRange(1, 8), default=8, show_default=True, help="Heartbeats run together."
)
@integer(
    "--warm-up",
    6,
    help="Rounds before the measurement, to fill caches, prepare statements and go through all modes.",
)
def profile(**options: Any) -> dict[str, Any]:
    """Processor time of a heartbeat by leg, node, need, statement and function, in one process."""
    with stub_model() as stub:
        return measure_on_servers("bench.profile", settings=stub_settings(stub), **options)


@benchmark_command
@integer("--agents", 200)
@click.option(
    "--batch", type=click.IntRange(1, 100), default=20, show_default=True, help="Agents created together."
)
@integer("--rounds", 2_000, least=10, help="Actions that are authorized.")
@integer("--memories", 10_000, help="Memories of the agent that is exported and imported.")
def identity(**options: Any) -> dict[str, Any]:
    """Agents created per second, the authorization of one action, and the export and import of a seed."""
    return measure_on_servers("bench.identity", **options)


@benchmark_command
@integer("--memories", 10_000, help="Memories of each agent.")
@integer("--agents", 100)
@integer("--queries", 300, least=10)
@integer("--clients", 16, help="Clients that recall at once.")
def recall(**options: Any) -> dict[str, Any]:
    """The duration of one recall: with the mind cache, by the index, and through the table."""
    return measure_on_servers("bench.recall", **options)


@benchmark_command
@integer("--memories", 20_000)
@integer("--batch", 500)
@integer("--agents", 4)
@click.option(
    "--alone",
    is_flag=True,
    help="Store facts outside of sessions, each of which is compared with all others.",
)
def store(**options: Any) -> dict[str, Any]:
    """Memories stored per second, embedded and indexed, in batches."""
    return measure_on_servers("bench.store", **options)


@benchmark_command
@DIALOGS
@click.option(
    "--tune", "tuned", is_flag=True, help="Also with each weight removed, halved and doubled (a minute more)."
)
@click.option("--related", is_flag=True, help="Relate the evidence of each question before asking.")
def locomo(**options: Any) -> dict[str, Any]:
    """Evidence recall on real dialogs, one agent for each, with no language model."""
    return measure_on_servers("bench.locomo", **options)


@benchmark_command
@DIALOGS
@integer("--agents", 100, least=10, help="Agents of the recall, with 10,000 memories each.")
def memory(**options: Any) -> dict[str, Any]:
    """The memory engine against its bars: recall, store, neighborhoods and locomo, one after another."""
    return importlib.import_module("bench.memory").measure(**options)  # type: ignore[no-any-return]


@benchmark_command
@integer("--chunks", 100_000, least=100, help="Passages of all tenants.")
@integer("--tenants", 50, help="Their sizes follow Zipf's law.")
@integer("--queries", 20, least=5, help="Searches of each tenant.")
def knowledge(**options: Any) -> dict[str, Any]:
    """Passages stored per second, and searches in tenants of different sizes compared with brute force."""
    return measure_on_servers("bench.knowledge", **options)


@benchmark_command
@integer("--memories", 10_000)
def neighborhoods(**options: Any) -> dict[str, Any]:
    """Neighborhoods computed per second, for one agent."""
    return measure_on_servers("bench.neighborhoods", **options)


@benchmark_command
@integer("--memories", 10_000, help="Memories of each agent.")
@integer("--agents", 10)
def reembed(**options: Any) -> dict[str, Any]:
    """The time to move one agent to vectors of another length, and the cost of recall before, meanwhile and afterwards."""
    return measure_on_servers("bench.reembed", **options)


@benchmark_command
@integer("--agents", 100_000)
@integer("--tenants", 20)
def dispatch(**options: Any) -> dict[str, Any]:
    """The dispatcher: an idle run, and claims per second with all agents due."""
    return measure_on_servers("bench.dispatch", **options)


@benchmark_command
@integer("--rounds", 200, least=10)
def runtime(**options: Any) -> dict[str, Any]:
    """The Python API: loading a full agent, storing its working memory, one tick in this process."""
    return measure_on_servers("bench.runtime", **options)


@benchmark_command
@integer("--agents", 20)
@integer("--memories", 1_000, help="Memories of each agent.")
@integer("--queries", 400, least=20)
@integer("--clients", 4, help="Clients that recall at once.")
@number("--seconds", 10.0, least=1, help="Time that they recall.")
@integer("--streams", 500, help="Streams of signals of one tenant, opened in one process.")
@integer("--signals", 10, help="Signals sent to all streams, one after another.")
def api(streams: int, **options: Any) -> dict[str, Any]:
    """The API's process: what HTTP adds to a recall, requests per second, and open streams of signals."""
    return measure_on_servers(
        "bench.api",
        settings={"ARBOR_API_PER_MINUTE": "0", "ARBOR_API_STREAMS": str(streams)},
        streams=streams,
        **options,
    )


@benchmark_command
@integer("--agents", 100_000, least=5)
@integer("--tenants", 20, help="The first one has half of the agents.")
@integer("--heartbeats", 1_000_000, help="Heartbeats of all agents.")
@integer(
    "--busy-heartbeats", 5_000, least=0, help="Further heartbeats of the agent whose pages are requested."
)
@integer("--rounds", 5, help="Requests of each page that count.")
@click.option(
    "--data",
    "database_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="A folder for the database, which stays there for later runs; without it, the database is removed.",
)
def console(**options: Any) -> dict[str, Any]:
    """The time of each page of the console and each reading operation of the API, with many agents."""
    # The default of the process that serves pages.
    return measure_on_servers(
        "bench.console", settings={"ARBOR_PREPARED_STATEMENTS": "false"}, durable=False, **options
    )


@benchmark_command
@integer("--rounds", 2_000, least=10)
def goals(**options: Any) -> dict[str, Any]:
    """Goal prioritization of a full backlog, without a database."""
    return importlib.import_module("bench.goals").measure(**options)  # type: ignore[no-any-return]


def main() -> None:
    """Run the command line; SIGTERM cleans up like Ctrl-C."""
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

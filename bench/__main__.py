"""`python -m bench NAME`: benchmarks on temporary servers."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path
from typing import Any

import click

from bench import kill_plan
from bench.runner import asking, cli, measured, on_servers
from bench.stub_model import Mode
from bench.stub_process import stub_model


@measured
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
    "--warm-up",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Beats of each agent before anything is measured.",
)
@click.option(
    "--lone",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Beats measured at the end, one at a time without load.",
)
@click.option(
    "--not-durable",
    is_flag=True,
    help="Let the servers write as those of the tests do: without waiting for the disk.",
)
def heartbeats(latency_ms: float, not_durable: bool, **options: Any) -> dict[str, Any]:
    """Complete heartbeats per second, with real dispatcher, workers and scheduler and a stub model."""
    with stub_model(latency_s=latency_ms / 1000) as stub:
        return on_servers(
            "bench.heartbeats",
            settings=asking(stub),
            durable=not not_durable,
            stub=stub,
            latency_ms=latency_ms,
            **options,
        )


@measured
@click.option(
    "--calls", type=click.IntRange(min=20), default=1_500, show_default=True, help="Pending at the start."
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Tasks at once in the process (ARBOR_MODEL_THREADS).",
)
@click.option(
    "--latency-s", type=click.FloatRange(min=0), default=5.0, show_default=True, help="Of the stub model."
)
def calls(threads: int, latency_s: float, **options: Any) -> dict[str, Any]:
    """Model calls waiting at once in one model worker process, and its memory, connections and rate."""
    with stub_model(latency_s=latency_s) as stub:
        settings = {**asking(stub), "ARBOR_MODEL_THREADS": str(threads)}
        return on_servers(
            "bench.calls", settings=settings, stub=stub, threads=threads, latency_s=latency_s, **options
        )


@measured
@click.option("--kills", type=click.IntRange(min=1), default=1_000, show_default=True)
@click.option("--agents", type=click.IntRange(min=1), default=24, show_default=True)
@click.option("--tenants", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--latency-ms", type=click.FloatRange(min=0), default=50.0, show_default=True, help="Of the stub model."
)
@click.option(
    "--gap-s",
    type=click.FloatRange(min=0.01),
    default=0.8,
    show_default=True,
    help="Between two kills, mean.",
)
@click.option(
    "--crash-every",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="Kills between two crashes of the database server; 0: none.",
)
@click.option(
    "--flush-every",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Kills between two losses of all that the broker has; 0: none.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the kills' order and moments.")
def kills(latency_ms: float, **options: Any) -> dict[str, Any]:
    """Lost and doubled work when processes get SIGKILL at random moments; exit code 1 if there is any."""
    with stub_model(latency_s=latency_ms / 1000, mode=Mode.WRITE) as stub:
        return on_servers("bench.kills", settings={**asking(stub), **kill_plan.SETTINGS}, **options)


@measured
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
@click.option(
    "--batch", type=click.IntRange(1, 8), default=8, show_default=True, help="Heartbeats walked together."
)
def profile(**options: Any) -> dict[str, Any]:
    """Processor time of a heartbeat by leg, node, need, statement and function, in one process."""
    with stub_model() as stub:
        return on_servers("bench.profile", settings=asking(stub), **options)


@measured
@click.option(
    "--memories", type=click.IntRange(min=1), default=10_000, show_default=True, help="Of each agent."
)
@click.option("--agents", type=click.IntRange(min=1), default=100, show_default=True)
@click.option("--queries", type=click.IntRange(min=10), default=300, show_default=True)
@click.option(
    "--clients", type=click.IntRange(min=1), default=16, show_default=True, help="Recalling at once."
)
def recall(**options: Any) -> dict[str, Any]:
    """One recall, end to end: with the mind cache, by the index, and by the table."""
    return on_servers("bench.recall", **options)


@measured
@click.option("--memories", type=click.IntRange(min=1), default=20_000, show_default=True)
@click.option("--batch", type=click.IntRange(min=1), default=500, show_default=True)
@click.option("--agents", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--alone", is_flag=True, help="Facts in no session, each compared with all that are there.")
def store(**options: Any) -> dict[str, Any]:
    """Memories stored per second, embedded and indexed, in batches."""
    return on_servers("bench.store", **options)


@measured
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
    return on_servers("bench.locomo", **options)


@measured
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


@measured
@click.option("--memories", type=click.IntRange(min=1), default=10_000, show_default=True)
def neighborhoods(**options: Any) -> dict[str, Any]:
    """Neighborhoods computed per second, for one agent."""
    return on_servers("bench.neighborhoods", **options)


@measured
@click.option(
    "--memories", type=click.IntRange(min=1), default=10_000, show_default=True, help="Of each agent."
)
@click.option("--agents", type=click.IntRange(min=1), default=10, show_default=True)
def reembed(**options: Any) -> dict[str, Any]:
    """Moving one agent to vectors of another length: how long, and what recall costs before, meanwhile, afterwards."""
    return on_servers("bench.reembed", **options)


@measured
@click.option("--agents", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--tenants", type=click.IntRange(min=1), default=20, show_default=True)
def dispatch(**options: Any) -> dict[str, Any]:
    """The dispatcher: an idle run, and claims per second with all agents due."""
    return on_servers("bench.dispatch", **options)


@measured
@click.option("--rounds", type=click.IntRange(min=10), default=200, show_default=True)
def runtime(**options: Any) -> dict[str, Any]:
    """The Python API: loading a full agent, storing its working memory, one tick in this process."""
    return on_servers("bench.runtime", **options)


@measured
@click.option("--rounds", type=click.IntRange(min=10), default=2_000, show_default=True)
def goals(**options: Any) -> dict[str, Any]:
    """Goal prioritization of a full backlog, without a database."""
    return importlib.import_module("bench.goals").measure(**options)  # type: ignore[no-any-return]


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

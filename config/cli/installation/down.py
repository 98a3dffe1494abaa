"""Stop a running `arbor up` from another terminal."""

from __future__ import annotations

import contextlib
import time

import click
import psutil

from arbor.errors import ServerError
from config.environment import data_dir
from config.supervisor.run_folder import RunFolder, end_orphans, find_orphans

#: The supervisor needs at most 5 s for each of three layers of parts, and 2 s for orphans.
STOPPED_WITHIN_S = 20


def down() -> None:
    """Stop what `arbor up` runs from this data folder, and the processes that a killed `arbor up` left. Raises ServerError for those that survive."""
    supervisor = RunFolder(data_dir()).supervisor()
    if supervisor is not None:
        # It may have ended in this moment, by Ctrl-C in its terminal.
        with contextlib.suppress(psutil.NoSuchProcess):
            supervisor.terminate()
        _wait(supervisor)
    orphans = find_orphans(data_dir())
    end_orphans(orphans)
    if survivors := find_orphans(data_dir()):
        named = ", ".join(str(process.pid) for process in survivors)
        raise ServerError(f"Arbor has not stopped: of {data_dir()}, these processes still run: {named}")
    if supervisor is None and not orphans:
        click.echo(f"Arbor does not run from {data_dir()}.")
    else:
        click.echo("Arbor has stopped.")


def _wait(supervisor: psutil.Process) -> None:
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while _is_running(supervisor):
        if time.monotonic() > deadline:
            raise ServerError(
                f"Arbor (process {supervisor.pid}) does not stop; `kill -9 {supervisor.pid}` ends it"
            )
        time.sleep(0.05)


def _is_running(process: psutil.Process) -> bool:
    # A process that has ended is a zombie until its parent waits for it, which some parents never do.
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

"""`arbor web`: the console, served by gunicorn."""

from __future__ import annotations

import os
from typing import Any

import click
from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app

from config.cli.serving_role import refuse_unsafe_role

#: Pages are short and wait for the database, so threads serve them; a second process only for its second core.
THREADS = 8
#: A page that takes longer has hung; its process is replaced.
LONGEST_REQUEST_S = 60
FINISH_WITHIN_S = 4


class Console(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured by the command's options."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Hand the options to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Load the application in the process that serves it."""
        return import_app("config.wsgi:application")


@click.command()
@click.option("--host", envvar="ARBOR_WEB_HOST", default="127.0.0.1", show_default=True)
@click.option("--port", envvar="ARBOR_WEB_PORT", default=8000, show_default=True)
@click.option(
    "--processes", envvar="ARBOR_WEB_PROCESSES", type=click.IntRange(min=1), default=1, show_default=True
)
def web(host: str, port: int, processes: int) -> None:
    """Run the console."""
    os.environ["ARBOR_PROCESS_NAME"] = "arbor web"
    refuse_unsafe_role()
    Console(
        {
            "bind": f"{host}:{port}",
            "workers": processes,
            "worker_class": "gthread",
            "threads": THREADS,
            "timeout": LONGEST_REQUEST_S,
            "graceful_timeout": FINISH_WITHIN_S,
            "loglevel": "warning",
            "control_socket_disable": True,
        }
    ).run()

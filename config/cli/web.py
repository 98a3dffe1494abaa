"""Run the console with gunicorn."""

from __future__ import annotations

import os
from typing import Any

from gunicorn.app.base import BaseApplication
from gunicorn.util import import_app

from config.cli.serving_role import refuse_unsafe_role
from config.cli.web_worker import BufferingWorker
from config.process_secrets import remove_foreign_secrets, secrets_of

#: Threads per process. Pages mostly wait for the database, so a second process only adds a second CPU core.
THREADS = 8
#: The seconds after which gunicorn replaces a process that does not report itself as alive.
WORKER_TIMEOUT_S = 60
#: The seconds in which open requests can finish when the console stops.
GRACEFUL_TIMEOUT_S = 4


class Console(BaseApplication):  # type: ignore[misc]
    """A gunicorn server with settings from the command's options instead of a file."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Pass the settings to gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Import the WSGI application, in the process that serves it."""
        return import_app("config.wsgi:application")


def web(host: str, port: int, processes: int) -> None:
    """Run the console."""
    remove_foreign_secrets(secrets_of("web"))
    os.environ["ARBOR_PROCESS_NAME"] = "arbor web"
    refuse_unsafe_role()
    serve(host=host, port=port, processes=processes)


def serve(*, host: str, port: int, processes: int) -> None:
    """Run gunicorn until a signal ends it."""
    Console(
        {
            "bind": f"{host}:{port}",
            "workers": processes,
            "worker_class": BufferingWorker,
            "threads": THREADS,
            "timeout": WORKER_TIMEOUT_S,
            "graceful_timeout": GRACEFUL_TIMEOUT_S,
            "loglevel": "warning",
            "control_socket_disable": True,
        }
    ).run()

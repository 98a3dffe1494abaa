"""Run the console by gunicorn."""

from __future__ import annotations

import os
from typing import Any

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

"""Run Flower, read-only, for superusers."""

from __future__ import annotations

import base64
import importlib
import logging
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from celery import Celery
from flower.app import Flower
from flower.urls import settings as urls_settings
from flower.views.error import NotFoundErrorHandler
from tornado.httputil import HTTPServerRequest
from tornado.options import options
from tornado.web import RequestHandler

from arbor.errors import ServerError
from config.cli.installation.celery_process import load_app
from config.process_secrets import remove_foreign_secrets, secrets_of

#: The tasks in Flower's memory: five minutes of a large fleet. The history is in the database.
REMEMBERED_TASKS = 20_000
FORGET_WORKERS_AFTER_S = 120
#: The only path that needs no password.
HEALTH_PATH = "/healthcheck"


type Check = Callable[[str, str, str], bool]


def flower(host: str, port: int) -> None:
    """Run Flower, the view of the queues. It asks for the name and password of a superuser's account."""
    remove_foreign_secrets(secrets_of("flower"))
    app = load_app()
    # Imported here, because the module needs Django, which `load_app` has set up; the fork server imports this module earlier.
    check: Check = importlib.import_module("config.cli.installation.operator_check").OperatorCheck().accepts
    options.address = host
    options.port = port
    server = make_server(app, check)
    signal.signal(signal.SIGTERM, _end)
    try:
        server.start_http_server()
        server.start()
    except OSError as error:
        raise ServerError(f"Flower cannot listen on {host}:{port}: {error.strerror}") from error
    finally:
        server.stop()


class _Unauthorized(RequestHandler):
    """Asks for a name and a password."""

    def prepare(self) -> None:
        """Answer 401, whatever the method."""
        self.set_status(401)
        self.set_header("WWW-Authenticate", 'Basic realm="Flower", charset="UTF-8"')
        self.finish("Flower asks for the name and password of a superuser.\n")


class GuardedFlower(Flower):  # type: ignore[misc]
    """Flower with a password: requests that `check` does not accept get nothing but the health page."""

    check: Check
    #: Django refuses queries in the thread of an event loop.
    checking: ThreadPoolExecutor

    def find_handler(self, request: HTTPServerRequest, **named: Any) -> Any:
        """Return the handler of a request, or the handler that asks for a password."""
        if request.path.rstrip("/") != HEALTH_PATH and not self._accepts(request):
            return self.get_handler_delegate(request, _Unauthorized)
        return super().find_handler(request, **named)

    def _accepts(self, request: HTTPServerRequest) -> bool:
        kind, _, encoded = request.headers.get("Authorization", "").partition(" ")
        try:
            name, separator, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            return False
        if kind.lower() != "basic" or not separator:
            return False
        return self.checking.submit(self.check, name, password, request.remote_ip or "").result()


def make_server(app: Celery, check: Check) -> Flower:
    """Return Flower, behind a check of name, password and address."""
    options.read_only = True
    options.max_tasks = REMEMBERED_TASKS
    # The arguments of a task name the agents of its heartbeats.
    options.tasks_columns = "name,args,state,received,runtime,worker,uuid"
    options.purge_offline_workers = FORGET_WORKERS_AFTER_S
    logging.getLogger("tornado.access").setLevel(logging.WARNING)
    server = GuardedFlower(capp=app, options=options, **urls_settings)
    server.check = check
    server.checking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sign-in")
    # Without `GuardedFlower`, Flower would serve this page to everybody, with the names of tasks and workers.
    server.add_handlers(r".*", [(r"/metrics", NotFoundErrorHandler)])
    return server


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)

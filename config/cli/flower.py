"""Run Flower, read-only, behind the operator's password."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType

from celery import Celery
from flower.app import Flower
from flower.urls import settings as urls_settings
from flower.views.error import NotFoundErrorHandler
from tornado.options import options

from arbor.errors import ConfigurationInvalid, ServerError
from config.cli.celery_process import load_app
from config.environment import env, secret, secret_folder
from config.secrets import SecretName

#: The tasks in Flower's memory: five minutes of a large fleet. The history is in the database.
REMEMBERED_TASKS = 20_000
FORGET_WORKERS_AFTER_S = 120


def flower(host: str, port: int) -> None:
    """Run Flower, the view of the queues. It asks for the operator's name and password."""
    password = secret("ARBOR_OPERATOR_PASSWORD") or secret_folder().read(SecretName.OPERATOR_PASSWORD)
    if not password:
        raise ConfigurationInvalid(
            "Flower needs a password: start Arbor once, or set ARBOR_OPERATOR_PASSWORD"
            " or ARBOR_OPERATOR_PASSWORD_FILE"
        )
    options.address = host
    options.port = port
    server = make_server(load_app(), f"{env.str('ARBOR_OPERATOR', default='operator')}:{password}")
    signal.signal(signal.SIGTERM, _end)
    try:
        server.start_http_server()
        server.start()
    except OSError as error:
        raise ServerError(f"Flower cannot listen on {host}:{port}: {error.strerror}") from error
    finally:
        server.stop()


def make_server(app: Celery, credentials: str) -> Flower:
    """Return Flower, which shows only its health without the credentials (`name:password`)."""
    # The password is set in memory, because the arguments and the environment of a process are not secret.
    options.basic_auth = [credentials]
    options.read_only = True
    options.max_tasks = REMEMBERED_TASKS
    # The arguments of a task name the agents of its heartbeats.
    options.tasks_columns = "name,args,state,received,runtime,worker,uuid"
    options.purge_offline_workers = FORGET_WORKERS_AFTER_S
    logging.getLogger("tornado.access").setLevel(logging.WARNING)
    server = Flower(capp=app, options=options, **urls_settings)
    # Flower serves this page without a password, with the names of tasks and workers.
    server.add_handlers(r".*", [(r"/metrics", NotFoundErrorHandler)])
    return server


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)

"""`arbor flower`: Celery's view of workers and tasks, read-only, behind the operator's password."""

from __future__ import annotations

import click
from flower.command import flower as flower_command
from tornado.options import options

from arbor.errors import ConfigurationInvalid
from config.cli.celery_process import run_celery
from config.environment import env, secret, secret_folder
from config.secrets import SecretName

#: Tasks Flower remembers: five minutes of a large fleet. The history is in the database (reference: platform F).
REMEMBERED_TASKS = 20_000
FORGET_WORKERS_AFTER_S = 120


@click.command()
@click.option("--host", envvar="ARBOR_FLOWER_HOST", default="127.0.0.1", show_default=True)
@click.option("--port", envvar="ARBOR_FLOWER_PORT", default=5555, show_default=True)
def flower(host: str, port: int) -> None:
    """Run Flower, the view of the queues. It asks for the operator's name and password."""
    password = secret("ARBOR_OPERATOR_PASSWORD") or secret_folder().read(SecretName.OPERATOR_PASSWORD)
    if not password:
        raise ConfigurationInvalid(
            "Flower needs a password: start Arbor once, or set ARBOR_OPERATOR_PASSWORD or ARBOR_OPERATOR_PASSWORD_FILE"
        )
    assert flower_command.name == "flower"  # its import defines the options that follow
    # In memory: neither the arguments nor the environment of a process are secret to its user.
    options.basic_auth = [f"{env.str('ARBOR_OPERATOR', default='operator')}:{password}"]
    options.read_only = True
    options.max_tasks = REMEMBERED_TASKS
    options.purge_offline_workers = FORGET_WORKERS_AFTER_S
    # Its log goes through ours; tornado would write every line once more.
    run_celery("flower", f"--address={host}", f"--port={port}", "--logging=none")

"""Run the fork server: `python -m config.cli.installation.fork_server DESCRIPTOR`, started only by the supervisor.

The fork server loads libraries and Arbor's framework-free core, but no settings and no Django application: each part reads
its own settings in its own environment after the fork. It opens no connection and starts no thread.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from config.cli.main import main
from config.supervisor.fork_server import LONGEST_MESSAGE, READY
from config.supervisor.launch import end_with_parent

#: From linux/prctl.h: sets the name that `top` shows, at most 15 characters.
_PR_SET_NAME = 15
#: Fields of /proc/self/stat, counted after the name in parentheses: the addresses of this process's arguments.
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46
#: The modules that every part loads, also `prepare`, which runs first. A module that is missing here or below only makes a start
#: slower.
LOADED_FIRST = (
    "arbor.adapters.connect",
    "arbor.agents.birth",
    "arbor.agents.template",
    "arbor.contacts.chat_reply",
    "arbor.heartbeat.steps",
    "arbor.pipeline.graph",
    "arbor.runtime",
    "arbor.sealing",
    "celery.worker.consumer",
    "config.cli.commands.processes",
    "config.cli.installation.serving_role",
    "django.contrib.admin.options",
    "django.contrib.postgres.fields",
    "django.core.management",
    "django.core.serializers",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.template",
    "django.urls",
    "kombu.transport.redis",
    "pgvector.django",
    "psycopg_pool",
    "structlog",
)
#: The modules that other parts load. They are loaded while the first part runs.
LOADED_LATER = (
    "arbor.adapters.embedders",
    "arbor.adapters.wordllama",
    "arbor.heartbeat.reflex.policy",
    "arbor.memory.clusters.reclustering",
    "arbor.memory.maintenance.replies",
    "arbor.pipeline.dot_grammar",
    "arbor.pipeline.engine",
    "celery.app.control",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "config.cli.installation.api",
    "config.cli.installation.celery_process",
    "config.cli.installation.flower",
    "config.cli.installation.web",
    "django.core.handlers.asgi",
    "django.core.handlers.wsgi",
    "gunicorn.workers.gthread",
    "numpy",
    "prometheus_client",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
)


def serve(channel: socket.socket) -> dict[str, Any]:
    """Fork once per request; return only in the forked process, with its request."""
    channel.send(READY)
    is_first = True
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(channel, LONGEST_MESSAGE, 1)
        if not message:
            sys.exit(0)  # the supervisor has ended or closed the socket
        request: dict[str, Any] = json.loads(message)
        reading, writing = os.pipe()
        intermediate = os.fork()
        if intermediate == 0:
            # Forked twice: when the intermediate process ends, the supervisor becomes the parent of its child.
            child = os.fork()
            if child:
                os.write(writing, str(child).encode())
                os._exit(0)
            _attach_to_supervisor(request)
            _redirect_output(descriptors[0])
            channel.close()
            for descriptor in (reading, writing):
                os.close(descriptor)
            return request
        os.close(writing)
        os.close(descriptors[0])
        os.waitpid(intermediate, 0)
        pid = int(os.read(reading, 32))
        os.close(reading)
        try:
            channel.send(json.dumps({"pid": pid}).encode())
        except OSError:
            # The supervisor has stopped waiting, and starts this part and all others itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            sys.exit(0)
        if is_first:
            is_first = False
            load(LOADED_LATER)


def _attach_to_supervisor(request: dict[str, Any]) -> None:
    """Wait until the supervisor is the parent; from then on this process ends with it."""
    while os.getppid() != request["parent"]:
        if os.getppid() == 1:
            os._exit(1)
        time.sleep(0.0005)
    arm = end_with_parent(signal.Signals(request["orphan_signal"]), parent=request["parent"])
    if arm is not None:
        arm()
    os.setsid()


def _redirect_output(descriptor: int) -> None:
    for standard in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(descriptor, standard)
    os.close(descriptor)


def run_part(request: dict[str, Any]) -> None:
    """Run a part with its environment, folder, name and command."""
    for name in request["unset"]:
        os.environ.pop(name, None)
    os.environ.update(request["set"])
    if request["cwd"]:
        os.chdir(request["cwd"])
    arguments: list[str] = request["arguments"]
    title = os.environ.get("ARBOR_PROCESS_NAME", f"arbor {arguments[0]}")
    set_title(title, f"arbor {' '.join(arguments)}")
    sys.argv = ["arbor", *arguments]
    main(arguments)


def run(descriptor: int) -> None:
    """Load the first modules, then fork on request; in each forked process, run the requested part."""
    channel = socket.socket(fileno=descriptor)
    os.set_inheritable(channel.fileno(), False)
    load(LOADED_FIRST)
    # As in `config.cli.main.run`: the interpreter would look for garbage at the exit of each part.
    atexit.register(gc.freeze)
    run_part(serve(channel))


def load(modules: Sequence[str]) -> None:
    """Load modules, and exclude their objects from garbage collection, so that the forks share the memory."""
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()


def set_title(name: str, arguments: str) -> None:
    """Show `name` in `top` and `arguments` in `ps`, cut to the room of the present arguments."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    room = end - start
    if start and room > 1:
        ctypes.memmove(start, arguments.encode()[: room - 1].ljust(room, b"\0"), room)


if __name__ == "__main__":
    run(int(sys.argv[1]))

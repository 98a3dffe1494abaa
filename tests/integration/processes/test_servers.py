"""The embedded servers as real processes: passwords, ports, crashes, and their end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis

from arbor.errors import ServerError
from config.cli.installation.up import make_plan
from config.servers import EmbeddedPostgres, EmbeddedValkey
from config.servers.ports import LOOPBACK, free_port, is_free
from config.servers.process import processes_in
from config.supervisor.run_folder import RunFolder


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met within 10 s"
        time.sleep(0.02)


@pytest.fixture
def tmp_folder() -> Iterator[Path]:
    # Not pytest's folder: it is closed to the user that PostgreSQL runs as when the tests run as root.
    with tempfile.TemporaryDirectory(prefix="arbor-test-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres.temporary() as server:
        yield server


@pytest.fixture(scope="module")
def valkey() -> Iterator[EmbeddedValkey]:
    with EmbeddedValkey.temporary() as server:
        yield server


class TestPostgres:
    def test_the_owner_gets_a_database_with_vectors(self, postgres: EmbeddedPostgres) -> None:
        with psycopg.connect(postgres.owner_url) as connection:
            row = connection.execute("SELECT '[1,2,3]'::halfvec <=> '[1,2,3]'::halfvec").fetchone()
        assert row == (0.0,)

    def test_a_database_made_by_the_owner_has_vectors_too(self, postgres: EmbeddedPostgres) -> None:
        with psycopg.connect(postgres.owner_url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE another")
        with psycopg.connect(postgres.url(user="arbor_owner", database="another")) as connection:
            assert connection.execute("SELECT '[1]'::vector").fetchone() is not None

    def test_the_owner_is_no_superuser(self, postgres: EmbeddedPostgres) -> None:
        with psycopg.connect(postgres.owner_url) as connection:
            row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        assert row == (False,)

    def test_the_owner_and_the_superuser_have_passwords_of_their_own(
        self, postgres: EmbeddedPostgres
    ) -> None:
        for user, wrong in (("postgres", postgres.owner_password), ("arbor_owner", postgres.password)):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(postgres.url(user=user, password=wrong))

    def test_an_older_installation_gets_a_password_for_its_owner(self, tmp_folder: Path) -> None:
        folder = tmp_folder / "postgres"
        with EmbeddedPostgres(folder, password="kept", owner_password="kept", durable=False):
            pass
        with EmbeddedPostgres(folder, password="kept", owner_password="new", durable=False) as server:
            psycopg.connect(server.owner_url).close()

    @pytest.mark.parametrize("user", ["postgres", "arbor_owner"])
    def test_nobody_gets_in_without_the_password(self, postgres: EmbeddedPostgres, user: str) -> None:
        for password in ("wrong", ""):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(
                    host=LOOPBACK, port=postgres.port, user=user, password=password, dbname="arbor"
                )

    def test_the_server_listens_on_the_loopback_only(self, postgres: EmbeddedPostgres) -> None:
        assert postgres.pid is not None
        listening = [
            connection.laddr.ip
            for connection in psutil.Process(postgres.pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert listening == [LOOPBACK]

    def test_the_arguments_include_no_password(self, postgres: EmbeddedPostgres) -> None:
        assert postgres.password not in " ".join(postgres.launch().argv)


def crash(server: EmbeddedPostgres, statement: str) -> None:
    """Kill a backend while it executes a statement."""

    def execute() -> None:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.owner_url) as connection:
            connection.execute(statement)

    thread = threading.Thread(target=execute)
    thread.start()
    with (
        contextlib.suppress(psycopg.OperationalError),
        psycopg.connect(server.superuser_url, autocommit=True) as observer,
    ):
        query = "SELECT pid FROM pg_stat_activity WHERE query = %s AND state = 'active'"
        wait_until(lambda: observer.execute(query, [statement]).rowcount == 1)
        row = observer.execute(query, [statement]).fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
    thread.join()


def accepts_connections(server: EmbeddedPostgres) -> bool:
    try:
        psycopg.connect(server.owner_url).close()
    except psycopg.OperationalError:
        return False
    return True


class TestPostgresOnDisk:
    def test_committed_rows_survive_a_kill(self, tmp_folder: Path) -> None:
        first = EmbeddedPostgres(tmp_folder / "postgres", password="kept")
        first.start()
        with psycopg.connect(first.owner_url) as connection:
            connection.execute("CREATE TABLE note AS SELECT 'still here' AS text")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)

        # At once: the killed server's children may still be ending, and its pid file still exists.
        with (
            EmbeddedPostgres(tmp_folder / "postgres", password="kept") as second,
            psycopg.connect(second.owner_url) as connection,
        ):
            assert connection.execute("SELECT text FROM note").fetchone() == ("still here",)
        first.stop()

    def test_a_crashed_backend_logs_no_values(self, tmp_folder: Path) -> None:
        # Durable, because otherwise a crash loses the owner's password.
        with EmbeddedPostgres(tmp_folder / "postgres", password="kept") as server:
            crash(server, "SELECT pg_sleep(60), 'the value'")
            wait_until(lambda: "was terminated by signal 9" in server.log_path.read_text())
            wait_until(lambda: accepts_connections(server))
            with psycopg.connect(server.owner_url, autocommit=True) as connection:
                connection.execute("CREATE TABLE note (text text UNIQUE)")
                connection.execute("INSERT INTO note VALUES ('the value')")
                with pytest.raises(psycopg.errors.UniqueViolation, match="the value"):
                    connection.execute("INSERT INTO note VALUES ('the value')")
            log = server.log_path.read_text()
        assert "duplicate key value" in log
        assert "the value" not in log

    def test_a_pid_file_that_names_another_process_allows_the_start(self, tmp_folder: Path) -> None:
        server = EmbeddedPostgres(tmp_folder / "postgres", password="kept", durable=False)
        with server:
            lines = (server.data_dir / "postmaster.pid").read_text().splitlines()
        lines[0] = str(os.getpid())
        (server.data_dir / "postmaster.pid").write_text("\n".join(lines) + "\n")
        with server:
            assert server.is_ready()

    def test_a_server_of_an_earlier_run_is_ended_before_the_start(self, tmp_folder: Path) -> None:
        earlier = EmbeddedPostgres(tmp_folder / "postgres", password="kept", durable=False)
        earlier.start()
        with EmbeddedPostgres(tmp_folder / "postgres", password="kept", durable=False) as server:
            assert server.pid != earlier.pid
            assert earlier.pid not in [process.pid for process in processes_in(server.data_dir, "postgres")]
        earlier.stop()

    def test_a_changed_password_is_refused_with_a_remedy(self, tmp_folder: Path) -> None:
        with EmbeddedPostgres(tmp_folder / "postgres", password="first", durable=False):
            pass
        with pytest.raises(ServerError, match="secrets folder"):
            EmbeddedPostgres(tmp_folder / "postgres", password="second", durable=False).start()
        assert processes_in(tmp_folder / "postgres", "postgres") == []

    def test_data_of_another_major_version_is_refused(self, tmp_folder: Path) -> None:
        (tmp_folder / "postgres").mkdir()
        (tmp_folder / "postgres" / "PG_VERSION").write_text("15\n")
        with pytest.raises(ServerError, match="made by PostgreSQL 15"):
            EmbeddedPostgres(tmp_folder / "postgres").start()

    def test_a_failed_start_names_its_cause(self, tmp_folder: Path) -> None:
        server = EmbeddedPostgres(
            tmp_folder / "postgres", durable=False, settings={"max_connections": "many"}
        )
        with pytest.raises(ServerError, match="max_connections"):
            server.start()


class TestValkey:
    def test_nobody_gets_in_without_the_password(self, valkey: EmbeddedValkey) -> None:
        with redis.Redis(port=valkey.port) as client, pytest.raises(redis.AuthenticationError):
            client.ping()

    def test_the_server_never_evicts_a_key(self, valkey: EmbeddedValkey) -> None:
        with redis.Redis.from_url(valkey.url, decode_responses=True) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}

    def test_only_the_owner_can_read_the_configuration(self, valkey: EmbeddedValkey) -> None:
        assert (valkey.data_dir / "valkey.conf").stat().st_mode & 0o077 == 0

    def test_queued_messages_survive_a_kill(self, tmp_folder: Path) -> None:
        server = EmbeddedValkey(tmp_folder / "valkey", password="kept")
        server.start()
        assert server.pid is not None
        with redis.Redis.from_url(server.url) as client:
            client.lpush("queue", "message")
            # Each command is written to the log at once; the log is flushed to the disk every second.
        os.kill(server.pid, signal.SIGKILL)
        server.stop()
        with server, redis.Redis.from_url(server.url) as client:
            assert client.lrange("queue", 0, -1) == [b"message"]


class TestPorts:
    def test_the_preferred_port_is_used_when_free(self) -> None:
        preferred = free_port()
        assert free_port(preferred) == preferred

    def test_the_next_free_port_replaces_a_used_one(self) -> None:
        with socket.create_server((LOOPBACK, 0)) as listener:
            used = listener.getsockname()[1]
            assert not is_free(used)
            assert free_port(used) > used

    @pytest.mark.parametrize("host", ["::1", "192.0.2.1"])
    @pytest.mark.parametrize("wanted", [8000, 0])
    def test_a_foreign_address_is_named(self, host: str, wanted: int) -> None:
        with pytest.raises(ServerError, match=f"no server can listen on {host}: .*; name an IPv4 address"):
            free_port(wanted, host=host)

    def test_two_servers_never_share_a_port(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        # The console moves to the port that the API would get.
        monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("DATABASE_URL", "postgres://arbor@127.0.0.1/arbor")
        monkeypatch.setenv("CELERY_BROKER_URL", "redis://127.0.0.1")
        with socket.create_server((LOOPBACK, 0)) as listener:
            used = listener.getsockname()[1]
            for server in ("WEB", "API", "FLOWER"):
                monkeypatch.setenv(f"ARBOR_{server}_PORT", str(used))
            plan = make_plan(RunFolder(tmp_path), only=frozenset({"web", "api", "flower"}), demo=False)
        ports = [plan.web_port, plan.api_port, plan.flower_port]
        assert used < ports[0] < ports[1] < ports[2]

    def test_any_port_is_not_reported_as_a_moved_one(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("DATABASE_URL", "postgres://arbor@127.0.0.1/arbor")
        monkeypatch.setenv("CELERY_BROKER_URL", "redis://127.0.0.1")
        monkeypatch.setenv("ARBOR_API_PORT", "0")
        assert make_plan(RunFolder(tmp_path), only=frozenset({"api"}), demo=False).api_port > 0
        assert "is taken" not in capsys.readouterr().out


SCRIPT = """
import sys, time
from pathlib import Path
from config.servers import EmbeddedPostgres, EmbeddedValkey
folder = Path(sys.argv[1])
postgres, valkey = EmbeddedPostgres(folder / "postgres", durable=False), EmbeddedValkey(folder / "valkey")
postgres.start(); valkey.start()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a child whose parent has died")
def test_servers_end_with_the_process_that_started_them(tmp_folder: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.kill()
    wait_until(lambda: not processes_in(tmp_folder / "postgres", "postgres"))
    wait_until(lambda: not processes_in(tmp_folder / "valkey", "valkey-server"))

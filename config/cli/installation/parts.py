"""The parts of one installation, declared for the supervisor."""

from __future__ import annotations

import http.client
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from config.credentials import without_password
from config.environment import BASE_DIR
from config.pools import POOLS, WorkerPool, worker_pools
from config.process_secrets import own_environment, secrets_of, secrets_of_queues
from config.servers.ports import LOOPBACK
from config.servers.postgres import EmbeddedPostgres
from config.servers.process import EmbeddedServer
from config.servers.valkey import EmbeddedValkey
from config.supervisor import READY_FILE
from config.supervisor.fork_server import ForkServer
from config.supervisor.launch import Launch
from config.supervisor.managed_process import ManagedProcess
from config.supervisor.run_folder import RunFolder, mark

#: The parts of `--only worker`.
WORKERS = tuple(pool.name for pool in POOLS)
NAMES = (*WORKERS, "scheduler", "web", "api", "flower")

_PROBE_WITHIN_S = 0.5
#: Pads the fork server's arguments, because a forked process writes its own title into their memory.
_ROOM_FOR_TITLES = " " * 120
#: The messages of PostgreSQL at every healthy start and end.
_POSTGRES_NOISE = re.compile(
    r"LOG:  (starting PostgreSQL|listening on|database system (was shut down|is ready|is shut down)|"
    r"received fast shutdown|aborting any active|background worker .* exited with exit code 1|shutting down)|"
    r"FATAL:  terminating (connection|background worker|autovacuum)|"
    # The code that inserts a duplicate handles the error.
    r"ERROR:  duplicate key value violates unique constraint|DETAIL:  Key \(.*\) already exists"
)
#: The advice of Valkey at every start, and its last message at every end.
_VALKEY_NOISE = re.compile(r"Memory overcommit must be enabled|signal-handler|bye bye")


@dataclass(frozen=True, kw_only=True)
class InstallationPlan:
    """The parts to run, with their servers and addresses."""

    run: RunFolder
    postgres: EmbeddedPostgres | None
    valkey: EmbeddedValkey | None
    web_host: str
    web_port: int
    api_host: str
    api_port: int
    flower_port: int
    demo: bool
    only: frozenset[str]
    fork_server: ForkServer | None
    #: Every secret of the installation by the name of its setting; each part gets only those that it uses.
    secrets: Mapping[str, str] = field(repr=False)

    @property
    def web_reachable_host(self) -> str:
        """The host under which this machine reaches the console."""
        return reachable_host(self.web_host)

    @property
    def web_url(self) -> str:
        """The address of the console."""
        return f"http://{self.web_reachable_host}:{self.web_port}/"

    @property
    def api_url(self) -> str:
        """The address of the API."""
        return f"http://{reachable_host(self.api_host)}:{self.api_port}/"

    @property
    def flower_url(self) -> str:
        """The address of Flower."""
        return f"http://{LOOPBACK}:{self.flower_port}/"

    @property
    def urls(self) -> dict[str, str]:
        """The addresses of the selected parts by name."""
        urls = {"web": self.web_url, "api": self.api_url, "flower": self.flower_url}
        return {name: url for name, url in urls.items() if name in self.only}

    def server_urls(self) -> dict[str, str]:
        """Return the addresses of the servers without passwords, for commands on this machine."""
        urls = {f"{name}_url": url for name, url in self.urls.items()}
        if self.postgres is not None:
            urls["database_url"] = without_password(self.postgres.owner_url)
        if self.valkey is not None:
            urls["broker_url"] = without_password(self.valkey.url)
        return urls


def reachable_host(host: str) -> str:
    """Return the host, as URLs have it, under which this machine reaches a server that listens on `host`."""
    if host == "0.0.0.0":  # noqa: S104 (asked, not chosen)
        return LOOPBACK
    return f"[{host}]" if ":" in host else host


def parts_of(plan: InstallationPlan) -> list[ManagedProcess]:
    """Return the parts in starting order: servers, the step `prepare`, then the selected processes."""
    servers = []
    if plan.postgres is not None:
        servers.append(_server_part("postgres", plan.postgres, noise=_POSTGRES_NOISE))
    if plan.valkey is not None:
        servers.append(_server_part("valkey", plan.valkey, noise=_VALKEY_NOISE))
    if plan.fork_server is not None:
        servers.append(_fork_server_part(plan, plan.fork_server))
    prepare = _prepare_part(plan, needs=tuple(part.name for part in servers))
    processes = [_pool_part(plan, pool) for pool in worker_pools()]
    processes += [_scheduler_part(plan), _web_part(plan), _api_part(plan), _flower_part(plan)]
    return [*servers, prepare, *(part for part in processes if part.name in plan.only)]


def _server_part(
    name: str, server: EmbeddedServer, *, noise: re.Pattern[str] | None = None
) -> ManagedProcess:
    return ManagedProcess(
        name=name,
        launch=server.launch,
        prepare=server.prepare,
        ready=server.is_ready,
        after_ready=server.after_ready,
        essential=True,
        stop_within_s=4.0,
        noise=noise,
    )


def _prepare_part(plan: InstallationPlan, *, needs: tuple[str, ...]) -> ManagedProcess:
    arguments = ["prepare", "--report", str(plan.run.prepared_file), *([] if plan.demo else ["--no-demo"])]
    return ManagedProcess(
        name="prepare",
        launch=_arbor(plan, "prepare", *arguments, secrets=secrets_of("prepare")),
        needs=needs,
        once=True,
    )


def _pool_part(plan: InstallationPlan, pool: WorkerPool) -> ManagedProcess:
    return _signalling_part(
        plan,
        pool.name,
        "worker",
        f"--queues={','.join(pool.queues)}",
        f"--pool={pool.kind}",
        f"--concurrency={pool.concurrency}",
        f"--name={pool.name}",
        secrets=secrets_of_queues(pool.queues),
        env=pool.env,
    )


def _scheduler_part(plan: InstallationPlan) -> ManagedProcess:
    return _signalling_part(plan, "scheduler", "scheduler", secrets=secrets_of("scheduler"))


def _signalling_part(
    plan: InstallationPlan,
    name: str,
    *arguments: str,
    secrets: frozenset[str],
    env: dict[str, str] | None = None,
) -> ManagedProcess:
    """Return a part that touches a file when it is ready."""
    ready_file = plan.run.ready_file(name)

    def forget_readiness() -> None:
        ready_file.unlink(missing_ok=True)

    return ManagedProcess(
        name=name,
        launch=_arbor(
            plan, name, *arguments, secrets=secrets, env={**(env or {}), READY_FILE: str(ready_file)}
        ),
        needs=("prepare",),
        prepare=forget_readiness,
        ready=ready_file.exists,
    )


def _web_part(plan: InstallationPlan) -> ManagedProcess:
    return ManagedProcess(
        name="web",
        launch=_arbor(
            plan,
            "web",
            "web",
            f"--host={plan.web_host}",
            f"--port={plan.web_port}",
            secrets=secrets_of("web"),
        ),
        needs=("prepare",),
        ready=_http_probe(plan.web_reachable_host, plan.web_port, "/healthz"),
    )


def _api_part(plan: InstallationPlan) -> ManagedProcess:
    return ManagedProcess(
        name="api",
        launch=_arbor(
            plan,
            "api",
            "api",
            f"--host={plan.api_host}",
            f"--port={plan.api_port}",
            secrets=secrets_of("api"),
        ),
        # The API starts last, and the installation is ready without it, because agents and the console do not need it.
        needs=("prepare", *(name for name in (*WORKERS, "scheduler", "web") if name in plan.only)),
        awaited=False,
        ready=_http_probe(reachable_host(plan.api_host), plan.api_port, "/healthz"),
    )


def _flower_part(plan: InstallationPlan) -> ManagedProcess:
    return ManagedProcess(
        name="flower",
        launch=_arbor(
            plan,
            "flower",
            "flower",
            f"--host={LOOPBACK}",
            f"--port={plan.flower_port}",
            secrets=secrets_of("flower"),
        ),
        needs=("prepare",),
        ready=_http_probe(LOOPBACK, plan.flower_port, "/healthcheck"),
    )


def _fork_server_part(plan: InstallationPlan, fork_server: ForkServer) -> ManagedProcess:
    def launch() -> Launch:
        descriptor = fork_server.descriptor
        return Launch(
            argv=(
                sys.executable,
                "-m",
                "config.cli.installation.fork_server",
                str(descriptor),
                _ROOM_FOR_TITLES,
            ),
            env=base_env(plan.run),
            cwd=BASE_DIR,
            inherited=(descriptor,),
        )

    return ManagedProcess(
        name="fork-server",
        launch=launch,
        prepare=fork_server.prepare,
        ready=fork_server.is_ready,
        essential=True,
    )


def base_env(run: RunFolder) -> dict[str, str]:
    """Return the environment that all parts have in common, without any secret."""
    data_dir = run.path.parent
    return {
        # Agents are many and each computes little, so threads inside one computation only slow the others.
        "OPENBLAS_NUM_THREADS": "1",
        # By default glibc gives threads up to eight memory pools per core, each of which retains what is freed in it.
        "MALLOC_ARENA_MAX": "2",
        **own_environment(secrets_of("fork-server"), secrets={}, environment=os.environ),
        "ARBOR_DATA_DIR": str(data_dir),
        "PYTHONUNBUFFERED": "1",
        **mark(data_dir),
    }


def _arbor(
    plan: InstallationPlan,
    name: str,
    *arguments: str,
    secrets: frozenset[str],
    env: dict[str, str] | None = None,
) -> Callable[[], Launch]:
    own = own_environment(secrets, secrets=plan.secrets, environment=base_env(plan.run))
    launch = Launch(
        argv=(sys.executable, "-m", "config.cli", *arguments),
        arbor_arguments=arguments,
        env={**own, "ARBOR_PROCESS_NAME": f"arbor {name}", **(env or {})},
        cwd=BASE_DIR,
        # The servers end with the supervisor, and a worker would wait forever for its broker.
        orphan_signal=signal.SIGKILL,
    )
    return lambda: launch


def _http_probe(host: str, port: int, path: str) -> Callable[[], bool]:
    def probe() -> bool:
        connection = http.client.HTTPConnection(host, port, timeout=_PROBE_WITHIN_S)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe

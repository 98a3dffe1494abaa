"""Run the whole installation in one terminal."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from arbor.models.handles import is_reflex
from arbor.quotations import counted
from config.cli.installation.parts import NAMES, WORKERS, InstallationPlan, base_env, parts_of
from config.cli.kit.output import console
from config.credentials import installation_secrets
from config.environment import data_dir, env, secret, secret_folder, whole_number
from config.keys import KeySource
from config.secrets import SecretName, read_secret
from config.servers.ports import LOOPBACK, free_port
from config.servers.postgres import EmbeddedPostgres
from config.servers.valkey import EmbeddedValkey
from config.supervisor.fork_server import ForkServer
from config.supervisor.log import Log, Mask
from config.supervisor.run_folder import RunFolder, end_orphans, find_orphans, write_private
from config.supervisor.supervisor import Supervisor

#: The default ports; the usual ports often belong to another server of the machine.
POSTGRES_PORT, VALKEY_PORT = 5442, 6389
#: The endings of variables whose values must never reach the log.
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_PASSWORD", "_SECRET")


def _print_step(text: str) -> None:
    click.echo(f"{click.style('·', dim=True)} {text}")


def _choose_parts(value: str | None) -> frozenset[str]:
    if value is None:
        return frozenset(NAMES)
    parts = {name.strip() for name in value.split(",")}
    if parts & {"worker", "workers"}:
        parts = (parts - {"worker", "workers"}) | set(WORKERS)
    unknown = parts - set(NAMES)
    if unknown:
        raise click.BadParameter(
            f"{', '.join(map(repr, sorted(unknown)))}: choose from worker, {', '.join(NAMES)}",
            param_hint="--only",
        )
    return frozenset(parts)


def up(only: str | None, no_demo: bool, port: int | None) -> None:
    """Run everything from this terminal: servers, workers, scheduler, console, API, Flower. Ctrl-C stops it."""
    parts = _choose_parts(only)
    if port is not None and "web" not in parts:
        raise click.UsageError("--port is that of the console: add web to --only, or leave out --port")
    started = time.monotonic()
    run = RunFolder(data_dir())
    with run.lock():
        run.prepared_file.unlink(missing_ok=True)
        run.write_state(parts=[])
        _end_orphans()
        _make_secrets()
        plan = make_plan(run, only=parts, demo=not no_demo, web_port=port)
        write_private(run.servers_file, plan.server_urls())
        try:
            _supervise(plan, started)
        finally:
            run.clear()
    _print_step("everything has stopped; the next start continues from here")


def _end_orphans() -> None:
    orphans = find_orphans(data_dir())
    if orphans:
        _print_step(f"ending {counted(len(orphans), 'process', 'processes')} that an earlier run left behind")
        end_orphans(orphans)


def _make_secrets() -> None:
    """Create the secrets that the environment does not set."""
    if not secret("ARBOR_MASTER_KEY"):
        secret_folder().ensure(SecretName.MASTER_KEY)
    # In an external database the account may exist already, with another password; `prepare` creates one for a new account.
    if not secret("ARBOR_OPERATOR_PASSWORD") and not secret("DATABASE_URL"):
        secret_folder().ensure(SecretName.OPERATOR_PASSWORD)


def make_plan(
    run: RunFolder, *, only: frozenset[str], demo: bool, web_port: int | None = None
) -> InstallationPlan:
    """Return the parts to run, with servers and addresses: embedded servers where the environment names none."""
    folder = secret_folder()
    postgres = valkey = None
    if not secret("DATABASE_URL"):
        port = _port("ARBOR_POSTGRES_PORT", POSTGRES_PORT)
        postgres = EmbeddedPostgres(
            data_dir() / "postgres",
            password=folder.ensure(SecretName.POSTGRES_PASSWORD),
            owner_password=folder.ensure(SecretName.POSTGRES_OWNER_PASSWORD),
            port=port,
            report=_print_step,
        )
        _print_moved_port("PostgreSQL", port, postgres.port)
        if not postgres.data_dir.exists():
            _print_step(f"creating the database in {postgres.data_dir}")
    if not secret("CELERY_BROKER_URL") and not secret("REDIS_URL"):
        port = _port("ARBOR_VALKEY_PORT", VALKEY_PORT)
        valkey = EmbeddedValkey(
            data_dir() / "valkey", password=folder.ensure(SecretName.VALKEY_PASSWORD), port=port
        )
        _print_moved_port("Valkey", port, valkey.port)
    host = env.str("ARBOR_WEB_HOST", default="127.0.0.1")
    api_host = env.str("ARBOR_API_HOST", default="127.0.0.1")
    # None of these servers listens yet, so a port that one of them has moved to still looks free.
    reserved = {server.port for server in (postgres, valkey) if server is not None}
    ports = {
        "web": ("the console", web_port or _port("ARBOR_WEB_PORT", 8000), host),
        "api": ("the API", _port("ARBOR_API_PORT", 8001), api_host),
        "flower": ("Flower", _port("ARBOR_FLOWER_PORT", 5555), LOOPBACK),
    }
    chosen = {name: _choose_port(*ports[name], reserved) for name in ports if name in only}
    return InstallationPlan(
        run=run,
        postgres=postgres,
        valkey=valkey,
        web_host=host,
        web_port=chosen.get("web", 0),
        api_host=api_host,
        api_port=chosen.get("api", 0),
        flower_port=chosen.get("flower", 0),
        demo=demo,
        only=only,
        fork_server=ForkServer(base_env(run)) if ForkServer.is_possible() else None,
        secrets=installation_secrets(_server_urls(postgres, valkey)),
    )


def _port(setting: str, default: int) -> int:
    return whole_number(setting, default=default, least=0, most=65_535)


def _server_urls(postgres: EmbeddedPostgres | None, valkey: EmbeddedValkey | None) -> dict[str, str]:
    """Return the addresses of the embedded servers with their passwords."""
    urls = {}
    if postgres is not None:
        urls["database_url"] = postgres.owner_url
    if valkey is not None:
        urls["broker_url"] = valkey.url
    return urls


def _choose_port(title: str, wanted: int, host: str, reserved: set[int]) -> int:
    """Return the port of a server, and reserve it."""
    port = free_port(wanted, host=host, reserved=reserved)
    reserved.add(port)
    _print_moved_port(title, wanted, port)
    return port


def _print_moved_port(title: str, wanted: int, actual: int) -> None:
    if wanted and actual != wanted:
        _print_step(f"port {wanted} is taken: {title} listens on {click.style(str(actual), bold=True)}")


def _supervise(plan: InstallationPlan, started: float) -> None:
    parts = parts_of(plan)
    log = Log([part.name for part in parts], mask=Mask(_secrets_to_mask(plan)))

    def write_state(states: list[dict[str, Any]]) -> None:
        plan.run.write_state(parts=states)

    def show_panel() -> None:
        console().print(panel(_summary(plan, time.monotonic() - started)))

    Supervisor(parts, log=log, on_change=write_state, on_ready=show_panel, fork_server=plan.fork_server).run()


def _secrets_to_mask(plan: InstallationPlan) -> set[str]:
    """Return all secrets of the installation: of a secret in a file the content, not the name of the file."""
    found = {value for name, value in os.environ.items() if name.endswith(_SECRET_ENDINGS)}
    found |= {value for name, value in plan.secrets.items() if not name.endswith("_FILE")}
    found |= {value for name in SecretName if (value := secret_folder().read(name))}
    keys = KeySource.of_environment()
    if keys.file is not None:
        found |= {read_secret(file) for file in (keys.file, keys.other_file) if file.exists()}
    return found


def _summary(plan: InstallationPlan, ready_in_s: float) -> PanelSummary:
    report: dict[str, Any] = json.loads(plan.run.prepared_file.read_text(encoding="utf-8"))
    folder = secret_folder()
    own_password, file = bool(secret("ARBOR_OPERATOR_PASSWORD")), folder.file(SecretName.OPERATOR_PASSWORD)
    first_time = report["operator_made"] and not own_password
    return PanelSummary(
        urls=plan.urls,
        operator=report["operator"],
        # The password is shown on a terminal only, never written to a pipe or log; the file is readable by its owner only.
        password=folder.read(SecretName.OPERATOR_PASSWORD) if first_time and sys.stdout.isatty() else None,
        password_file=Path("ARBOR_OPERATOR_PASSWORD") if own_password else file,
        password_known=own_password or file.exists(),
        model=report["model"],
        agents=report["agents"],
        tenants=report["tenants"],
        ready_in_s=ready_in_s,
    )


@dataclass(frozen=True, kw_only=True)
class PanelSummary:
    """The contents of the panel."""

    #: The addresses of the parts that run here, by name.
    urls: Mapping[str, str]
    operator: str
    #: The new operator's password, shown once; None afterwards.
    password: str | None
    password_file: Path
    #: Whether that file, or the setting in its place, contains the password.
    password_known: bool
    model: str
    agents: int
    tenants: int
    ready_in_s: float


def panel(summary: PanelSummary) -> Panel:
    """Return the panel that `arbor up` shows once everything is ready."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim")
    rows.add_column()
    for name, url in summary.urls.items():
        is_console = name == "web"
        rows.add_row(
            "console" if is_console else name,
            Text(url, style="bold underline" if is_console else "underline"),
        )
    rows.add_row("operator", Text(summary.operator, style="bold"))
    if not summary.password_known:
        rows.add_row("password", "the one that the account got where it was created")
    elif summary.password is None:
        rows.add_row(
            "password", f"shown at the first start, on a terminal; stored in {summary.password_file}"
        )
    else:
        rows.add_row("password", Text.assemble((summary.password, "bold green"), "  (shown only now)"))
    rows.add_row("model", _model(summary.model))
    rows.add_row("agents", f"{summary.agents} of {counted(summary.tenants, 'tenant')}")
    hint = Text("Ctrl-C stops everything; the next `make up` goes on where this one ended.", style="dim")
    return Panel(
        Group(rows, Text(), hint),
        title=f"Arbor runs (ready in {summary.ready_in_s:.1f} s)",
        border_style="green",
        expand=False,
    )


def _model(handle: str) -> Text:
    if not is_reflex(handle):
        return Text(handle)
    return Text.assemble(
        ("none: agents act by the reflex policy (fixed rules, no language model). ", "yellow"),
        "Set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST for one.",
    )

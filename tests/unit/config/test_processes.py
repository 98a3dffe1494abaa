"""Options of commands that run processes, with the processes faked."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import uvicorn
from tornado.options import options

import config.cli.kit.with_django  # noqa: F401
from arbor.errors import ServerError
from config.cli.installation import api, celery_process, down, flower, prepare, status, up, web
from config.cli.kit import tenancy
from config.cli.main import main
from config.supervisor.run_folder import RunFolder


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("ARBOR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ARBOR_OPERATOR_PASSWORD", "secret")
    for name in ("ARBOR_PROCESS_NAME", "ARBOR_DB_POOL_SIZE", "ARBOR_PREPARED_STATEMENTS"):
        monkeypatch.setenv(name, "1")


def test_the_console_listens_at_the_given_address(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[dict[str, Any]] = []
    monkeypatch.setattr(web, "refuse_unsafe_role", lambda: None)
    monkeypatch.setattr(web, "Console", lambda settings: SimpleNamespace(run=lambda: served.append(settings)))
    assert run("web", "--host", "0.0.0.0", "--port", "8123", "--processes", "2") == 0
    (settings,) = served
    assert (settings["bind"], settings["workers"]) == ("0.0.0.0:8123", 2)


def test_the_api_listens_at_the_given_address(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[dict[str, Any]] = []
    # Changed by the command, and restored after the test.
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "config.settings")
    monkeypatch.setattr(api, "refuse_unsafe_role", lambda: None)
    monkeypatch.setattr(uvicorn, "run", lambda _application, **settings: served.append(settings))
    assert run("api", "--host", "0.0.0.0", "--port", "8123") == 0
    (settings,) = served
    assert (settings["host"], settings["port"]) == ("0.0.0.0", 8123)


def test_flower_listens_at_the_given_address(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def make_server(_app: Any, _check: Any) -> Any:
        def start() -> None:
            started.append(f"{options.address}:{options.port}")

        return SimpleNamespace(start_http_server=start, start=lambda: None, stop=lambda: None)

    monkeypatch.setattr(flower, "load_app", lambda: None)
    monkeypatch.setattr(flower, "make_server", make_server)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert run("flower", "--host", "127.0.0.2", "--port", "5556") == 0
    assert started == ["127.0.0.2:5556"]


def test_a_worker_gets_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    def make(**options: Any) -> Any:
        calls.append(options)
        return SimpleNamespace(start=lambda: None, exitcode=0)

    monkeypatch.setenv("CELERY_BROKER_URL", "redis://broker.example/0")
    monkeypatch.setattr(celery_process, "load_app", lambda: SimpleNamespace(Worker=make))
    monkeypatch.setattr(celery_process, "refuse_unsafe_role", lambda: None)
    for name in ("worker_ready", "worker_process_init"):
        monkeypatch.setattr(celery_process, name, SimpleNamespace(connect=lambda *_, **__: None))
    assert run("worker", "-q", "llm, outbox", "--pool", "threads", "-c", "3", "--name", "models") == 0
    (options,) = calls
    assert (options["queues"], options["concurrency"]) == (["llm", "outbox"], 3)
    assert options["hostname"].startswith("models@")
    assert options["pool_cls"].__module__ == "celery.concurrency.thread"


def test_up_gets_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[dict[str, Any]] = []

    def plan(_run: Any, **options: Any) -> Any:
        planned.append(options)
        raise ServerError("that is enough")

    monkeypatch.setattr(up, "make_plan", plan)
    assert run("up", "--no-demo", "--port", "8123", "--only", "web,scheduler") == 1
    assert planned == [{"only": frozenset({"web", "scheduler"}), "demo": False, "web_port": 8123}]


def test_up_gives_no_two_servers_one_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://db.example/arbor")
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://broker.example/0")
    with socket.create_server(("127.0.0.1", 0)) as other:
        used = other.getsockname()[1]
        for name, port in (("WEB", used), ("API", used + 1), ("FLOWER", used)):
            monkeypatch.setenv(f"ARBOR_{name}_PORT", str(port))
        plan = up.make_plan(
            RunFolder(tmp_path), only=frozenset({"web", "api", "flower"}), demo=False, web_port=None
        )
    assert len({used, plan.web_port, plan.api_port, plan.flower_port}) == 4


def test_down_names_processes_that_survive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(down, "data_dir", lambda: tmp_path)
    monkeypatch.setattr(down, "find_orphans", lambda _: [SimpleNamespace(pid=4711)])
    monkeypatch.setattr(down, "end_orphans", list)
    assert run("down") == 1
    printed = capsys.readouterr()
    assert (printed.out, "4711" in printed.err) == ("", True)


@pytest.mark.parametrize(("option", "count"), [("--demo", 1), ("--no-demo", 0)])
def test_the_demo_is_created_as_requested(option: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    demos: list[str] = []
    monkeypatch.setattr(prepare, "call_command", lambda *_, **__: None)
    monkeypatch.setattr(prepare, "refuse_other_master_key", lambda: None)
    monkeypatch.setattr(prepare, "refuse_unsafe_role", lambda: None)
    monkeypatch.setattr(prepare, "continue_positions", lambda: False)
    monkeypatch.setattr(prepare, "continue_audit_positions", lambda: False)
    monkeypatch.setattr(prepare, "_seed_templates", lambda: None)
    monkeypatch.setattr(prepare, "_load_skills", lambda: None)
    monkeypatch.setattr(prepare, "_endorse_agents", lambda: None)
    monkeypatch.setattr(prepare, "sign_all_pending_grants", lambda *, actor: 0)
    monkeypatch.setattr(prepare, "_create_operator", lambda: ("operator", True))
    monkeypatch.setattr(prepare, "make_demo", lambda *, operator: demos.append(operator))
    monkeypatch.setattr(prepare, "connections", SimpleNamespace(close_all=lambda: None))
    assert run("prepare", option) == 0
    assert len(demos) == count


def test_the_status_is_refreshed_until_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "_read_state", lambda: {"model": "reflex/default"})
    monkeypatch.setattr(time, "sleep", interrupted)
    assert run("status", "--watch", "--json") == 130
    assert json.loads(capsys.readouterr().out) == {"model": "reflex/default"}


@pytest.mark.parametrize("process", ["web", "api", "flower"])
def test_a_port_that_no_server_can_have_is_refused(process: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[f"config.cli.installation.{process}"], process, lambda **_: None)
    assert run(process, "--port", "65535") == 0
    assert run(process, "--port", "65536") == 2
    monkeypatch.setenv(f"ARBOR_{process.upper()}_PORT", "-1")
    assert run(process) == 2
    monkeypatch.setenv("DATABASE_URL", "postgres://db.example/arbor")
    assert run("up") == 1


def test_a_supervisor_that_has_just_ended_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = psutil.Process(started.pid)
    started.communicate(b"\n")
    monkeypatch.setattr(RunFolder, "supervisor", lambda _folder: found)
    assert run("down") == 0
    assert "Arbor has stopped." in capsys.readouterr().out


def test_a_user_without_a_name_acts_under_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert tenancy.actor() == "cli:uid-2147483641"

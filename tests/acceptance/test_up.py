"""`arbor up` from the first start to a crash, Ctrl-C and a second start."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.acceptance.installation import STARTED_WITHIN_S, Installation

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

#: Enough on a busy machine; `make bars` asserts on the time on an idle one.
FIRST_HEARTBEAT_WITHIN_S = 180
STOPPED_WITHIN_S = 10
#: Less than the minute after which a lost message is published again.
ANSWERED_WITHIN_S = 30


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Occupy a port of the installation."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


@pytest.fixture(scope="module")
def installation(port: int) -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="arbor-up-") as folder:
        wanted = {
            "ARBOR_WEB_PORT": str(port),
            "ARBOR_FLOWER_PORT": "15555",
            "ARBOR_POSTGRES_PORT": "15442",
            "ARBOR_VALKEY_PORT": "16389",
        }
        installation = Installation(Path(folder), **wanted)
        yield installation
        if installation.process is not None and installation.process.poll() is None:
            installation.stop(signal.SIGTERM)
        for process in installation.processes():
            process.kill()


def read_secrets(installation: Installation) -> dict[str, str]:
    """Return the secrets of an installation by the names of their files."""
    return {file.name: file.read_text().strip() for file in (installation.folder / "secrets").iterdir()}


def request_status(url: str, *, user: str = "", password: str = "") -> int:
    """Return the HTTP status of a page, requested without or with basic authentication."""
    opener = urllib.request.build_opener()
    if user:
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        passwords.add_password(None, url, user, password)
        opener.add_handler(urllib.request.HTTPBasicAuthHandler(passwords))
    try:
        with opener.open(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_first_start_leads_to_a_heartbeat(installation: Installation, port: int) -> None:
    installation.start()
    assert f"port {port} is taken" in installation.output
    assert "reflex policy" in installation.output
    installation.wait_for_heartbeats(1, within_s=FIRST_HEARTBEAT_WITHIN_S)


def test_the_status_has_what_scripts_rely_on(installation: Installation) -> None:
    status = installation.status()
    assert {"completed", "failed", "skipped", "due", "oldest_due_s"} <= set(status["heartbeats"])
    assert status["heartbeats"]["completed"] > 0
    assert {"agents", "queues", "workers", "backlogs", "urls"} <= set(status)
    assert all(status["queues"].values()), "every queue has a worker"
    assert {part["status"] for part in status["parts"]} == {"ready", "done"}


def test_the_doctor_finds_nothing_wrong(installation: Installation) -> None:
    result = installation.arbor("doctor", "--json")
    findings = json.loads(result.stdout)
    assert findings["healthy"], result.stdout
    assert result.returncode == 0


def test_the_log_has_no_secret(installation: Installation) -> None:
    secrets = read_secrets(installation)
    assert secrets.keys() == {
        "master_key",
        "operator_password",
        "postgres_password",
        "postgres_owner_password",
        "valkey_password",
    }
    # Only a terminal shows the operator's password.
    for secret in secrets.values():
        assert secret not in installation.output


def test_no_argument_of_any_process_contains_a_secret(installation: Installation) -> None:
    secrets = read_secrets(installation).values()
    lines = []
    for process in installation.processes():
        # Sessions of the database end at any time.
        with suppress(psutil.NoSuchProcess):
            lines.append(" ".join(process.cmdline()))
    assert any("postgres" in line for line in lines)
    for line in lines:
        assert not [secret for secret in secrets if secret in line], line


def test_the_file_of_addresses_contains_no_secret(installation: Installation) -> None:
    secrets = read_secrets(installation).values()
    text = (installation.folder / "run" / "servers.json").read_text()
    assert not [secret for secret in secrets if secret in text]


@pytest.fixture(scope="module")
def urls(installation: Installation) -> dict[str, str]:
    """Return the addresses of the parts; the ports stay until the end."""
    found: dict[str, str] = installation.status()["urls"]
    return found


def test_the_console_and_flower_require_a_login(installation: Installation, urls: dict[str, str]) -> None:
    password = read_secrets(installation)["operator_password"]
    assert request_status(f"{urls['web']}admin/login/") == 200
    assert request_status(f"{urls['flower']}workers") == 401
    assert request_status(f"{urls['flower']}metrics") == 401
    assert request_status(f"{urls['flower']}workers", user="operator", password="wrong") == 401
    assert request_status(f"{urls['flower']}workers", user="operator", password=password) == 200


@contextmanager
def signed_in(installation: Installation, url: str) -> Iterator[httpx.Client]:
    """Sign in to the console as the first operator."""
    password = read_secrets(installation)["operator_password"]
    with httpx.Client(base_url=url, follow_redirects=True, timeout=20) as client:
        form = {"username": "operator", "password": password}
        client.get("admin/login/")
        client.post("admin/login/", data=form | {"csrfmiddlewaretoken": client.cookies["csrftoken"]})
        yield client


@pytest.fixture(scope="module")
def agent(installation: Installation) -> dict[str, Any]:
    """Return an agent of the demo."""
    first: dict[str, Any] = json.loads(installation.arbor("agent", "list", "--json").stdout)["agents"][0]
    return first


def request_heartbeat(installation: Installation, agent: dict[str, Any]) -> None:
    """Run a heartbeat of an agent by the workers; requested heartbeats are never skipped."""
    result = installation.arbor("agent", "run", agent["name"], "--timeout", "50")
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_chat_message_on_the_page_is_answered_at_once(
    installation: Installation, urls: dict[str, str], agent: dict[str, Any]
) -> None:
    with signed_in(installation, urls["web"]) as client:
        page = f"admin/agents/agent/{agent['id']}/chat/"
        message = {"text": "Who are you?", "csrfmiddlewaretoken": client.cookies["csrftoken"]}
        assert client.post(page, data=message).status_code == 200
        installation.wait_for(lambda: "answer by rule" in client.get(page).text, within_s=ANSWERED_WITHIN_S)


def test_the_master_key_is_rotated_while_everything_runs(
    installation: Installation, urls: dict[str, str], agent: dict[str, Any]
) -> None:
    key = installation.folder / "secrets" / "master_key"
    before, processes = key.read_text(), {name: installation.part(name)["pid"] for name in ("web", "model")}
    completed = installation.completed_heartbeats()
    with signed_in(installation, urls["web"]) as client:
        rotated = installation.arbor("keys", "rotate", "--json")
        assert rotated.returncode == 0, rotated.stderr
        assert json.loads(rotated.stdout)["changed"].keys() >= {"role passwords", "agent keys", "sessions"}
        retired = installation.arbor("keys", "retire")
        assert retired.returncode == 0, retired.stderr
        page = client.get("admin/sessions/")
        assert (page.status_code, page.url.path) == (200, "/admin/sessions/"), "nobody is signed out"
    assert key.read_text() != before
    assert {name: installation.part(name)["pid"] for name in processes} == processes, "no part restarts"
    request_heartbeat(installation, agent)
    assert installation.completed_heartbeats() > completed
    assert json.loads(installation.arbor("doctor", "--json").stdout)["healthy"]


def test_a_second_start_in_the_same_folder_is_refused(installation: Installation) -> None:
    result = installation.arbor("up")
    assert result.returncode == 3
    assert "already runs" in result.stderr


@pytest.mark.parametrize("name", ["heartbeat", "valkey", "postgres", "web"])
def test_a_killed_part_is_restarted(installation: Installation, name: str) -> None:
    before = installation.part(name)
    os.kill(before["pid"], signal.SIGKILL)

    def is_restarted() -> bool:
        # Read once: between two reads the part may end.
        now = installation.part(name)
        return bool(now["status"] == "ready" and now["pid"] != before["pid"])

    installation.wait_for(is_restarted, within_s=STARTED_WITHIN_S)
    assert installation.part(name)["restarts"] == before["restarts"] + 1


def test_heartbeats_resume_after_the_servers_were_killed(
    installation: Installation, agent: dict[str, Any]
) -> None:
    before = installation.completed_heartbeats()
    request_heartbeat(installation, agent)
    assert installation.completed_heartbeats() > before


def test_ctrl_c_stops_everything_and_leaves_no_process(installation: Installation) -> None:
    lines_before = len(installation.lines)
    assert installation.stop(signal.SIGINT) < STOPPED_WITHIN_S
    assert installation.processes() == []
    assert "Traceback" not in "".join(installation.lines[lines_before:])


def test_the_next_start_preserves_the_heartbeats(installation: Installation) -> None:
    installation.start()
    assert installation.preserved_heartbeats() > 0
    assert "shown at the first start" in installation.output


def test_arbor_down_stops_the_installation_from_another_terminal(installation: Installation) -> None:
    assert installation.process is not None
    result = installation.arbor("down")
    assert result.returncode == 0
    assert installation.process.wait(5) == 0
    assert installation.processes() == []
    assert "does not run" in installation.arbor("down").stdout


def test_a_killed_supervisor_does_not_prevent_the_next_start(
    installation: Installation,
) -> None:
    installation.start()
    assert installation.process is not None
    installation.process.kill()
    installation.process.wait()
    _ended, left = psutil.wait_procs(installation.processes(), timeout=15)
    if sys.platform == "linux":
        assert left == []
    installation.start()
    installation.stop(signal.SIGTERM)
    assert installation.processes() == []

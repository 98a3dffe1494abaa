"""The API as a real server: many requests at once, bounded connections, no state between requests."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.conf import settings

from apps.tenants.models import Role, Tenant
from config.environment import with_user
from config.servers.ports import free_port
from config.servers.postgres import EmbeddedPostgres
from tests.support.api import Caller, caller_of

THREADS = 4
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server(postgres: EmbeddedPostgres, django_db_setup: None, tmp_path_factory: Any) -> Iterator[str]:
    """Run `arbor api` against the tests' database, and return its address."""
    with api_process(postgres, tmp_path_factory.mktemp("api")) as address:
        yield address


@contextmanager
def api_process(postgres: EmbeddedPostgres, folder: Path, **own_settings: str) -> Iterator[str]:
    """Run `arbor api` with a log in the folder, and yield its address."""
    # Another process of the tests may look for a port at the same moment.
    port = free_port(18_001 + os.getpid() % 2000)
    urls = {
        f"ARBOR_{name}_DATABASE_URL": with_user(
            postgres.owner_url, settings.DATABASES[alias]["USER"], settings.DATABASES[alias]["PASSWORD"]
        )
        for name, alias in (("APP", "default"), ("OPS", "ops"))
    }
    env = {
        **os.environ,
        **urls,
        "DATABASE_URL": postgres.owner_url,
        "CELERY_BROKER_URL": "memory://",
        "ARBOR_DATA_DIR": str(folder),
        "ARBOR_ENV_FILE": "",
        "ARBOR_API_THREADS": str(THREADS),
        "ARBOR_API_BODY_BYTES": "4096",
        "ARBOR_LOG_FORMAT": "json",
        "ARBOR_MASTER_KEY": base64.b64encode(bytes(range(32))).decode(),
        **own_settings,
    }
    env.pop("DJANGO_SETTINGS_MODULE", None)
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "config.cli", "api", f"--port={port}"],
        cwd=ROOT,
        env=env,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_until_listening(process, port, folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        log.close()
    # uvicorn raises the signal again after its graceful end.
    assert code in (0, -signal.SIGTERM), (folder / "log").read_text()
    assert "Traceback" not in (folder / "log").read_text()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _attempt in range(1200):
        assert process.poll() is None, log.read_text()
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_many_requests_at_once_share_few_connections(
    server: str, tenant: Tenant, other_tenant: Tenant, postgres: EmbeddedPostgres
) -> None:
    callers = [caller_of(tenant, Role.VIEWER), caller_of(other_tenant, Role.VIEWER)]
    answers = asyncio.run(_ask(server, callers, times=64))
    assert answers == ["acme", "globex"] * 64
    with psycopg.connect(postgres.superuser_url) as session:
        rows = session.execute(
            "SELECT state, count(*) FROM pg_stat_activity WHERE application_name = 'arbor api' GROUP BY 1"
        ).fetchall()
    states = {str(state): int(count) for state, count in rows}
    # No transaction is open, and each thread has one connection at most.
    assert states.keys() == {"idle"}
    assert states["idle"] <= THREADS


async def _ask(server: str, callers: list[Caller], *, times: int) -> list[str]:
    async with httpx.AsyncClient(base_url=server, timeout=120) as client:
        limit = asyncio.Semaphore(32)

        async def tenant_of(caller: Caller) -> str:
            async with limit:
                response = await client.get(
                    "/api/v1/tenant", headers={"Authorization": f"Bearer {caller.token}"}
                )
            return str(response.json()["slug"])

        return await asyncio.gather(*(tenant_of(caller) for _ in range(times) for caller in callers))


def test_a_large_body_is_refused_before_it_is_read(server: str, tenant: Tenant) -> None:
    token = caller_of(tenant, Role.OWNER).token
    response = httpx.post(
        f"{server}/api/v1/agents",
        content=b"x" * 5000,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        timeout=60,
    )
    assert response.status_code == 413
    assert response.headers["content-type"] == "application/problem+json"


def test_a_large_file_is_read_from_an_owner_only(server: str, tenant: Tenant) -> None:
    def send(role: Role) -> httpx.Response:
        return httpx.post(
            f"{server}/api/v1/seeds",
            content=b"x" * 100_000,
            headers={
                "Authorization": f"Bearer {caller_of(tenant, role).token}",
                "Content-Type": "application/octet-stream",
                "Idempotency-Key": "once",
            },
            timeout=60,
        )

    refused = send(Role.OWNER)
    assert (refused.status_code, "not a seed" in refused.text) == (422, True)
    assert send(Role.OPERATOR).status_code == 413


def test_documents_may_be_larger_than_other_bodies(server: str, tenant: Tenant) -> None:
    headers = {
        "Authorization": f"Bearer {caller_of(tenant, Role.OWNER).token}",
        "Content-Type": "application/octet-stream",
    }
    response = httpx.post(
        f"{server}/api/v1/documents?name=a.txt", content=b"x " * 50_000, headers=headers, timeout=60
    )
    assert response.status_code == 201, response.text


def test_the_process_is_alive_and_ready(server: str, tenant: Tenant) -> None:
    assert httpx.get(f"{server}/healthz", timeout=60).status_code == 200
    assert httpx.get(f"{server}/readyz", timeout=60).json() == {"database": True, "broker": True}
    document = httpx.get(f"{server}/api/v1/openapi.json", timeout=60).json()
    assert re.match(r"3\.1", document["openapi"])
    unknown = httpx.get(f"{server}/nothing", timeout=60)
    assert (unknown.status_code, unknown.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="the guide uses curl and jq")
def test_the_examples_of_the_guide_work(server: str, tenant: Tenant, templates: None) -> None:
    guide = (ROOT / "docs/how-to/use-the-api.md").read_text()
    script = "\n".join(re.findall(r"```bash\n(.*?)```", guide, re.DOTALL))
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "ARBOR": f"{server}/api/v1", "TOKEN": caller_of(tenant, Role.OPERATOR).token},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "The harbour opens at six." in ran.stdout
    assert '"daily_heartbeats":48' in ran.stdout

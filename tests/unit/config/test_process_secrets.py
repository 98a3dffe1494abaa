"""Secrets of processes, in the environment and in the settings: each has those that it uses, and no others."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.queues import Queue
from config import process_secrets
from config.cli.installation.parts import InstallationPlan, parts_of
from config.credentials import WITHHELD, installation_secrets
from config.environment import OWN_SECRETS
from config.pools import POOLS
from config.process_secrets import (
    ALL_SECRETS,
    own_environment,
    remove_foreign_secrets,
    secrets_of,
    secrets_of_queues,
)
from config.servers import EmbeddedPostgres, EmbeddedValkey
from config.supervisor.fork_server import ForkServer
from tests.unit.config.builders import installation_plan

ROOT = Path(__file__).parents[3]
#: A value for each secret, recognizable by its beginning.
SECRET_VALUES = {name: f"secret-of-{name.lower()}" for name in ALL_SECRETS} | {
    "DATABASE_URL": "postgres://arbor_owner:secret-of-owner@db:5432/arbor"
}
#: The settings with a secret that each process has in its environment.
EXPECTED = {
    "dispatcher": {"ARBOR_APP_DATABASE_URL", "ARBOR_OPS_DATABASE_URL", "CELERY_BROKER_URL"},
    "heartbeat": {
        "ARBOR_APP_DATABASE_URL",
        "CELERY_BROKER_URL",
        "ARBOR_MASTER_KEY",
        "ARBOR_OTHER_MASTER_KEY",
    },
    "model": {
        "ARBOR_APP_DATABASE_URL",
        "ARBOR_OPS_DATABASE_URL",
        "CELERY_BROKER_URL",
        "ARBOR_MASTER_KEY",
        "ARBOR_OTHER_MASTER_KEY",
        "ARBOR_EMAIL_PASSWORD",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENROUTER_API_KEY",
        "GEMINI_API_KEY",
    },
    "maintenance": {"ARBOR_APP_DATABASE_URL", "ARBOR_OPS_DATABASE_URL", "CELERY_BROKER_URL"},
    "scheduler": {"ARBOR_APP_DATABASE_URL", "CELERY_BROKER_URL"},
    "web": {
        "ARBOR_APP_DATABASE_URL",
        "ARBOR_OPS_DATABASE_URL",
        "ARBOR_ACCOUNTS_DATABASE_URL",
        "CELERY_BROKER_URL",
        "ARBOR_MASTER_KEY",
        "ARBOR_OTHER_MASTER_KEY",
        "SECRET_KEY",
        "ARBOR_METRICS_TOKEN",
    },
    "api": {
        "ARBOR_APP_DATABASE_URL",
        "ARBOR_OPS_DATABASE_URL",
        "CELERY_BROKER_URL",
        "ARBOR_MASTER_KEY",
        "ARBOR_OTHER_MASTER_KEY",
    },
    "flower": {"ARBOR_ACCOUNTS_DATABASE_URL", "CELERY_BROKER_URL"},
    "prepare": {
        "DATABASE_URL",
        "ARBOR_APP_DATABASE_URL",
        "ARBOR_OPS_DATABASE_URL",
        "ARBOR_ACCOUNTS_DATABASE_URL",
        "CELERY_BROKER_URL",
        "ARBOR_MASTER_KEY",
        "ARBOR_OTHER_MASTER_KEY",
        "ARBOR_OPERATOR_PASSWORD",
    },
    "fork-server": set(),
    "postgres": set(),
    "valkey": set(),
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallationPlan]:
    """Yield a plan under a supervisor whose own environment and `.env` name every secret."""
    for name in ALL_SECRETS:
        monkeypatch.setenv(name, SECRET_VALUES[name])
        monkeypatch.setenv(f"{name}_FILE", f"/secret-of-file/{name}")
    fork_server = ForkServer({})
    fork_server.prepare()
    yield installation_plan(
        tmp_path,
        postgres=EmbeddedPostgres(tmp_path / "postgres", password="secret-of-superuser"),
        valkey=EmbeddedValkey(tmp_path / "valkey", password="secret-of-valkey"),
        fork_server=fork_server,
        secrets=SECRET_VALUES,
    )
    fork_server.close()


def test_each_process_has_only_its_own_secrets(plan: InstallationPlan) -> None:
    found = {}
    for part in parts_of(plan):
        env = part.launch().env
        found[part.name] = {name for name, value in env.items() if "secret-of" in value}
    assert found == EXPECTED


def test_no_argument_contains_a_secret(plan: InstallationPlan) -> None:
    for part in parts_of(plan):
        assert "secret-of" not in " ".join(part.launch().argv)


def test_the_addresses_for_commands_contain_no_password(plan: InstallationPlan) -> None:
    assert "secret" not in json.dumps(plan.server_urls())


def test_every_queue_and_pool_is_known() -> None:
    assert {queue.value for queue in Queue} == process_secrets._OF_QUEUE.keys()
    for pool in POOLS:
        assert secrets_of_queues(pool.queues) == EXPECTED[pool.name]


def test_every_secret_of_the_settings_belongs_to_a_process() -> None:
    read = set()
    for file in (ROOT / "config").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "secret":
                read |= {ast.literal_eval(node.args[0])} if isinstance(node.args[0], ast.Constant) else set()
    assert "ARBOR_MASTER_KEY" in read, "the search finds what it should"
    assert read <= ALL_SECRETS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ARBOR_EMBEDDING_MODEL", "openai/text-embedding-3-small"),
        ("ARBOR_EMBEDDING_URLS", "openai/old=https://api.openai.com/v1"),
    ],
)
def test_a_key_of_an_embedder_goes_to_those_who_embed(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "OPENAI_API_KEY" not in secrets_of_queues(["heartbeat"])
    monkeypatch.setenv(name, value)
    assert "OPENAI_API_KEY" in secrets_of_queues(["heartbeat"])
    assert "OPENAI_API_KEY" in secrets_of("web")
    assert "OPENAI_API_KEY" not in secrets_of_queues(["dispatch"])


def test_withheld_keys_are_named_to_choose_the_default_model() -> None:
    own = own_environment(
        secrets_of_queues(["heartbeat"]), secrets={"ANTHROPIC_API_KEY": "sk-1"}, environment={}
    )
    assert own[WITHHELD] == "ANTHROPIC_API_KEY"
    assert "sk-1" not in str(own)
    # In a container, the environment names the keys that other services have.
    again = own_environment(frozenset(), secrets={}, environment={WITHHELD: "ANTHROPIC_API_KEY,"})
    assert again[WITHHELD] == "ANTHROPIC_API_KEY"


def test_a_process_started_by_itself_drops_other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ARBOR_EMAIL_PASSWORD", "POSTGRES_PASSWORD", "ARBOR_METRICS_TOKEN"):
        monkeypatch.setenv(name, "secret-of-others")
    monkeypatch.setenv("DATABASE_URL", "postgres://arbor_owner:secret-of-owner@db:5432/arbor")
    # Restored after the test.
    for name in ("ARBOR_MASTER_KEY", "ARBOR_ENV_FILE"):
        monkeypatch.setenv(name, os.environ[name])
    for name in (OWN_SECRETS, WITHHELD, "ARBOR_APP_DATABASE_URL", "CELERY_BROKER_URL"):
        monkeypatch.setenv(name, "")
    roles = installation_secrets()
    remove_foreign_secrets(secrets_of("scheduler"))
    assert "secret-of" not in str(dict(os.environ))
    assert os.environ["DATABASE_URL"] == "postgres://db:5432/arbor"
    assert os.environ["ARBOR_APP_DATABASE_URL"] == roles["ARBOR_APP_DATABASE_URL"]
    assert os.environ.keys().isdisjoint({"ARBOR_OPS_DATABASE_URL", "ARBOR_MASTER_KEY"})


SHOWN = """
import json
from config import settings
databases = {alias: bool(database["PASSWORD"]) for alias, database in settings.DATABASES.items()}
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
from apps.default_model import default_model
print(json.dumps([databases, settings.ARBOR_MASTER_KEYS.read() is None, settings.OPENAI_API_KEY, default_model()]))
"""


def test_settings_look_for_no_secret_that_was_withheld(tmp_path: Path) -> None:
    """Load the settings of a heartbeat worker beside a folder of generated secrets, and a `.env`."""
    (tmp_path / "secrets").mkdir(mode=0o700)
    for name in ("master_key", "postgres_owner_password", "valkey_password"):
        file = tmp_path / "secrets" / name
        file.write_text("ab" * 32)
        file.chmod(0o600)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-the-file\n")
    everything = {
        "DATABASE_URL": "postgres://owner:x@db/arbor",
        "ARBOR_APP_DATABASE_URL": "postgres://app:x@db/arbor",
        "OPENAI_API_KEY": "sk-1",
    }
    environment = {"ARBOR_DATA_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    env = own_environment(secrets_of_queues(["heartbeat"]), secrets=everything, environment=environment)
    env["PYTHONPATH"] = str(ROOT)
    ran = subprocess.run(
        [sys.executable, "-c", SHOWN], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    shown: list[Any] = json.loads(ran.stdout)
    assert shown == [
        {"default": True, "ops": False, "accounts": False, "owner": False},
        True,
        "",
        "openai/gpt-6-luna",
    ]

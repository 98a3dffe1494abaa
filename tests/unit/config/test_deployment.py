"""Deployment files: settings, pools, queues and secrets."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from apps.queues import Queue
from config.pools import POOLS
from config.process_secrets import ALL_SECRETS, secrets_of, secrets_of_queues

ROOT = Path(__file__).parents[3]
#: Set by Arbor for its own processes, or by its environment; not by an operator.
INTERNAL = {
    "ARBOR_ENV_FILE",
    "ARBOR_PROCESS_NAME",
    "ARBOR_READY_FILE",
    "ARBOR_SUPERVISED",
    "ARBOR_OWN_SECRETS",
    "ARBOR_WITHHELD",
    "DJANGO_SETTINGS_MODULE",
}
#: Read by compose itself.
COMPOSE_ONLY = {
    "POSTGRES_PASSWORD",
    "VALKEY_PASSWORD",
    "APP_PASSWORD",
    "OPS_PASSWORD",
    "ACCOUNTS_PASSWORD",
}
#: Services beside the workers, each of which runs the command of its name.
OTHER_SERVICES = ("prepare", "scheduler", "web", "api", "flower")
SECRET = re.compile(r"_KEY$|PASSWORD$|TOKEN$|SECRET$")
#: In the text of every module that reads a setting.
READING = re.compile(r"env\.|getenv|envvar|secret\(|number\(|seconds\(|_port\(")


def is_name(text: object) -> bool:
    return isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", text) is not None


def names_read(tree: ast.AST) -> Iterator[str]:
    """Yield the settings that a module reads, such as by env.str("X"), secret("X") or envvar="X"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            reads = name in ("secret", "whole_number", "number", "seconds", "_port") or re.fullmatch(
                r"(env\.(str|int|float|bool|list|dict)|os\.environ\.get|os\.getenv)", name
            )
            first = node.args[0] if node.args else None
            if reads and isinstance(first, ast.Constant) and is_name(first.value):
                yield str(first.value)
            for keyword in node.keywords:
                if keyword.arg == "envvar" and isinstance(keyword.value, ast.Constant):
                    yield str(keyword.value.value)


@cache
def settings_read() -> frozenset[str]:
    """Return the settings that the code reads and an operator may set."""
    names: set[str] = set()
    for package in ("config", "workers", "apps", "arbor"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text()
            if READING.search(text):
                names.update(names_read(ast.parse(text)))
    return frozenset(names - INTERNAL)


def settings_shown() -> dict[str, str]:
    """Return the settings in `.env.example` with their values."""
    lines = (ROOT / ".env.example").read_text().splitlines()
    matches = (re.fullmatch(r"#? ?([A-Z][A-Z0-9_]+)=(.*)", line) for line in lines)
    return {match[1]: match[2] for match in matches if match}


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    definitions: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return definitions


def test_the_example_names_every_setting_and_no_other() -> None:
    read = settings_read()
    assert "ARBOR_MASTER_KEY" in read, "the search finds what it should"
    assert set(settings_shown()) - COMPOSE_ONLY == read


def defaults_of(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the settings that a module reads with a default, and their defaults."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, ast.Call) and re.match(
            r"env\.|(whole_)?number$|seconds$", ast.unparse(node.func)
        ):
            for keyword in node.keywords:
                if keyword.arg == "default":
                    expression = compile(ast.Expression(keyword.value), module.__name__, "eval")
                    yield ast.literal_eval(node.args[0]), eval(expression, vars(module))


def as_shown(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("topic", sorted(file.stem for file in (ROOT / "config/settings").glob("[a-z]*.py")))
def test_the_example_shows_the_defaults(topic: str) -> None:
    shown = settings_shown()
    # An example of a setting without a default may show the form of its value.
    defaults = {
        name: as_shown(default)
        for name, default in defaults_of(importlib.import_module(f"config.settings.{topic}"))
        if default not in ("", [], {}) and shown[name]
    }
    assert defaults == {name: shown[name] for name in defaults}


def test_the_example_sets_nothing_and_shows_no_secret() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == []
    assert {name: value for name, value in settings_shown().items() if SECRET.search(name) and value} == {}


def test_the_pools_serve_every_queue_once() -> None:
    served = [queue for pool in POOLS for queue in pool.queues]
    assert sorted(served) == sorted(queue.value for queue in Queue)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.name)
def test_compose_runs_each_pool_as_a_service_of_its_own(pool: Any, services: dict[str, Any]) -> None:
    service = services[pool.name]
    assert f"--queues={','.join(pool.queues)}" in service["command"]
    assert f"--pool={pool.kind}" in service["command"]
    assert service["deploy"]["replicas"] >= 1


def test_compose_runs_the_other_parts_too(services: dict[str, Any]) -> None:
    assert set(services) == {pool.name for pool in POOLS} | {"postgres", "valkey", *OTHER_SERVICES}
    for name in OTHER_SERVICES:
        assert services[name]["command"][0] == name


def test_compose_watches_the_health_of_every_lasting_service(services: dict[str, Any]) -> None:
    for name, service in services.items():
        if name != "prepare":
            assert service["healthcheck"]["test"], name


def test_compose_has_no_default_for_any_secret() -> None:
    used = re.findall(r"\$\{(\w+)(:[^}]*)?\}", (ROOT / "compose.yaml").read_text())
    assert used
    for name, rest in used:
        if SECRET.search(name):
            assert rest in (":-", f":+{name}") or rest.startswith(":?"), f"{name}{rest}"
    required = {name for name, rest in used if rest.startswith(":?")}
    assert required == COMPOSE_ONLY | {"ARBOR_MASTER_KEY", "ARBOR_OPERATOR_PASSWORD"}


def test_compose_passes_on_settings_that_exist(services: dict[str, Any]) -> None:
    passed = set(services["web"]["environment"])
    assert passed - COMPOSE_ONLY - INTERNAL <= settings_read()


def test_compose_leaves_secure_cookies_to_the_origins(services: dict[str, Any]) -> None:
    # `.env` may still set it; a value here would replace the default, which depends on CSRF_TRUSTED_ORIGINS.
    assert "ARBOR_SECURE_COOKIES" not in services["web"]["environment"]


def test_compose_gives_each_service_its_own_secrets_only(services: dict[str, Any]) -> None:
    expected = {pool.name: secrets_of_queues(pool.queues) for pool in POOLS}
    expected |= {name: secrets_of(name) for name in OTHER_SERVICES}
    embedding_services = {"prepare", "web", "api", "heartbeat", "maintenance", "model"}
    for name, own in expected.items():
        environment = services[name]["environment"]
        missing = ALL_SECRETS - environment.keys()
        assert not missing, f"{name} reads {missing} from .env"
        given = {key for key in ALL_SECRETS if environment[key]} - {"DATABASE_URL"}
        # A process decides at its start whether its embedder uses this key.
        optional = {"OPENAI_API_KEY"} if name in embedding_services else set()
        assert given - optional == own - optional - {"DATABASE_URL"}, name


def test_compose_gives_the_owner_password_to_no_serving_process(services: dict[str, Any]) -> None:
    serving = {name: service for name, service in services.items() if name not in {"postgres", "prepare"}}
    for name, service in serving.items():
        values = [str(value) for value in service["environment"].values()]
        assert not [value for value in values if "POSTGRES_PASSWORD" in value or "arbor_owner" in value], name
        if "env_file" in service:
            assert service["environment"]["POSTGRES_PASSWORD"] == "", f"{name} reads it from .env"
    assert "arbor_owner:" in services["prepare"]["environment"]["DATABASE_URL"]


def test_every_published_port_is_on_the_loopback(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_image_has_the_command_that_the_docs_execute() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert any(line.startswith("RUN ") and "> /usr/local/bin/arbor" in line for line in lines)
    assert 'ENTRYPOINT ["arbor"]' in lines


def test_the_image_runs_as_an_unprivileged_user() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert "USER arbor" in lines
    assert not any(re.match(r"(ENV|ARG) .*(PASSWORD|SECRET|_KEY)", line) for line in lines)


def test_the_image_has_the_packages_of_each_setting() -> None:
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"} <= pins(
        "requirements-runtime.lock"
    ).keys()


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["requirements-runtime.lock", "requirements-local-model.lock"])
def test_the_lock_files_agree(name: str) -> None:
    pinned = pins("requirements.lock")
    for package, version in pins(name).items():
        assert pinned.get(package, version) == version


@pytest.mark.parametrize(
    "file", [*ROOT.glob("*.lock"), *(ROOT / "scripts").glob("*.lock")], ids=lambda file: file.name
)
def test_a_lock_has_hashes_and_no_addresses(file: Path) -> None:
    text = file.read_text()
    assert "://" not in text
    assert len(re.findall(r"--hash=sha256:", text)) >= len(re.findall(r"^[a-z0-9.-]+==", text, re.MULTILINE))

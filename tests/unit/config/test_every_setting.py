"""Effects of every setting, by a probe here or by a test that sets the setting."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from apps import providers, web
from apps.default_model import credentials
from apps.knowledge.services import indexing
from apps.memories.services.clusters import job as clustering
from apps.memories.services.retention.forgetting import forgetting_policy
from apps.memories.services.store.appraisal import ttl_of, word_lists
from apps.queues import Task
from apps.tenants.protection import statement_timeout_ms
from apps.tools.services import servers
from arbor.errors import Invalid
from arbor.history import Record, setting_of
from arbor.knowledge.merging import SearchSource, SourceResult, merge, recency_of
from arbor.memory.values import Retention
from arbor.models.handles import Provider
from config.cli.checks.finding import CheckVerdict
from config.cli.checks.models import check_tokenizers
from config.cli.installation import up
from config.environment import data_dir
from config.pools import worker_pools
from config.supervisor.fork_server import ForkServer
from config.supervisor.run_folder import RunFolder
from tests.support.command_tree import nodes
from tests.support.settings import FOLDER, read_settings
from tests.unit.config.test_deployment import names_read, settings_read
from tests.unit.models.test_token_counts import WORDS
from workers.schedule import entries

LONG_AGO, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[3]
#: Read by Django, by their names.
OF_DJANGO = {
    "ALLOWED_HOSTS",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "SECRET_KEY",
    "SESSION_COOKIE_SECURE",
    "SECURE_HSTS_SECONDS",
    "MAILERS",
}
#: A setting as a keyword, assigned, as a key, or as an argument of setattr or setenv.
VARIED = re.compile(
    r"""\b(\w+)\s*=(?!=)|settings\.(\w+),|"(\w+)"[:\]]|(?:setattr\(\s*settings,|setenv\()\s*"(\w+)","""
)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Two values of a setting in the environment, and an effect that must differ between them."""

    values: tuple[str, str]
    shows: Callable[[], Any]
    #: Further settings that the probe needs.
    beside: dict[str, str] = field(default_factory=dict)


def loaded(name: str) -> Any:
    """Return a setting as a process that starts in this environment loads it."""
    return read_settings()[name]


def applied(name: str, effect: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that reads an effect under a setting as a process that starts in this environment loads it."""

    def run() -> Any:
        with override_settings(**{name: loaded(name)}):
            return effect()

    return run


def database(alias: str, key: str) -> Callable[[], Any]:
    return lambda: loaded("DATABASES")[alias][key]


def period(task: Task, setting: str) -> Callable[[], Any]:
    return applied(setting, lambda: entries()[task.value]["schedule"])


def ttl(kind: Retention) -> Callable[[], Any]:
    return applied("ARBOR_TTL_DAYS", lambda: ttl_of(kind))


def credential(setting: str) -> Probe:
    """Return a probe of the field that a setting fills in the providers' credentials."""
    return Probe(
        values=("http://a.example", "http://b.example"),
        shows=applied(setting, lambda: getattr(credentials.__wrapped__(), setting.lower())),
    )


def limit(setting: str) -> Callable[[], Any]:
    return applied(setting, forgetting_policy)


def mail(first: str, other: str, **beside: str) -> Probe:
    server = {"ARBOR_EMAIL_HOST": "mail.example", "ARBOR_EMAIL_FROM": "arbor@mail.example"}
    return Probe(
        values=(first, other),
        shows=lambda: loaded("MAILERS")["default"]["OPTIONS"],
        beside={**server, **beside},
    )


def largest_page() -> Any:
    web.fetch.cache_clear()
    try:
        return vars(web.fetch())["_page_bytes"]
    finally:
        web.fetch.cache_clear()


def is_http_accepted() -> bool:
    try:
        servers._valid_url("http://tools.example/mcp")
    except Invalid:
        return False
    return True


def planned(name: str) -> Callable[[], Any]:
    def plan() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ForkServer, "is_possible", lambda: False)
            made = up.make_plan(RunFolder(data_dir()), only=frozenset({"web", "api", "flower"}), demo=False)
        return getattr(made, name)

    return plan


def history_age(record: Record) -> Callable[[], Any]:
    return lambda: loaded("ARBOR_HISTORY_AGES")[record]


def parameter(command: str, name: str) -> Callable[[], Any]:
    return lambda: nodes()[(command,)].make_context(command, []).params[name]


def pool_value(name: str, key: str) -> Callable[[], Any]:
    return lambda: next(vars(pool)[key] for pool in worker_pools() if pool.name == name)


PROBES: dict[str, Probe] = {
    "ALLOWED_HOSTS": Probe(values=("a.example", "b.example"), shows=lambda: loaded("ALLOWED_HOSTS")),
    "CSRF_TRUSTED_ORIGINS": Probe(
        values=("https://a.example", "https://b.example"), shows=lambda: loaded("CSRF_TRUSTED_ORIGINS")
    ),
    "DEBUG": Probe(values=("true", "false"), shows=lambda: loaded("WHITENOISE_AUTOREFRESH")),
    "SECRET_KEY": Probe(values=("one", "two"), shows=lambda: loaded("SECRET_KEY")),
    "ARBOR_SECURE_COOKIES": Probe(values=("true", "false"), shows=lambda: loaded("CSRF_COOKIE_SECURE")),
    "ARBOR_TLS": Probe(values=("true", "false"), shows=lambda: loaded("SECURE_SSL_REDIRECT")),
    "ARBOR_HSTS_S": Probe(
        values=("60", "90"), shows=lambda: loaded("SECURE_HSTS_SECONDS"), beside={"ARBOR_TLS": "true"}
    ),
    "ARBOR_SESSION_AGE_S": Probe(values=("90000", "99000"), shows=lambda: loaded("SESSION_COOKIE_AGE")),
    "ARBOR_SESSION_IDLE_S": Probe(values=("60", "90"), shows=lambda: loaded("ARBOR_SESSION_IDLE")),
    "ARBOR_SIGN_IN_FAILURES": Probe(values=("3", "4"), shows=lambda: loaded("ARBOR_SIGN_IN_FAILURES")),
    "ARBOR_SIGN_IN_WINDOW_S": Probe(values=("60", "90"), shows=lambda: loaded("ARBOR_SIGN_IN_WINDOW")),
    "ARBOR_PAGES_PER_MINUTE": Probe(values=("1", "2"), shows=lambda: loaded("ARBOR_PAGES_PER_MINUTE")),
    "ARBOR_ACTS_PER_MINUTE": Probe(values=("1", "2"), shows=lambda: loaded("ARBOR_ACTS_PER_MINUTE")),
    "ARBOR_SEARCH_HALF_LIFE_DAYS": Probe(
        values=("7", "30"),
        shows=lambda: recency_of(LONG_AGO, now=LATER, half_life=loaded("ARBOR_SEARCH_HALF_LIFE")),
    ),
    "ARBOR_SEARCH_WEIGHTS": Probe(
        values=("recency=0", "recency=1"),
        shows=lambda: merge(
            [SourceResult(source=SearchSource.AUDIT, id="1", content="x", at=LATER, similarity=1)],
            now=LATER,
            weights=loaded("ARBOR_SEARCH_WEIGHTS"),
        ),
    ),
    "ARBOR_API_HOST": Probe(values=("127.0.0.2", "127.0.0.3"), shows=planned("api_host")),
    "ARBOR_API_PORT": Probe(values=("18123", "18124"), shows=planned("api_port")),
    "ARBOR_PROXIES": Probe(values=("0", "1"), shows=lambda: loaded("ARBOR_PROXIES")),
    "ARBOR_OPS_DATABASE_URL": Probe(
        values=("postgres://ops@a/arbor", "postgres://ops@b/arbor"), shows=database("ops", "HOST")
    ),
    "ARBOR_APP_DATABASE_URL": Probe(
        values=("postgres://app@a/arbor", "postgres://app@b/arbor"), shows=database("default", "HOST")
    ),
    "ARBOR_ACCOUNTS_DATABASE_URL": Probe(
        values=("postgres://accounts@a/arbor", "postgres://accounts@b/arbor"),
        shows=database("accounts", "HOST"),
    ),
    "ARBOR_ACCOUNTS_ROLE": Probe(values=("accounts_a", "accounts_b"), shows=database("accounts", "USER")),
    "ARBOR_OPS_ROLE": Probe(values=("ops_a", "ops_b"), shows=database("ops", "USER")),
    "ARBOR_APP_ROLE": Probe(values=("app_a", "app_b"), shows=database("default", "USER")),
    "ARBOR_STATEMENT_TIMEOUT_S": Probe(
        values=("60", "120"), shows=applied("ARBOR_STATEMENT_TIMEOUT", statement_timeout_ms)
    ),
    "ARBOR_PREPARED_STATEMENTS": Probe(values=("true", "false"), shows=database("default", "OPTIONS")),
    "ARBOR_PROCESS_NAME": Probe(values=("one", "two"), shows=database("default", "OPTIONS")),
    "REDIS_URL": Probe(
        values=("redis://a:6379/0", "redis://b:6379/0"), shows=lambda: loaded("CELERY_BROKER_URL")
    ),
    **{
        name: credential(name)
        for name in (
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_ORG_ID",
            "OPENAI_PROJECT_ID",
            "OPENROUTER_API_KEY",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "GEMINI_API_KEY",
            "OLLAMA_HOST",
        )
    },
    "OPENAI_API_BASE": Probe(
        values=("https://a.example/v1", "https://b.example/v1"), shows=lambda: loaded("OPENAI_BASE_URL")
    ),
    "ARBOR_MCP_ALLOW_HTTP": Probe(
        values=("false", "true"), shows=applied("ARBOR_MCP_ALLOW_HTTP", is_http_accepted)
    ),
    "ARBOR_REACH_OUT_COOLDOWN_H": Probe(
        values=("1", "0.5"), shows=lambda: loaded("ARBOR_CONTACT_LIMITS").cooldown
    ),
    "ARBOR_REACH_OUT_PUBLIC_PER_DAY": Probe(
        values=("1", "2"), shows=lambda: loaded("ARBOR_CONTACT_LIMITS").public_per_day
    ),
    "OTEL_EXPORTER_OTLP_ENDPOINT": Probe(
        values=("", "http://a.example"), shows=lambda: loaded("ARBOR_EXPORT_SPANS")
    ),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": Probe(
        values=("", "http://a.example"), shows=lambda: loaded("ARBOR_EXPORT_SPANS")
    ),
    "ARBOR_EMAIL_HOST": mail("a.example", "b.example"),
    "ARBOR_EMAIL_PORT": mail("25", "587"),
    "ARBOR_EMAIL_USER": mail("ada", "grace"),
    "ARBOR_EMAIL_PASSWORD": mail("one", "two", ARBOR_EMAIL_USER="ada"),
    "ARBOR_EMAIL_SECURITY": mail("tls", "starttls"),
    "ARBOR_EMAIL_TIMEOUT_S": mail("5", "10"),
    "ARBOR_LOG_FORMAT": Probe(
        values=("json", "console"),
        shows=lambda: [
            type(processor) for processor in loaded("LOGGING")["formatters"]["arbor"]["processors"]
        ],
    ),
    "ARBOR_LOG_LEVEL": Probe(values=("DEBUG", "ERROR"), shows=lambda: loaded("LOGGING")["root"]["level"]),
    "ARBOR_DISPATCH_PERIOD_S": Probe(values=("1", "2"), shows=period(Task.DISPATCH, "ARBOR_DISPATCH_PERIOD")),
    "ARBOR_SKILLS_PERIOD_S": Probe(values=("5", "10"), shows=period(Task.LOAD_SKILLS, "ARBOR_SKILLS_PERIOD")),
    "ARBOR_OUTBOX_PERIOD_S": Probe(values=("1", "2"), shows=period(Task.SWEEP_OUTBOX, "ARBOR_OUTBOX_PERIOD")),
    "ARBOR_AUDIT_SEAL_PERIOD_S": Probe(
        values=("10", "20"), shows=period(Task.SEAL_AUDIT, "ARBOR_AUDIT_SEAL_PERIOD")
    ),
    "ARBOR_MODEL_THREADS": Probe(values=("10", "20"), shows=pool_value("model", "concurrency")),
    "ARBOR_MODEL_CONNECTIONS": Probe(values=("5", "6"), shows=pool_value("model", "env")),
    "ARBOR_TTL_ROUTINE_DAYS": Probe(values=("1", "2"), shows=ttl(Retention.ROUTINE)),
    "ARBOR_TTL_TASK_DAYS": Probe(values=("1", "2"), shows=ttl(Retention.TASK)),
    "ARBOR_TTL_DECISION_DAYS": Probe(values=("1", "0"), shows=ttl(Retention.DECISION)),
    "ARBOR_TTL_ERROR_DAYS": Probe(values=("1", "2"), shows=ttl(Retention.ERROR)),
    "ARBOR_ARCHIVE_BELOW": Probe(values=("0.1", "0.2"), shows=limit("ARBOR_ARCHIVE_BELOW")),
    "ARBOR_CLEANUP_BELOW": Probe(values=("0.3", "0.4"), shows=limit("ARBOR_CLEANUP_BELOW")),
    "ARBOR_FORGETTING_GRACE_H": Probe(values=("1", "2"), shows=limit("ARBOR_FORGETTING_GRACE")),
    "ARBOR_CLUSTER_PERIOD_S": Probe(
        values=("60", "120"), shows=applied("ARBOR_CLUSTER_PERIOD", lambda: clustering._due())
    ),
    "ARBOR_WEB_PAGE_BYTES": Probe(
        values=("1000", "2000"), shows=applied("ARBOR_WEB_PAGE_BYTES", largest_page)
    ),
    "ARBOR_PROVIDER_CALLS": Probe(
        values=("ollama=1", "ollama=9"),
        shows=applied("ARBOR_PROVIDER_CALLS", lambda: providers.calls_limit(Provider.OLLAMA)),
    ),
    "ARBOR_DOCUMENT_MB": Probe(values=("1", "2"), shows=lambda: loaded("FILE_UPLOAD_MAX_MEMORY_SIZE")),
    "ARBOR_DOCUMENT_PAGES": Probe(
        values=("1", "2"), shows=applied("ARBOR_DOCUMENT_PAGES", indexing.reading_limits)
    ),
    "ARBOR_DOCUMENT_CHARACTERS": Probe(
        values=("1", "2"), shows=applied("ARBOR_DOCUMENT_CHARACTERS", indexing.reading_limits)
    ),
    "ARBOR_DOCUMENT_READ_S": Probe(
        values=("1", "2"), shows=applied("ARBOR_DOCUMENT_READ_S", indexing.reading_limits)
    ),
    "ARBOR_DOCUMENT_READ_MB": Probe(
        values=("256", "512"), shows=applied("ARBOR_DOCUMENT_READ_MB", indexing.reading_limits)
    ),
    "ARBOR_PASSAGE_TOKENS": Probe(
        values=("200", "400"), shows=applied("ARBOR_PASSAGE_TOKENS", indexing.passage_size)
    ),
    "ARBOR_PASSAGE_OVERLAP": Probe(
        values=("0", "20"), shows=applied("ARBOR_PASSAGE_OVERLAP", indexing.passage_size)
    ),
    "ARBOR_WEB_HOST": Probe(values=("127.0.0.1", "0.0.0.0"), shows=planned("web_host")),
    "ARBOR_WEB_PROCESSES": Probe(values=("1", "2"), shows=parameter("web", "processes")),
    "ARBOR_FLOWER_HOST": Probe(values=("127.0.0.1", "0.0.0.0"), shows=parameter("flower", "host")),
    **{setting_of(record): Probe(values=("40", "0"), shows=history_age(record)) for record in Record},
}


#: Settings with tests of their own in this file.
VARIED_BELOW = {"ARBOR_IMPORTANCE_WORDS", "ARBOR_TOKENIZERS"}


@pytest.mark.parametrize("name", PROBES)
def test_a_setting_changes_its_effect(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = PROBES[name]
    for key, value in probe.beside.items():
        monkeypatch.setenv(key, value)
    values = []
    for value in probe.values:
        monkeypatch.setenv(name, value)
        values.append(probe.shows())
    assert values[0] != values[1]


def test_further_words_of_importance_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.yaml").write_text("remember: [mark my words]")
    monkeypatch.setenv("ARBOR_IMPORTANCE_WORDS", str(tmp_path / "words.yaml"))
    assert applied("ARBOR_IMPORTANCE_WORDS", word_lists)() != word_lists()


def test_a_tokenizer_counts_for_its_models_and_a_wrong_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_tokenizers().detail == "none: tokens are estimated"
    words, broken = tmp_path / "tokenizer.json", tmp_path / "broken.json"
    words.write_text(json.dumps(WORDS))
    broken.write_text("{}")
    monkeypatch.setenv("ARBOR_TOKENIZERS", f"ollama={words},vllm={broken}")

    counters = applied("ARBOR_TOKENIZERS", providers.token_counters)()
    assert counters["ollama"]("the tide") == 2
    assert "vllm" not in counters
    finding = applied("ARBOR_TOKENIZERS", check_tokenizers)()
    assert (finding.verdict, finding.detail.split(" is ")[0]) == (CheckVerdict.WARN, "the file of vllm")


def test_each_setting_is_varied_by_a_test() -> None:
    tests = "\n".join(file.read_text() for file in _files("tests") if file.name != Path(__file__).name)
    made_from = _attributes()
    varied = {name for names in VARIED.findall(tests) for name in names}
    missing = [
        name
        for name in sorted(settings_read() - PROBES.keys() - VARIED_BELOW)
        if not varied & {name, *made_from.get(name, ())}
    ]
    assert missing == [], "add a probe, or a test that sets it"


def test_each_setting_is_read_by_the_code() -> None:
    code = "\n".join(
        file.read_text() for file in _files("apps", "workers", "config") if file.parent != FOLDER
    )
    module = _text_of_settings()
    read = set(re.findall(r"settings\.(\w+)", code))
    unread = [
        attribute
        for attributes in _attributes().values()
        for attribute in attributes - OF_DJANGO
        # By another part of the settings, or by the code.
        if attribute not in read and len(re.findall(rf"\b{attribute}\b", module)) < 2
    ]
    assert unread == []


def _attributes() -> dict[str, set[str]]:
    """Return, for each name in the environment, the names in `config.settings` that are made from it."""
    targets: dict[str, set[str]] = {}
    for statement in ast.parse(_text_of_settings()).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            for name in names_read(statement.value):
                targets.setdefault(name, set()).add(ast.unparse(target))
    return targets


def _text_of_settings() -> str:
    """Return the modules of the settings as one text."""
    modules = "\n".join(file.read_text() for file in sorted(FOLDER.glob("*.py")))
    return modules.replace("from __future__ import annotations\n", "")


def _files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))

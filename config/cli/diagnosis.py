"""What `arbor doctor` looks at: each check answers with what it saw and, if something is wrong, with the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import httpx
from django.conf import settings
from django.db import DatabaseError, connections
from django.db.migrations.executor import MigrationExecutor
from kombu import Connection
from kombu.exceptions import OperationalError as BrokerError

from apps import web
from apps.agents.models import AgentKey
from apps.contacts.services.figures import installation_figures
from apps.heartbeats.services.processes import SILENT_AFTER, living_processes
from apps.memories.services import embedders
from apps.memories.services.embedding_backlog import embedding_backlog
from apps.memories.services.health import read_health
from apps.providers import default_model, model_for
from apps.queues import Queue
from apps.tenants.checks import unprotected_tables, unsafe_role
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.web import web_missing
from arbor.agents.identity import SealedKey, open_private_key
from arbor.embedding.models import AtStorage
from arbor.errors import ArborError, ConfigurationInvalid
from arbor.memory.health import State
from arbor.models.handles import Handle

#: Below this, pgvector has faults that destroy indexes or overrun buffers.
OLDEST_VECTOR = (0, 8, 4)
_BROKER_WITHIN_S = 1
_CLOCKS_WITHIN_S = 5.0
#: A message that is due this long waits for a worker, not for its receiver.
_OUTBOX_BEHIND_S = 300
_TENANTS_TRIED, _KEYS_TRIED = 20, 3
#: Embedding models, beside the settings', that are asked whether they answer.
_MODELS_TRIED = 5
_BACKLOG_WITHIN = timedelta(minutes=5)
_EMBEDDER_REMEDY = "correct ARBOR_EMBEDDING_MODEL, ARBOR_EMBEDDING_DIMENSION, ARBOR_EMBEDDING_URL and its key"


class Verdict(StrEnum):
    """How a check came out."""

    #: As it should be.
    OK = "ok"
    #: It works, but a person should know.
    WARN = "warn"
    #: It does not work.
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check saw."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""


def _ok(check: str, detail: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, detail=detail)


def _warn(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=Verdict.WARN, detail=detail, remedy=remedy)


def _fail(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAIL, detail=detail, remedy=remedy)


def diagnose() -> Iterator[Finding]:
    """Look at everything, one check after the other; what needs the database is left out when it is away."""
    yield check_master_key()
    database = check_database()
    yield database
    if database.verdict is Verdict.OK:
        for check in _IN_DATABASE:
            yield from _guarded(check)
    yield check_broker()
    yield check_model()
    yield check_embedder()
    yield check_web()


def _guarded(check: Callable[[], Finding]) -> Iterator[Finding]:
    """Run a check; a table that is not there yet is the migrations' finding, not a crash."""
    try:
        yield check()
    except DatabaseError as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        yield _fail(name, str(error).strip().splitlines()[0], "run `arbor prepare`")


def check_master_key() -> Finding:
    """See that there is a master key."""
    if settings.ARBOR_MASTER_KEY is None:
        return _fail(
            "master key",
            "there is none: agents cannot be made and their keys not opened",
            "run `arbor up` once, or set ARBOR_MASTER_KEY_FILE",
        )
    return _ok("master key", "present")


def check_database() -> Finding:
    """See that both serving roles can sign in."""
    for alias in (APP, OPS):
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT current_setting('server_version')")
                version = cursor.fetchone()[0]
        except DatabaseError as error:
            where = settings.DATABASES[alias]
            return _fail(
                "database",
                f"{where['USER']} cannot sign in at {where['HOST']}:{where['PORT']}: {str(error).strip().splitlines()[0]}",
                "start it (`arbor up`), or correct DATABASE_URL and run `arbor prepare`",
            )
    return _ok("database", f"PostgreSQL {version}")


def check_role() -> Finding:
    """See that row-level security binds the serving role."""
    faults = [*unsafe_role(), *unprotected_tables()]
    if faults:
        return _fail("roles and policies", "; ".join(faults), "run `arbor prepare`")
    return _ok("roles and policies", "row-level security binds the serving role on every tenant's table")


def check_migrations() -> Finding:
    """See that every migration is applied."""
    executor = MigrationExecutor(connections[APP])
    waiting = [str(step) for step, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    if waiting:
        return _fail(
            "migrations", f"{len(waiting)} not applied: {', '.join(waiting[:3])}", "run `arbor prepare`"
        )
    return _ok("migrations", "all applied")


def check_vectors() -> Finding:
    """See that the extension is new enough."""
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return _fail("vectors", "the extension is missing", "run `CREATE EXTENSION vector` as a superuser")
    version = str(row[0])
    if tuple(map(int, version.split("."))) < OLDEST_VECTOR:
        return _fail("vectors", f"pgvector {version} damages indexes", "update it to 0.8.4 or later")
    return _ok("vectors", f"pgvector {version}")


def check_clock() -> Finding:
    """See that this machine and the database agree on the time: due times are compared with it."""
    with connections[APP].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        apart = abs((datetime.now(UTC) - cursor.fetchone()[0]).total_seconds())
    if apart > _CLOCKS_WITHIN_S:
        return _warn("clock", f"{apart:.0f} s apart from the database", "let NTP keep both machines' time")
    return _ok("clock", "agrees with the database")


def check_keys() -> Finding:
    """See that the agents' sealed keys open under this master key."""
    if settings.ARBOR_MASTER_KEY is None:
        return _fail("agents' keys", "cannot be opened without the master key", "bring the master key back")
    keys = [key for tenant in Tenant.objects.using(OPS).all()[:_TENANTS_TRIED] for key in _some_keys(tenant)]
    for key in keys:
        try:
            open_private_key(
                SealedKey.from_json(key.sealed_private_key),
                master_key=settings.ARBOR_MASTER_KEY,
                agent_public_id=key.agent.public_id,
                tenant_id=str(key.tenant_id),
            )
        except ArborError as error:
            return _fail("agents' keys", str(error), "start with the master key the agents were made under")
    return _ok("agents' keys", f"{len(keys)} tried, all open" if keys else "no agents yet")


def _some_keys(tenant: Tenant) -> list[AgentKey]:
    # As the application does: the operations role may not read keys.
    with tenant_transaction(tenant.id):
        return list(AgentKey.objects.select_related("agent")[:_KEYS_TRIED])


def check_beat() -> Finding:
    """See that the schedule was heard of lately."""
    if any(process.kind == "beat" for process in living_processes()):
        return _ok("beat", f"heard of in the last {SILENT_AFTER.total_seconds():.0f} s")
    return _fail("beat", "silent: no agent becomes due", "run `arbor up` or `arbor beat`")


def check_workers() -> Finding:
    """See that some worker listens to each queue."""
    workers = [process for process in living_processes() if process.kind == "worker"]
    heard = {queue for worker in workers for queue in worker.queues.split(",")}
    missing = [queue.value for queue in Queue if queue.value not in heard]
    if missing:
        return _fail(
            "workers",
            f"nobody listens to {', '.join(missing)}",
            f"run `arbor up` or `arbor worker --queues {','.join(missing)}`",
        )
    return _ok("workers", f"{len(workers)} for {len(heard)} queues")


def check_maintenance() -> Finding:
    """See that maintenance keeps up."""
    health = read_health()
    if not health.findings:
        return _ok("maintenance", f"keeps up; {len(health.jobs)} jobs have been heard of")
    state, what, remedy = health.findings[0]
    others = len(health.findings) - 1
    detail = f"{what}; {others} more in `arbor status`" if others else what
    told = _fail if state is State.CRITICAL else _warn
    return told("maintenance", detail, remedy)


def check_outbox() -> Finding:
    """See that what agents send arrives."""
    figures = installation_figures()
    if figures.failed:
        return _warn(
            "outbox",
            f"{figures.failed} messages of agents were not delivered",
            "see `arbor outbox list --status failed`; then retry or cancel each",
        )
    if figures.oldest_due_s > _OUTBOX_BEHIND_S:
        return _warn(
            "outbox",
            f"the oldest message has been due for {figures.oldest_due_s:.0f} s",
            "run `arbor up` or `arbor worker --queues outbox --pool threads`",
        )
    return _ok(
        "outbox",
        f"{figures.waiting} messages wait for their next try" if figures.waiting else "nothing waits",
    )


def check_broker() -> Finding:
    """See that the broker answers, on a connection of our own and without retries."""
    url = settings.CELERY_BROKER_URL
    shown = Connection(url).as_uri()
    try:
        with Connection(
            url,
            connect_timeout=_BROKER_WITHIN_S,
            transport_options={
                "socket_connect_timeout": _BROKER_WITHIN_S,
                "socket_timeout": _BROKER_WITHIN_S,
            },
        ) as connection:
            connection.ensure_connection(max_retries=1, timeout=_BROKER_WITHIN_S)
    except (BrokerError, OSError) as error:
        return _fail(
            "broker",
            f"{shown} does not answer: {error}",
            "start it (`arbor up`), or correct CELERY_BROKER_URL",
        )
    return _ok("broker", shown)


def check_model() -> Finding:
    """See which model thinks, and that it can be asked as far as the settings tell."""
    handle = default_model()
    try:
        model_for(handle)
    except ArborError as error:
        return _fail("model", str(error), "set ARBOR_DEFAULT_MODEL=provider/model and that provider's key")
    if Handle.parse(handle).provider == "reflex":
        return _warn(
            "model",
            "none: agents act by the reflex policy (fixed rules, no language model)",
            "set OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST",
        )
    return _ok("model", handle)


def check_embedder() -> Finding:
    """See that the embedder of new minds gives vectors of the right dimension."""
    try:
        AtStorage.parse(settings.ARBOR_EMBED_AT_STORAGE)
        found = embedders.check_embedder()
    except ConfigurationInvalid as error:
        return _fail("embedder", str(error), _EMBEDDER_REMEDY)
    if found.error:
        return _fail("embedder", found.error, _EMBEDDER_REMEDY)
    return _ok("embedder", f"{found.made_by}, {found.model.dimension} dimensions, {_milliseconds(found)}")


def check_web() -> Finding:
    """See whether agents can inquire on the web; that they cannot is no fault."""
    if missing := web_missing():
        return _ok("web", f"closed: {missing}; no agent inquires")
    try:
        web.search()
        web.fetch()
    except ConfigurationInvalid as error:
        return _fail("web", str(error), "correct ARBOR_SEARCH_URL and ARBOR_WEB_ALLOW")
    allowed = ", ".join(sorted(settings.ARBOR_WEB_ALLOW)[:5])
    if "*" in settings.ARBOR_WEB_ALLOW:
        allowed = "every public address"
    return _ok("web", f"searched by {httpx.URL(settings.ARBOR_SEARCH_URL).host}; agents may read {allowed}")


def check_minds() -> Finding:
    """See that every agent's embedder can be asked, and that none is left behind with another than the settings name."""
    try:
        others = embedders.other_models()
    except ConfigurationInvalid as error:
        return _fail("minds", str(error), _EMBEDDER_REMEDY)
    if not others:
        return _ok("minds", "all agents' vectors are of the settings' embedding model")
    unreachable = [
        f"{other.agents} agents have {other.model} and recall by words alone: {found.error}"
        for other in others[:_MODELS_TRIED]
        if (found := embedders.check_embedder(other.model)).error
    ]
    if unreachable:
        return _fail(
            "minds",
            "; ".join(unreachable),
            "bring its key or address back (ARBOR_EMBEDDING_URLS), or run `arbor reembed`",
        )
    agents = sum(other.agents for other in others)
    models = ", ".join(str(other.model) for other in others[:_MODELS_TRIED])
    return _warn("minds", f"{agents} agents use another embedding model: {models}", "run `arbor reembed`")


def check_backlog() -> Finding:
    """See what waits for its vector, and that no embedder fails."""
    backlog = embedding_backlog()
    minutes = backlog.oldest.total_seconds() / 60
    waiting = f"{backlog.waiting} texts wait for a vector, the oldest for {minutes:.0f} min"
    faults = embedders.embedder_faults()
    if faults:
        worst = faults[0]
        return _warn(
            "embedding backlog",
            f"{worst.embedding_model} failed {worst.failures} times since {worst.since:%Y-%m-%d %H:%M} UTC: {worst.error}; {waiting}",
            f"see to it; it is asked again after {worst.retry_at:%H:%M:%S} UTC",
        )
    if backlog.oldest > _BACKLOG_WITHIN:
        return _warn("embedding backlog", waiting, "see that a worker serves the queue `embedding`")
    return _ok("embedding backlog", waiting if backlog.waiting else "nothing waits for its vector")


def _milliseconds(found: embedders.EmbedderCheck) -> str:
    return f"answered in {found.latency_s * 1000:.1f} ms"


_IN_DATABASE = (
    check_migrations,
    check_role,
    check_vectors,
    check_clock,
    check_keys,
    check_minds,
    check_backlog,
    check_beat,
    check_workers,
    check_maintenance,
    check_outbox,
)

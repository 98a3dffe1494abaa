"""Check the broker, the scheduler, the workers, maintenance, the outbox, the API, the web and the history."""

from __future__ import annotations

from datetime import timedelta

import httpx
from django.conf import settings
from kombu import Connection
from kombu.exceptions import OperationalError as BrokerError

from apps import web
from apps.contacts.services.outbox import MAX_COUNTED, installation_figures
from apps.fleet.history import history_sizes
from apps.heartbeats.services.processes import SILENT_AFTER, living_processes
from apps.memories.services.jobs.health import read_health
from apps.queues import Queue
from arbor.errors import ConfigurationInvalid
from arbor.memory.maintenance.health import HealthState
from arbor.quotations import bounded_noun, counted
from config.cli.checks.finding import Finding, fail, name_first, ok, warn
from config.cli.installation.parts import reachable_host
from config.environment import data_dir, env, server_urls
from config.supervisor.run_folder import RunFolder

_BROKER_WITHIN_S = 1
#: More than the API itself waits for its servers.
_API_WITHIN_S = 5.0
#: A message that has been due for more seconds than this waits for a worker, not for its receiver.
_OUTBOX_BEHIND_S = 300


def check_scheduler() -> Finding:
    """Check that the scheduler has lately reported."""
    if any(process.kind == "scheduler" for process in living_processes()):
        return ok("scheduler", f"reported in the last {SILENT_AFTER.total_seconds():.0f} s")
    return fail("scheduler", "silent: no agent becomes due", "run `arbor up` or `arbor scheduler`")


def check_workers() -> Finding:
    """Check that a worker serves each queue."""
    workers = [process for process in living_processes() if process.kind == "worker"]
    served = {queue for worker in workers for queue in worker.queues.split(",")}
    missing = [queue.value for queue in Queue if queue.value not in served]
    if missing:
        return fail(
            "workers",
            f"no worker serves {', '.join(missing)}",
            f"run `arbor up` or `arbor worker --queues {','.join(missing)}`",
        )
    return ok("workers", f"{len(workers)} for {counted(len(served), 'queue')}")


def check_maintenance() -> Finding:
    """Check that maintenance keeps up."""
    health = read_health()
    if not health.findings:
        return ok("maintenance", f"keeps up; jobs that have reported: {len(health.jobs)}")
    state, what, remedy = health.findings[0]
    others = len(health.findings) - 1
    detail = f"{what}; {others} more in `arbor status`" if others else what
    report = fail if state is HealthState.CRITICAL else warn
    return report("maintenance", detail, remedy)


def check_outbox() -> Finding:
    """Check that the messages of agents are delivered."""
    figures = installation_figures()
    if figures.failed:
        failed = bounded_noun(figures.failed, MAX_COUNTED, "message of agents was", "messages of agents were")
        return warn(
            "outbox",
            f"{failed} not delivered",
            "see `arbor contact outbox list --status failed`; then retry or cancel each",
        )
    if figures.oldest_due_s > _OUTBOX_BEHIND_S:
        return warn(
            "outbox",
            f"the oldest message has been due for {figures.oldest_due_s:.0f} s",
            "run `arbor up` or `arbor worker --queues outbox --pool threads`",
        )
    return ok(
        "outbox",
        f"{bounded_noun(figures.waiting, MAX_COUNTED, 'message')} waiting for the next try"
        if figures.waiting
        else "nothing waits",
    )


def check_broker() -> Finding:
    """Check that the broker answers, on a separate connection and without retries."""
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
            connection.ensure_connection(max_retries=0, timeout=_BROKER_WITHIN_S)
    except (BrokerError, OSError) as error:
        return fail(
            "broker",
            f"{shown} does not answer: {error}",
            "start it (`arbor up`), or correct CELERY_BROKER_URL",
        )
    return ok("broker", shown)


def check_api() -> Finding:
    """Check that the API answers and reaches what it needs. Only an API that belongs to this `arbor up` must run."""
    host, port = env.str("ARBOR_API_HOST", default="127.0.0.1"), env.int("ARBOR_API_PORT", default=8001)
    url = server_urls(data_dir()).get("api_url") or f"http://{reachable_host(host)}:{port}/"
    try:
        # No proxy: the API is on this machine or in its network, and httpx would use one even for a loopback address.
        answer = httpx.get(f"{url}readyz", timeout=_API_WITHIN_S, trust_env=False)
        reached = dict(answer.json())
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError) as error:
        parts = RunFolder(data_dir()).state().get("parts", [])
        report = fail if any(part["name"] == "api" for part in parts) else warn
        return report(
            "api",
            f"{url} does not answer: {error}",
            "run `arbor up` or `arbor api`, or correct ARBOR_API_HOST and ARBOR_API_PORT",
        )
    if not answer.is_success:
        missing = [name for name, reaches in reached.items() if reaches is False]
        return fail(
            "api",
            f"{url} is not ready: it does not reach {', '.join(missing) or 'what it needs'}",
            "see the log of the API, and correct its DATABASE_URL and CELERY_BROKER_URL",
        )
    return ok("api", url)


def check_web() -> Finding:
    """Check the settings of the web; a closed web is no failure."""
    if missing := web.web_missing():
        return ok("web", f"closed: {missing}; no agent inquires")
    try:
        web.search()
        web.fetch()
    except ConfigurationInvalid as error:
        return fail("web", str(error), "correct ARBOR_SEARCH_URL and ARBOR_WEB_ALLOW")
    allowed = name_first(sorted(settings.ARBOR_WEB_ALLOW), most=5)
    if "*" in settings.ARBOR_WEB_ALLOW:
        allowed = "every public address"
    return ok("web", f"searched by {httpx.URL(settings.ARBOR_SEARCH_URL).host}; agents may read {allowed}")


def check_history() -> Finding:
    """Report the age at which each kind of record is deleted, and the space that it takes."""
    ages, sizes = settings.ARBOR_HISTORY_AGES, history_sizes()
    parts = [
        f"{record.value} {f'{age / timedelta(days=1):g} d' if (age := ages[record]) else 'for ever'}"
        f" ({size / 1e6:,.0f} MB)"
        for record, size in sizes.items()
    ]
    return ok("history", ", ".join(parts))

"""Run maintenance jobs in short, bounded steps per agent, so that no agent delays the others; record the job runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from apps.memories.models import JobRun
from apps.memories.services.jobs import queries
from apps.tenants.scope import OPS

log = structlog.get_logger(__name__)

#: The time after which a job run visits no further agent: well below the time limit of a maintenance task, one minute.
JOB_RUN_DURATION = timedelta(seconds=20)
#: The most agents that one query finds; of one tenant, where agents of many tenants wait.
_MAX_AGENTS = 200
_MAX_AGENTS_OF_TENANT = 20
#: The most agents that a process remembers as visited between two runs of a job.
_MAX_REMEMBERED = 10_000

#: The agents that this process has visited in the current pass over all waiting agents, by job.
_visited_before: dict[str, set[UUID]] = {}


@dataclass(frozen=True, kw_only=True)
class JobRunResult:
    """The result of a job run."""

    #: The number of steps, and the units of work done in all of them: rows changed, neighborhoods computed…
    steps: int = 0
    done: int = 0
    #: The number of failed steps; a later run visits their agents again.
    failed: int = 0

    def __add__(self, other: JobRunResult) -> JobRunResult:
        """Return the sums of two results."""
        return JobRunResult(
            steps=self.steps + other.steps, done=self.done + other.done, failed=self.failed + other.failed
        )


def run_job(
    name: str,
    *,
    waiting: str,
    step: Callable[[UUID, UUID], int],
    max_duration: timedelta = JOB_RUN_DURATION,
) -> JobRunResult:
    """Run the step for waiting agents until none waits, or `max_duration` is over.

    `waiting` is SQL that selects `agent_id` of the waiting agents of tenant `t.id`, such as
    `SELECT agent_id FROM memories_mind WHERE tenant_id = t.id AND …`. `step(tenant_id, agent_id)` does one bounded step in
    transactions of its own and returns the units of work done; it is repeated for an agent until it returns 0.
    Tenants are visited in random order, and no agent twice before all waiting agents were visited once; the next run
    continues where a run's time was too short for all. The run works for a share `ARBOR_MAINTENANCE_SHARE` of its time and
    sleeps for the rest, so that the database is free for others.
    """
    ends_at = time.monotonic() + max_duration.total_seconds()
    steps = done = failed = 0
    passed: set[UUID] = set()
    visited = _visited_before.pop(name, set())
    per_tenant = _MAX_AGENTS_OF_TENANT
    while time.monotonic() < ends_at and (agents := _find_next(waiting, passed, visited, per_tenant)):
        # A query may read the rows of all waiting agents, so where few tenants have work, the next one returns more of each.
        per_tenant = max(_MAX_AGENTS_OF_TENANT, _MAX_AGENTS // len({tenant_id for tenant_id, _ in agents}))
        for tenant_id, agent_id in agents:
            started = time.monotonic()
            if started >= ends_at:
                break
            try:
                done_in_step = step(tenant_id, agent_id)
            except Exception:
                # An error of one agent must not stop the job for the others.
                log.exception(
                    "maintenance_failed", job=name, tenant_id=str(tenant_id), agent_id=str(agent_id)
                )
                failed += 1
                done_in_step = 0
            steps, done = steps + 1, done + done_in_step
            visited.add(agent_id)
            if not done_in_step:
                passed.add(agent_id)
            ended = time.monotonic()
            pause = (ended - started) * (1 / settings.ARBOR_MAINTENANCE_SHARE - 1)
            # The pause ends with the run, so that it does not delay the next jobs.
            time.sleep(max(0.0, min(pause, ends_at - ended)))
    if len(visited) <= _MAX_REMEMBERED:
        _visited_before[name] = visited
    if steps:
        log.info("job_run_finished", job=name, steps=steps, done=done, failed=failed)
    return JobRunResult(steps=steps, done=done, failed=failed)


def _find_next(
    waiting: str, passed: set[UUID], visited: set[UUID], per_tenant: int
) -> list[tuple[UUID, UUID]]:
    """Return waiting agents not visited yet; once all were visited, begin a new pass over those that still wait."""
    agents = _find_waiting(waiting, passed | visited, per_tenant)
    if not agents and visited:
        visited.clear()
        # Those that still wait may be of other tenants than the last ones of the pass before.
        agents = _find_waiting(waiting, passed, _MAX_AGENTS_OF_TENANT)
    return agents


def _find_waiting(waiting: str, passed: set[UUID], per_tenant: int) -> list[tuple[UUID, UUID]]:
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            queries.WAITING_AGENTS.replace("{waiting}", waiting),
            {"passed": list(passed), "per_tenant": per_tenant, "found": _MAX_AGENTS},
        )
        rows: list[tuple[UUID, UUID]] = cursor.fetchall()
        return rows


def expect_runs(periods: Mapping[str, float]) -> None:
    """Record the expected jobs with their periods in seconds, so that a job that never runs is reported. Two statements.

    The period of all other jobs becomes 0: they are switched off.
    """
    runs = [
        JobRun(name=name, period_s=period_s, ended_at=Now(), seconds=0)
        for name, period_s in sorted(periods.items())
    ]
    JobRun.objects.bulk_create(
        runs, update_conflicts=True, unique_fields=["name"], update_fields=["period_s"]
    )
    JobRun.objects.exclude(name__in=periods).update(period_s=0)


def last_runs() -> dict[str, datetime]:
    """Return the ends of the jobs' last runs by name; of a job that has not run yet, the time when it was first expected."""
    return dict(JobRun.objects.values_list("name", "ended_at"))


def record_job_run(
    *, name: str, period_s: float, seconds: float, result: object = None, error: Exception | None = None
) -> None:
    """Record the end of a run: the result, a JobRunResult or a count, or the error that ended the run. Two statements.

    Only the class of the error is stored, because its message may contain a tenant's data.
    """
    done, failed = 0, 0
    if isinstance(result, JobRunResult):
        done, failed = result.done, result.failed
    elif isinstance(result, int):
        done = result
    run = {
        "period_s": period_s,
        "seconds": seconds,
        "ended_at": Now(),
        "done": done,
        "failed": failed,
        "error": type(error).__name__ if error else "",
    }
    if error is None:
        run["succeeded_at"] = Now()
    JobRun.objects.update_or_create(name=name, defaults=run)

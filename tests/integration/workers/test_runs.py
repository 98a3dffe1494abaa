"""Records of job runs."""

from __future__ import annotations

import pytest
from celery import Celery
from django.db import OperationalError, connections

from apps.memories.models import JobRun
from apps.memories.services.jobs.job_runs import JobRunResult
from apps.queues import QUEUE_OF, Task
from apps.tenants.scope import ACCOUNTS, APP, OPS, OWNER
from config.process_secrets import secrets_of_queues
from workers import runs as runs_of_jobs
from workers import tasks
from workers.schedule import entries

JOBS = [Task(name) for name in entries() if name != Task.DISPATCH]

#: The connection that needs each secret.
CONNECTIONS = {
    "ARBOR_APP_DATABASE_URL": APP,
    "ARBOR_OPS_DATABASE_URL": OPS,
    "ARBOR_ACCOUNTS_DATABASE_URL": ACCOUNTS,
    "DATABASE_URL": OWNER,
}


def refuse_other_roles(monkeypatch: pytest.MonkeyPatch, secrets: frozenset[str]) -> None:
    """Refuse the connections whose passwords are not among the secrets of a process, as the server would."""

    def refuse() -> None:
        raise OperationalError("no password supplied")

    for name, alias in CONNECTIONS.items():
        if name not in secrets:
            monkeypatch.setattr(connections[alias], "ensure_connection", refuse)


@pytest.mark.parametrize("task", JOBS)
def test_a_job_without_work_records_its_run(
    task: Task, celery: Celery, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_other_roles(monkeypatch, secrets_of_queues([QUEUE_OF[task]]))
    celery.tasks[task.value].apply()
    run = JobRun.objects.get()
    assert (run.name, run.done, run.failed, run.error) == (task.value, 0, 0, "")
    assert run.succeeded_at is not None
    assert run.period_s == entries()[task.value]["schedule"].total_seconds()


def test_a_failed_job_run_records_the_class_of_its_error(
    celery: Celery, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "fade_memories", lambda: JobRunResult(steps=4, done=3, failed=1))
    celery.tasks[Task.FADE_MEMORIES.value].apply()
    run = JobRun.objects.get()
    assert (run.done, run.failed) == (3, 1)

    def fail() -> JobRunResult:
        raise RuntimeError("something private")

    monkeypatch.setattr(tasks, "fade_memories", fail)
    celery.tasks[Task.FADE_MEMORIES.value].apply()
    again = JobRun.objects.get()
    assert (again.error, again.succeeded_at) == ("RuntimeError", run.succeeded_at)


def test_the_scheduler_records_the_expected_jobs(database: None) -> None:
    runs_of_jobs._record_expected()
    runs = {run.name: (run.period_s, run.succeeded_at) for run in JobRun.objects.all()}
    assert runs == {task.value: (entries()[task.value]["schedule"].total_seconds(), None) for task in JOBS}


def test_the_dispatch_task_is_not_recorded(celery: Celery, database: None) -> None:
    celery.tasks[Task.DISPATCH.value].apply()
    assert not JobRun.objects.exists()

"""Figures of the benchmark of heartbeats."""

from __future__ import annotations

from apps.heartbeats.services import schedule
from apps.memories.services.embedding import queries as embedding
from apps.memories.services.jobs import queries as jobs
from bench.heartbeats import claim_ms
from bench.support.database import Statement


def statement(sql: str, *, total_ms: float, rows: int) -> Statement:
    return Statement(text=" ".join(sql.split()), calls=1, total_ms=total_ms, planning_ms=0.0, rows=rows)


def test_jobs_that_look_into_all_tenants_are_no_claims() -> None:
    claim = statement(schedule._CLAIM_DUE, total_ms=3.0, rows=30)
    lost = statement(schedule._RECLAIM_LOST, total_ms=50.0, rows=1)
    searches = [
        statement(sql, total_ms=50.0, rows=0) for sql in (embedding.WAITING_TEXTS, jobs.WAITING_AGENTS)
    ]
    assert claim_ms([*searches, lost, claim]) == 0.1

"""Reads that are sent together: their rows, their limits, and what a failure leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from apps.tenants.models import Tenant
from apps.tenants.round_trip import FailedRead, Read, read_together
from apps.tenants.scope import APP, tenant_transaction
from apps.tenants.statements import fetch

pytestmark = pytest.mark.usefixtures("database")

#: Enough for a short statement on a slow machine.
LIMIT = timedelta(milliseconds=500)


def read(name: str, statement: str, **values: Any) -> Read:
    return Read(name=name, statement=statement, values=values, time_limit=LIMIT)


def test_reads_are_sent_before_the_first_answer_is_awaited(tenant: Tenant) -> None:
    pending: list[bool] = []

    def record_pending(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        pending.append(bool(context["connection"].connection.pgconn.pipeline_status))
        return execute(sql, params, many, context)

    with tenant_transaction(tenant.id), connections[APP].execute_wrapper(record_pending):
        answers = read_together(
            [
                read("tenant", "SELECT %(tenant)s"),
                read("sum", "SELECT %(a)s + 1", a=2),
                Read(name="list", statement="SELECT %s::int", values=[7], time_limit=LIMIT),
            ]
        )
    assert answers == {"tenant": [(tenant.id,)], "sum": [(3,)], "list": [(7,)]}
    # Each of the three reads follows the statement that sets its limit.
    assert sum(pending) == 6


def test_a_slow_and_a_failing_read_leave_the_others(tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        answers = read_together(
            [
                read("first", "SELECT 1"),
                read("slow", "SELECT pg_sleep(5)"),
                read("second", "SELECT 2"),
                read("wrong", "SELECT 1 / (%(n)s - 1)", n=1),
                read("third", "SELECT 3"),
                read("setting", "SELECT current_setting('arbor.probe')"),
            ],
            setup="SELECT set_config('arbor.probe', 'set', true)",
        )
        # The transaction goes on, under its own limit.
        assert fetch("SELECT current_setting('statement_timeout') <> '500ms', %(tenant)s") == [
            (True, tenant.id)
        ]
    rows = {name: answer for name, answer in answers.items() if not isinstance(answer, FailedRead)}
    assert rows == {"first": [(1,)], "second": [(2,)], "third": [(3,)], "setting": [("set",)]}
    slow, wrong = answers["slow"], answers["wrong"]
    assert isinstance(slow, FailedRead)
    assert isinstance(wrong, FailedRead)
    assert "statement timeout" in str(slow.error)
    assert "division by zero" in str(wrong.error)

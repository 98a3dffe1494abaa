"""Reading signals: nothing that is committed late is missed, nothing is read twice, and tenants stay apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from apps.agents.models import Agent
from apps.fleet.history import sweep_history
from apps.fleet.lifecycle import pause_agent, resume_agent
from apps.signals.services import reading
from apps.signals.services.emission import collected_signals, dropped_on_error, emit, write_signals
from apps.signals.services.positions import continue_positions, functions_from
from apps.signals.services.reading import SignalFilter, horizon, read_latest_signals, read_signals
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.clock import FrozenClock
from arbor.errors import Invalid
from arbor.signals import Cursor, SignalName, signal
from tests.integration.heartbeats.batch import MakeAgent
from tests.integration.signals.conftest import names_of, signals_of
from tests.support.threads import in_own_connection


def emit_lessons(agent_id: UUID, *numbers: int) -> None:
    """Emit one signal for each number, in the open transaction."""
    emit(*(lesson(agent_id, number) for number in numbers))


def lesson(agent_id: UUID, number: int) -> Any:
    return signal(SignalName.LESSON_EXTRACTED, agent_id, action=str(number), outcome="success")


def numbers(signals: Any) -> list[int]:
    return [int(record.data["action"]) for record in signals if record.name == SignalName.LESSON_EXTRACTED]


@contextmanager
def emitted_in_open_transaction(agent: Agent, *given: int) -> Iterator[None]:
    """Emit in a transaction of another connection, which commits when the block ends."""
    emitted, over = threading.Event(), threading.Event()

    def emit_and_wait() -> None:
        with tenant_transaction(agent.tenant_id):
            emit_lessons(agent.id, *given)
            emitted.set()
            over.wait(timeout=60)

    thread = in_own_connection(emit_and_wait)
    assert emitted.wait(timeout=60)
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=60)


def test_signals_committed_late_are_not_missed(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        cursor = horizon()
    with emitted_in_open_transaction(agent, 1):
        # A later transaction commits first: its signals wait for those of the earlier one.
        with tenant_transaction(agent.tenant_id):
            emit_lessons(agent.id, 2)
        with tenant_transaction(agent.tenant_id):
            page = read_signals(after=cursor)
        assert numbers(page.signals) == []
    with tenant_transaction(agent.tenant_id):
        page = read_signals(after=page.cursor)
        assert numbers(page.signals) == [1, 2]
        assert read_signals(after=page.cursor).signals == []


def test_pages_continue_within_a_commit(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        cursor = horizon()
    for given in ((1, 2, 3), (4, 5), (6,)):
        with tenant_transaction(agent.tenant_id):
            emit_lessons(agent.id, *given)
    found: list[int] = []
    more = True
    while more:
        with tenant_transaction(agent.tenant_id):
            page = read_signals(after=Cursor.parse(str(cursor)), limit=2)
        found += numbers(page.signals)
        cursor, more = page.cursor, page.more
    assert found == [1, 2, 3, 4, 5, 6]


def test_the_latest_come_first_page_by_page(agent: Agent) -> None:
    for given in ((1, 2, 3), (4, 5)):
        with tenant_transaction(agent.tenant_id):
            emit_lessons(agent.id, *given)
    wanted = SignalFilter.of(names=["memory.lesson_extracted"])
    with tenant_transaction(agent.tenant_id):
        first = read_latest_signals(wanted=wanted, limit=3)
        second = read_latest_signals(before=first.cursor, wanted=wanted, limit=3)
    assert (numbers(first.signals), first.more) == ([5, 4, 3], True)
    assert (numbers(second.signals), second.more) == ([2, 1], False)


def test_a_rare_name_is_found_in_bounded_reads(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MAX_ROWS", 2)
    with tenant_transaction(agent.tenant_id):
        cursor = horizon()
    for number in range(5):
        with tenant_transaction(agent.tenant_id):
            emit_lessons(agent.id, number)
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor="cli:nora")
    wanted, found, reads, more = SignalFilter.of(names=["agent.paused"]), [], 0, True
    while more:
        with tenant_transaction(agent.tenant_id):
            page = read_signals(after=cursor, wanted=wanted)
        found += [record.name for record in page.signals]
        cursor, more, reads = page.cursor, page.more, reads + 1
    assert found == ["agent.paused"]
    assert reads > 1


def test_filters_choose_agents_and_names(tenant: Tenant, agent: Agent, new_agent: MakeAgent) -> None:
    other = new_agent(tenant, "Bo")
    with tenant_transaction(tenant.id):
        wanted = SignalFilter.of(agents=[other.id], names=["agent"])
        found = read_signals(after=Cursor(), wanted=wanted).signals
    assert {record.agent_id for record in found} == {other.id}
    assert {record.name for record in found} == {"agent.created", "agent.started"}
    with pytest.raises(Invalid, match="there is no signal"):
        SignalFilter.of(names=["nothing.like_it"])


def test_signals_of_another_tenant_are_not_read(agent: Agent, other_tenant: Tenant) -> None:
    assert names_of(agent)
    with tenant_transaction(other_tenant.id):
        assert read_signals(after=Cursor()).signals == []


def emit_and_fail(agent_id: UUID) -> None:
    with dropped_on_error():
        emit_lessons(agent_id, 2)
        raise Invalid("no such thing")


def test_writes_undone_by_a_savepoint_are_not_signaled(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        cursor = horizon()
    with tenant_transaction(agent.tenant_id), collected_signals() as collected:
        emit_lessons(agent.id, 1)
        with pytest.raises(Invalid, match="no such thing"):
            emit_and_fail(agent.id)
        write_signals(collected)
    assert numbers(signals_of(agent, after=cursor)) == [1]


def test_a_restored_database_continues_the_order(agent: Agent, superuser: psycopg.Connection[Any]) -> None:
    # As if the stored signals came from a server that had counted a million more transactions.
    ahead = (
        "lpad(to_hex(('x' || substr(replace(id::text, '-', ''), 1, 16))::bit(64)::bigint + 1000000), 16, '0')"
    )
    superuser.execute(
        f"UPDATE signals_signalbatch SET id = ({ahead} || substr(replace(id::text, '-', ''), 17))::uuid"
    )
    try:
        assert names_of(agent) == [], "signals from later than now are not read"
        assert continue_positions()
        before = signals_of(agent)
        with tenant_transaction(agent.tenant_id):
            pause_agent(agent_id=agent.id, actor="cli:nora")
        assert names_of(agent, after=before[-1].cursor) == ["agent.paused"]
        assert not continue_positions()
    finally:
        superuser.execute(functions_from(0))


def test_signals_are_deleted_by_age(agent: Agent, superuser: psycopg.Connection[Any]) -> None:
    superuser.execute("UPDATE signals_signalbatch SET at = now() - interval '40 days'")
    with tenant_transaction(agent.tenant_id):
        pause_agent(agent_id=agent.id, actor="cli:nora")
        resume_agent(agent_id=agent.id, actor="cli:nora")
    sweep_history(FrozenClock(datetime.now(UTC) + timedelta(seconds=1)))
    assert names_of(agent) == ["agent.paused", "agent.resumed"]

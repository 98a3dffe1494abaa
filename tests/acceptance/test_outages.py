"""Outages of the broker, workers and database: every due heartbeat still completes exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.fleet.exactly_once import assert_exactly_once
from tests.acceptance.fleet.points import ALL_POINTS
from tests.acceptance.fleet.real_fleet import RealFleet

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def fleet(django_db_blocker: Any) -> Iterator[RealFleet]:
    """Return a running fleet without planned deaths of workers."""
    with django_db_blocker.unblock(), RealFleet() as new:
        new.populate(ALL_POINTS)
        new.plan_kills({})
        new.start()
        yield new


def test_lost_messages_of_the_broker_lose_no_heartbeat(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    fleet.flush_broker()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_two_dispatchers_and_two_schedulers_do_no_harm(fleet: RealFleet) -> None:
    for name in ("dispatcher", "scheduler"):
        fleet.start_another(name)
    fleet.make_due()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)
    for name in ("dispatcher-2", "scheduler-2"):
        fleet.retire(name)


def test_workers_stopped_while_busy_lose_nothing(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    for name in ("heartbeat", "model", "dispatcher"):
        fleet.parts[name].ask_to_stop()
    # Workers that have ended are started again while the test waits.
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_workers_killed_with_all_their_children_lose_nothing(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    for name in ("heartbeat", "model", "dispatcher", "scheduler"):
        fleet.parts[name].kill()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_heartbeats_resume_after_a_restart_of_the_broker(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    # A worker that has a message when its broker ends may exit (kombu 5.7 closes a closed connection again):
    # a supervisor restarts the worker, as this fleet does.
    fleet.restart_broker()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)


def test_workers_resume_after_a_crash_of_the_database(fleet: RealFleet) -> None:
    fleet.make_due()
    fleet.wait_until_some_are_done()
    workers = {name: part.pid for name, part in fleet.parts.items()}
    fleet.crash_database()
    fleet.wait_until_all_are_done()
    assert_exactly_once(fleet)
    assert {name: part.pid for name, part in fleet.parts.items()} == workers


def test_every_process_records_its_liveness_in_the_database(fleet: RealFleet) -> None:
    def living() -> set[tuple[str, str, str]]:
        return set(
            fleet.rows(
                "SELECT kind, queues, pool FROM heartbeats_process WHERE seen_at > now() - interval '20 s'"
            )
        )

    expected = {
        ("worker", "dispatch", "prefork"),
        ("worker", "heartbeat", "prefork"),
        ("worker", "embedding,llm,outbox", "thread"),
        ("scheduler", "", ""),
    }
    fleet.wait_for(lambda: living() >= expected, what="all kinds of processes record themselves")

"""Recorded deletions as the explanation of missing rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from arbor.audit.chain import SealedRow
from arbor.audit.deletions import DeletedRows, Deletion, Deletions, deletion_id, read_deletion
from arbor.ids import time_of

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
AGENT = uuid4()


def row(days_ago: float, agent_id: UUID | None = None) -> SealedRow:
    at = NOW - days_ago * DAY
    return SealedRow(id=UUID(int=int(at.timestamp() * 1000) << 80), digest=b"", agent_id=agent_id)


def deletion(rows: DeletedRows, days_ago: float) -> Deletion:
    return Deletion(rows=rows, at=NOW, until=NOW - days_ago * DAY)


@pytest.mark.parametrize(
    ("deletions", "event_days", "heartbeat_days", "explained"),
    [
        ([], 400, 400, (False, False)),
        ([deletion(DeletedRows.EVENTS, 100)], 101, 101, (True, False)),
        ([deletion(DeletedRows.EVENTS, 100)], 99, 99, (False, False)),
        ([deletion(DeletedRows.HEARTBEATS, 10)], 11, 11, (False, True)),
        ([deletion(DeletedRows.HEARTBEATS, 10), deletion(DeletedRows.HEARTBEATS, 90)], 11, 11, (False, True)),
        # The database deletes no audit record before it is 30 days old, whatever a deletion states.
        ([deletion(DeletedRows.EVENTS, 0)], 29, 29, (False, False)),
        ([deletion(DeletedRows.EVENTS, -400)], 31, 31, (True, False)),
        # A deletion explains no row that is younger than its own record.
        ([deletion(DeletedRows.HEARTBEATS, -9)], 1, -1, (False, False)),
        ([Deletion(rows=DeletedRows.HEARTBEATS, at=NOW, agent_id=AGENT)], 1, 1, (False, True)),
    ],
)
def test_a_deletion_explains_what_it_covers(
    deletions: list[Deletion], event_days: float, heartbeat_days: float, explained: tuple[bool, bool]
) -> None:
    stated = Deletions(deletions)
    assert (
        stated.explains_event(row(event_days)),
        stated.explains_heartbeat(row(heartbeat_days, AGENT)),
    ) == explained


@pytest.mark.parametrize(
    "detail",
    [{}, [], {"until": 5}, {"until": "soon"}, {"until": "2026-01-01T00:00:00"}, {"rows": "x", "until": "2026-01-01"}],
)  # fmt: skip
def test_a_detail_that_states_no_deletion_explains_nothing(detail: Any) -> None:
    assert read_deletion(detail, at=NOW) is None


def test_the_steps_of_a_deletion_have_one_record() -> None:
    first = deletion_id("platform", DeletedRows.DIGESTS, until=NOW - DAY, at=NOW)
    assert first == deletion_id("platform", DeletedRows.DIGESTS, until=NOW - DAY, at=NOW)
    assert first != deletion_id("platform", DeletedRows.EVENTS, until=NOW - DAY, at=NOW)
    assert (time_of(first), first.version) == (NOW, 7)

"""Digests of ended heartbeats, for the seals of the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from apps.heartbeats.models import Heartbeat
from apps.signals.services.reading import SignalFilter, SignalPage, read_signals
from apps.tenants.statements import fetch
from arbor.audit.chain import ROW_DIGEST_BYTES, SealedRow
from arbor.signals import Cursor, SignalName

#: Heartbeats that are digested at once.
MAX_HEARTBEATS = 500
#: The most heartbeats that wait to be sealed and are read.
MAX_WAITING = 10_000
_IDS_AT_ONCE = 5_000
_ENDED = SignalFilter(names=frozenset({SignalName.HEARTBEAT}))

# The server digests the packed columns, so that their bytes are neither sent nor unpacked. The memory is left out, because it may be
# removed after the end. Digests of sealed heartbeats must never change: JSON that an older version stored as jsonb, and that a migration
# packed without compression, is still digested as jsonb.
AS_SEALED = """CASE get_byte(h.{column}, 0) WHEN 0 THEN convert_from(substring(h.{column} FROM 2), 'UTF8')::jsonb
        ELSE to_jsonb(encode(sha256(h.{column}), 'hex')) END"""
DIGESTS = f"""
SELECT h.id, h.agent_id, substring(sha256(convert_to(jsonb_build_array(
    h.id, h.agent_id, extract(epoch FROM h.slot_at), h.trigger, h.number, h.status, h.mode,
    h.energy_start, h.energy_end, h.energy_unit, encode(sha256(h.situation), 'hex'), h.reasoning,
    {AS_SEALED.format(column="actions")}, {AS_SEALED.format(column="goal_changes")}, h.dropped, h.repairs, h.narrative, h.emotional_valence, h.arousal, h.tier, h.round_trips, h.reason, h.model,
    encode(sha256(h.trace), 'hex'), extract(epoch FROM h.started_at), extract(epoch FROM h.ended_at)
)::text, 'UTF8')) FROM 1 FOR {ROW_DIGEST_BYTES})
FROM heartbeats_heartbeat h
WHERE h.tenant_id = %(tenant)s AND h.id = ANY(%(ids)s::uuid[]) AND h.ended_at IS NOT NULL
"""  # noqa: S608 (no external input)


def digest_heartbeats(ids: Sequence[UUID]) -> dict[UUID, SealedRow]:
    """Return the digests of the ended ones among heartbeats of the current tenant. One statement."""
    return {
        row_id: SealedRow(id=row_id, agent_id=agent_id, digest=bytes(digest))
        for row_id, agent_id, digest in fetch(DIGESTS, ids=list(ids))
    }


def ended_since(cursor: str) -> tuple[list[SealedRow], str]:
    """Return the digests of the heartbeats that ended after a cursor among the tenant's signals, and the cursor after them.

    In the order of their commits, at most MAX_HEARTBEATS. The signals of their ends give the order, so that a heartbeat writes
    nothing more for its seal. Two statements, and one more for each page of signals without an end.
    """
    for page in _pages(cursor):
        if page.signals:
            break
    ids = _unique(record.heartbeat_id for record in page.signals)
    digests = digest_heartbeats(ids) if ids else {}
    # A heartbeat that is gone was deleted with its agent.
    return [digests[row_id] for row_id in ids if row_id in digests], str(page.cursor)


def ended_within(since: datetime, until: datetime, *, after: UUID | None = None) -> list[UUID]:
    """Return the ids of the tenant's heartbeats that started after `since` and ended before `until`, a page of them in order.

    The page begins after the id `after`, if any, and has at most `_IDS_AT_ONCE`.
    """
    rows = Heartbeat.objects.filter(started_at__gt=since, ended_at__lt=until).order_by("id")
    if after is not None:
        rows = rows.filter(id__gt=after)
    return list(rows.values_list("id", flat=True)[:_IDS_AT_ONCE])


def ended_ids_since(cursor: str) -> set[UUID]:
    """Return the ids of the tenant's heartbeats that ended after a cursor among its signals, up to about MAX_WAITING."""
    found: set[UUID] = set()
    for page in _pages(cursor):
        found.update(_unique(record.heartbeat_id for record in page.signals))
        if len(found) >= MAX_WAITING:
            break
    return found


def _pages(cursor: str) -> Iterator[SignalPage]:
    """Yield the pages of heartbeats' ends after a cursor among the tenant's signals: one at least."""
    after, more = Cursor.parse(cursor) if cursor else Cursor(), True
    while more:
        page = read_signals(after=after, wanted=_ENDED, limit=MAX_HEARTBEATS)
        yield page
        after, more = page.cursor, page.more


def _unique(ids: Iterable[UUID | None]) -> list[UUID]:
    return list(dict.fromkeys(row_id for row_id in ids if row_id is not None))

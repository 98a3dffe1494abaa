"""Read signals in the order of their commits, forward from a cursor or backward from the latest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.tenants.packing import unpack_list
from apps.tenants.statements import fetch
from arbor.errors import Invalid
from arbor.signals import CATALOGUE, Cursor, SignalName

#: Signals on a page at most.
MAX_SIGNALS = 1_000
#: Rows that one read looks through at most, so that a rare name costs no long statement.
_MAX_ROWS = 2_000

_FORWARD = """
SELECT s.id, s.agent_id, s.heartbeat_id, s.at, s.signals, h.horizon
FROM (SELECT signals_horizon() AS horizon) AS h
LEFT JOIN LATERAL (
    SELECT id, agent_id, heartbeat_id, at, signals FROM signals_signalbatch
    WHERE tenant_id = %(tenant)s AND id >= %(after)s AND id < h.horizon {of_agents}
    ORDER BY id LIMIT %(rows)s
) AS s ON true
ORDER BY s.id
"""
_BACKWARD = """
SELECT id, agent_id, heartbeat_id, at, signals FROM signals_signalbatch
WHERE tenant_id = %(tenant)s AND id < signals_horizon() AND id <= %(before)s {of_agents}
ORDER BY id DESC LIMIT %(rows)s
"""
_OF_AGENTS = "AND agent_id = ANY(%(agents)s::uuid[])"
_HORIZON = "SELECT signals_horizon()"
_LAST_ID = UUID(int=2**128 - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalFilter:
    """The wanted signals: of these agents and of these names; an empty field allows all."""

    agents: tuple[UUID, ...] = ()
    names: frozenset[SignalName] = frozenset()

    @classmethod
    def of(cls, *, agents: Collection[UUID] = (), names: Collection[str] = ()) -> SignalFilter:
        """Return the filter of agents and of names as `match_names` reads them.

        Raises Invalid for a name that no signal has.
        """
        return cls(
            agents=tuple(agents), names=frozenset(name for text in names for name in match_names(text))
        )

    def passes(self, record: SignalRecord) -> bool:
        """Return whether a signal is wanted."""
        return (not self.agents or record.agent_id in self.agents) and (
            not self.names or record.name in self.names
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalRecord:
    """A committed signal. Its id is its cursor: reading after it continues with the next one."""

    cursor: Cursor
    name: str
    #: Empty: the signal is about what the tenant's agents share.
    agent_id: UUID | None
    heartbeat_id: UUID | None
    at: datetime
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the signal as the API and webhooks send it."""
        return {
            "id": str(self.cursor),
            "name": self.name,
            "agent_id": str(self.agent_id) if self.agent_id else None,
            "heartbeat_id": str(self.heartbeat_id) if self.heartbeat_id else None,
            "at": self.at.isoformat(),
            "data": self.data,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalPage:
    """Signals in order, the cursor after all rows that were looked through, and whether there are more rows by now."""

    signals: Sequence[SignalRecord]
    cursor: Cursor
    more: bool


def match_names(text: str) -> list[SignalName]:
    """Return the names that a text means: one name, `memory.goal_*` for all that begin so, or `memory` for all of that group.

    Raises Invalid where there is none.
    """
    wanted = text.strip()
    if wanted in CATALOGUE:
        return [SignalName(wanted)]
    stem = wanted.removesuffix("*")
    start = stem if wanted.endswith("*") else f"{stem.removesuffix('.')}."
    found = [name for name in CATALOGUE if stem and name.startswith(start)]
    if not found:
        raise Invalid(
            f"there is no signal {text!r}; `arbor signals --names` lists all, `memory.goal_*` means all that begin so"
        )
    return found


def horizon() -> Cursor:
    """Return the cursor after all signals that can be read now; signals read after it are newer than this call. One statement."""
    ((row_id,),) = fetch(_HORIZON)
    return Cursor(row_id=row_id)


def read_signals(*, after: Cursor, wanted: SignalFilter | None = None, limit: int = 100) -> SignalPage:
    """Read the signals after a cursor, oldest first, in the tenant's transaction. One statement.

    Signals whose position a running transaction may still precede are left for a later read. Raises Invalid for a
    limit that is not 1 to MAX_SIGNALS.
    """
    _check_limit(limit)
    wanted = wanted or SignalFilter()
    rows = _fetch(_FORWARD, wanted, after=after.row_id)
    end = Cursor(row_id=rows[0][-1])
    batches = [row for row in rows if row[0] is not None]
    signals: list[SignalRecord] = []
    for row in batches:
        for record in _records(row):
            if record.cursor > after and wanted.passes(record):
                if len(signals) == limit:
                    return SignalPage(signals=signals, cursor=signals[-1].cursor, more=True)
                signals.append(record)
    if len(batches) < _MAX_ROWS:
        # Nothing can be added before the horizon any more.
        return SignalPage(signals=signals, cursor=max(after, end), more=False)
    return SignalPage(signals=signals, cursor=_end_of(batches[-1]), more=True)


def read_latest_signals(
    *, before: Cursor | None = None, wanted: SignalFilter | None = None, limit: int = 100
) -> SignalPage:
    """Read the signals before a cursor, or the latest, newest first. One statement. Raises Invalid for the limit.

    The next page is read with the page's `cursor` as `before`; `more` says whether there may be one.
    """
    _check_limit(limit)
    wanted = wanted or SignalFilter()
    rows = _fetch(_BACKWARD, wanted, before=before.row_id if before else _LAST_ID)
    signals: list[SignalRecord] = []
    for row in rows:
        for record in reversed(_records(row)):
            if (before is None or record.cursor < before) and wanted.passes(record):
                if len(signals) == limit:
                    return SignalPage(signals=signals, cursor=signals[-1].cursor, more=True)
                signals.append(record)
    last = Cursor(row_id=rows[-1][0]) if rows else before or Cursor()
    return SignalPage(signals=signals, cursor=last, more=len(rows) == _MAX_ROWS)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_SIGNALS:
        raise Invalid(f"a page has 1 to {MAX_SIGNALS:,} signals, got {limit}")


def _fetch(statement: str, wanted: SignalFilter, **values: Any) -> list[tuple[Any, ...]]:
    of_agents = {"agents": list(wanted.agents)} if wanted.agents else {}
    text = statement.format(of_agents=_OF_AGENTS if wanted.agents else "")
    return fetch(text, rows=_MAX_ROWS, **of_agents, **values)


def _records(row: Sequence[Any]) -> list[SignalRecord]:
    row_id, agent_id, heartbeat_id, at, packed = row[:5]
    return [
        SignalRecord(
            cursor=Cursor(row_id=row_id, number=number),
            name=name,
            agent_id=agent_id,
            heartbeat_id=heartbeat_id,
            at=at,
            data=data,
        )
        for number, (name, data) in enumerate(unpack_list(bytes(packed)), start=1)
    ]


def _end_of(row: Sequence[Any]) -> Cursor:
    return Cursor(row_id=row[0], number=len(unpack_list(bytes(row[4]))))

"""Read the page of signals, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from apps.agents.models import Agent
from apps.console.export import ROWS_EXPORTED
from apps.console.forms import agent_named
from apps.signals.services.reading import MAX_SIGNALS, SignalFilter, SignalRecord, read_latest_signals
from arbor.errors import Invalid
from arbor.ids import read_id
from arbor.signals import CATALOGUE, Cursor, SignalName

#: Signals on one page.
SIGNALS_SHOWN = 50
#: Seconds between two requests for new signals.
REFRESH_S = 5


@dataclass(frozen=True, kw_only=True)
class SignalRow:
    """A signal with the name of its agent; empty for one that was destroyed, and for a signal of no agent."""

    record: SignalRecord
    agent: str
    meaning: str
    #: The data without lists and empty values: name, value.
    facts: Sequence[tuple[str, Any]]


@dataclass(frozen=True, kw_only=True)
class SignalsPage:
    """The data of the page of signals."""

    rows: Sequence[SignalRow]
    names: Sequence[str]
    #: The filter as entered.
    agent: str
    name: str
    #: The address of the older signals; empty: none.
    older: str
    #: Whether the latest are shown, so that new ones appear.
    live: bool
    #: The address of the rows alone.
    query: str
    refresh_s: int = REFRESH_S

    @property
    def export_address(self) -> str:
        """Return the beginning of the address of an export with the same filter."""
        return f"{self.query}&" if self.query != "?" else "?"


def read_signals_page(*, agent: str = "", name: str = "", before: str = "") -> SignalsPage:
    """Read a page of signals; `agent` is the name or id of an agent, `name` a name of signals or a pattern.

    Raises Invalid for an unknown agent, name or cursor. Five queries at most.
    """
    wanted = _filter(agent, name)
    cursor = Cursor.parse(before) if before else None
    found = read_latest_signals(before=cursor, wanted=wanted, limit=SIGNALS_SHOWN)
    ids = {record.agent_id for record in found.signals if record.agent_id}
    known: dict[UUID, str] = dict(Agent.objects.filter(id__in=ids).values_list("id", "name"))
    query = {key: value for key, value in (("agent", agent), ("name", name)) if value}
    return SignalsPage(
        rows=[_row(record, known) for record in found.signals],
        names=list(CATALOGUE),
        agent=agent,
        name=name,
        older=f"?{urlencode({**query, 'before': str(found.cursor)})}" if found.more else "",
        live=cursor is None,
        query=f"?{urlencode(query)}",
    )


def read_signals_for_export(*, agent: str = "", name: str = "") -> list[dict[str, Any]]:
    """Read the latest signals that match, ROWS_EXPORTED at most. Raises Invalid for an unknown agent or name."""
    wanted = _filter(agent, name)
    rows: list[dict[str, Any]] = []
    before: Cursor | None = None
    while len(rows) < ROWS_EXPORTED:
        limit = min(MAX_SIGNALS, ROWS_EXPORTED - len(rows))
        found = read_latest_signals(before=before, wanted=wanted, limit=limit)
        rows += [record.as_json() for record in found.signals]
        if not found.more:
            break
        before = found.cursor
    return rows


def _filter(agent: str, name: str) -> SignalFilter:
    return SignalFilter.of(agents=[_agent_id(agent)] if agent else [], names=[name] if name else [])


def _agent_id(text: str) -> UUID:
    agent = agent_named(text)
    # An id may be that of a destroyed agent, whose signals are still there.
    chosen = read_id(text) if agent is None else agent.id
    if chosen is None:
        raise Invalid(f"there is no agent {text!r} in this tenant; write its name as the list of agents does")
    return chosen


def _row(record: SignalRecord, agents: dict[UUID, str]) -> SignalRow:
    # A name of another version is shown without its meaning.
    meaning = CATALOGUE[SignalName(record.name)].meaning if record.name in CATALOGUE else ""
    return SignalRow(
        record=record,
        agent=agents.get(record.agent_id, "") if record.agent_id else "",
        meaning=meaning,
        facts=[
            (name, value)
            for name, value in record.data.items()
            if value not in (None, "") and not isinstance(value, list)
        ],
    )

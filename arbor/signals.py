"""Signals as values, and cursors that mark places in their order; with their names and catalogue.

A signal is a fact about one agent, or about what the agents of a tenant share, committed with the change that it describes. Its data is
small: ids, names, numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from arbor.errors import Invalid
from arbor.quotations import shorten
from arbor.signal_catalogue import CATALOGUE, MAX_IDS
from arbor.signal_names import SignalName

__all__ = [
    "CATALOGUE",
    "LABEL_LENGTH",
    "MAX_IDS",
    "Cursor",
    "Signal",
    "SignalName",
    "label",
    "memory_data",
    "signal",
]

#: The most characters of a name or title in a signal.
LABEL_LENGTH = 120
_FIRST = UUID(int=0)
_CURSOR = re.compile(r"([0-9a-f]{32})\.(\d{1,6})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """One state change of an agent or, without an agent, of what the tenant's agents share; `data` has JSON values by the catalogue's names."""

    name: SignalName
    agent_id: UUID | None
    #: The heartbeat that the change happened in.
    heartbeat_id: UUID | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for data whose fields differ from the catalogue's."""
        known = CATALOGUE[self.name].fields.keys()
        if self.data.keys() != known:
            raise ValueError(f"{self.name} has the fields {', '.join(known)}, got {', '.join(self.data)}")


@dataclass(frozen=True, order=True, slots=True)
class Cursor:
    """A place in the order of signals: after the first `number` signals of a row."""

    row_id: UUID = _FIRST
    number: int = 0

    def __str__(self) -> str:
        return f"{self.row_id.hex}.{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a cursor as `str` writes it. Raises Invalid."""
        match = _CURSOR.fullmatch(text.strip())
        if match is None:
            raise Invalid(f"a cursor is the id of a signal, as an earlier answer named it; got {text[:80]!r}")
        return cls(row_id=UUID(match[1]), number=int(match[2]))


def signal(
    name: SignalName, agent_id: UUID | None, heartbeat_id: UUID | None = None, /, **data: Any
) -> Signal:
    """Return a signal with its data as keywords. Raises ValueError for fields that differ from the catalogue's."""
    return Signal(name=name, agent_id=agent_id, heartbeat_id=heartbeat_id, data=data)


def memory_data(ids: Iterable[UUID]) -> dict[str, Any]:
    """Return the fields `count` and `memories` for ids of memories."""
    known = list(dict.fromkeys(ids))
    return {"count": len(known), "memories": known[:MAX_IDS]}


def label(text: str) -> str:
    """Return a name or title in one line of at most LABEL_LENGTH characters."""
    return shorten(" ".join(text.split()), LABEL_LENGTH)

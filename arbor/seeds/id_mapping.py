"""New ids for the rows of a seed that becomes another agent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Any
from uuid import UUID

import orjson

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: The random bits at the end of an id of `arbor.ids.uuid7`. Those before them are the time, so that new ids sort like the old ones.
_RANDOM_BITS = 62


def derived_id(old: UUID, *, owner: UUID) -> UUID:
    """Return the id of a row's copy for another owner, computed from the owner's id and the old one, whose time it has."""
    value = int.from_bytes(hashlib.sha256(owner.bytes + old.bytes).digest()[:16], "big")
    value = (old.int >> _RANDOM_BITS << _RANDOM_BITS) | (value & ((1 << _RANDOM_BITS) - 1))
    value = value & ~(0xF << 76) | (0x7 << 76)
    return UUID(int=value & ~(0b11 << 62) | (0b10 << 62))


class IdMapping:
    """Replaces the ids of an agent and of its rows by those of another agent.

    The new id of a row is computed from the old one and the new agent's, so that no table of ids is needed.
    """

    def __init__(self, *, own: Collection[bytes], agent: tuple[UUID, UUID], texts: dict[str, str]) -> None:
        self._own = own
        self._old_agent, self._new_agent = agent
        self._texts = texts

    def id_of(self, old: UUID) -> UUID:
        """Return the new id of a row."""
        return self._new_agent if old == self._old_agent else derived_id(old, owner=self._new_agent)

    def apply(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return a row with every id of the seed's rows replaced, within texts and keys as well."""
        text = orjson.dumps(values).decode()
        for old, new in self._texts.items():
            text = text.replace(old, new)
        applied: dict[str, Any] = orjson.loads(_ID.sub(self._replacement, text))
        return applied

    def _replacement(self, match: re.Match[str]) -> str:
        found = UUID(match[0])
        if found == self._old_agent or found.bytes in self._own:
            return str(self.id_of(found))
        return match[0]

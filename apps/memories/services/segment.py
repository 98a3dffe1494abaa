"""Episodes as memories are stored: which they join, which begin, which are over. The agent's mind is locked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.tenants.statements import fetch
from arbor.errors import ConfigurationInvalid
from arbor.memory.segmentation import Section, segment
from arbor.memory.values import MemoryType, NewMemory

# Those that may be near, the one that is open, and the latest.
_NEAR = """
SELECT e.id, r.session, e.started_at, e.last_at, e.size, e.ended_at IS NULL
FROM json_to_recordset(%(rows)s::json) AS r(session text, first timestamptz, last timestamptz)
CROSS JOIN LATERAL (
    SELECT id, started_at, last_at, size, ended_at FROM memories_episode
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = r.session
        AND last_at >= r.first - %(gap)s AND started_at <= r.last + %(gap)s
    UNION
    SELECT id, started_at, last_at, size, ended_at FROM memories_episode
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = r.session AND ended_at IS NULL
    UNION (
        SELECT id, started_at, last_at, size, ended_at FROM memories_episode
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = r.session
        ORDER BY last_at DESC LIMIT 1
    )
) e
"""
#: Part of the statement that writes memories. Those that are over come first: a session has one open episode at most.
#: One that gets more members after it was summarized is summarized again.
WRITE_EPISODES = """
INSERT INTO memories_episode (tenant_id, agent_id, id, session, started_at, last_at, ended_at, size, summary,
    summarized_by, failures, failure)
SELECT %(tenant)s, %(agent)s, r.id, r.session, r.started_at, r.last_at, CASE WHEN NOT r.open THEN now() END, r.size,
    '', '', 0, ''
FROM json_to_recordset(%(episodes)s::json) AS r(
    id uuid, session text, started_at timestamptz, last_at timestamptz, open bool, size int
)
ORDER BY r.open, r.id
ON CONFLICT (tenant_id, id) DO UPDATE SET started_at = EXCLUDED.started_at, last_at = EXCLUDED.last_at,
    ended_at = EXCLUDED.ended_at, size = EXCLUDED.size,
    summarized_at = CASE WHEN EXCLUDED.size = memories_episode.size THEN memories_episode.summarized_at END,
    failures = CASE WHEN EXCLUDED.size = memories_episode.size THEN memories_episode.failures ELSE 0 END
"""


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """Where memories belong, and the rows of their episodes as WRITE_EPISODES reads them."""

    #: By the memory's number in its batch: its episode, and its place there.
    places: Mapping[int, tuple[UUID, int]]
    rows: Sequence[Mapping[str, Any]]


def episode_gap() -> timedelta:
    """Return the longest silence within an episode. Raises ConfigurationInvalid."""
    gap: timedelta = settings.ARBOR_EPISODE_GAP
    if gap < timedelta():
        raise ConfigurationInvalid(
            f"ARBOR_EPISODE_GAP_MINUTES must be 0 or more, got {gap / timedelta(minutes=1):g}"
        )
    return gap


def segment_memories(agent_id: UUID, memories: Mapping[int, NewMemory]) -> Episodes:
    """Put the episodic ones of new memories into episodes. One statement, none if no memory is episodic."""
    sessions: dict[str, list[int]] = defaultdict(list)
    for number, memory in memories.items():
        if memory.type is MemoryType.EPISODIC:
            sessions[memory.session].append(number)
    if not sessions:
        return Episodes(places={}, rows=())
    known = _near(agent_id, {name: [memories[each] for each in of] for name, of in sessions.items()})
    places: dict[int, tuple[UUID, int]] = {}
    rows: list[dict[str, Any]] = []
    for session, numbers in sessions.items():
        moments = [(memories[each].occurred_at, memories[each].position) for each in numbers]
        found = segment(moments, known.get(session, ()), gap=episode_gap())
        places.update(zip(numbers, found.places, strict=True))
        rows += [_row(session, section) for section in found.changed]
    return Episodes(places=places, rows=rows)


def _near(agent_id: UUID, sessions: Mapping[str, Sequence[NewMemory]]) -> dict[str, list[Section]]:
    asked = []
    for session, memories in sessions.items():
        times = [memory.occurred_at for memory in memories]
        asked.append({"session": session, "first": min(times).isoformat(), "last": max(times).isoformat()})
    found: dict[str, list[Section]] = defaultdict(list)
    rows = fetch(_NEAR, agent=agent_id, rows=json.dumps(asked), gap=episode_gap())
    for episode_id, session, started_at, last_at, size, is_open in rows:
        found[session].append(
            Section(id=episode_id, started_at=started_at, last_at=last_at, size=size, open=is_open)
        )
    return found


def _row(session: str, section: Section) -> dict[str, Any]:
    return {
        "id": str(section.id),
        "session": session,
        "started_at": section.started_at.isoformat(),
        "last_at": section.last_at.isoformat(),
        "open": section.open,
        "size": section.size,
    }

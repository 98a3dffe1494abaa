"""Assign memories to episodes as they are stored: extend, open and close episodes. The caller has locked the minds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.memories.services.store import queries
from apps.memories.services.store.drafts import Insertion
from apps.tenants.encoding import to_json
from apps.tenants.statements import fetch
from arbor.errors import ConfigurationInvalid
from arbor.memory.episodes import EpisodeSegment, segment_session, summarized_episode
from arbor.memory.values import MemoryType

#: Earlier episodes of a session that are considered: more than one only where episodes overlap.
_EARLIER = 16

#: An agent, and the name of one of its sessions.
type _Session = tuple[UUID, str]


@dataclass(frozen=True, kw_only=True)
class Episodes:
    """The episode of each memory, and the rows of the episodes as WRITE_EPISODES reads them."""

    #: The episode of each memory, and the place in it, by the memory's id.
    places: Mapping[UUID, tuple[UUID, int]]
    rows: Sequence[Mapping[str, Any]]


def episode_gap() -> timedelta:
    """Return the longest silence within an episode. Raises ConfigurationInvalid."""
    gap: timedelta = settings.ARBOR_EPISODE_GAP
    if gap < timedelta():
        raise ConfigurationInvalid(
            f"ARBOR_EPISODE_GAP_MINUTES must be 0 or more, got {gap / timedelta(minutes=1):g}"
        )
    return gap


def segment_memories(steps: Mapping[UUID, Sequence[Sequence[Insertion]]]) -> Episodes:
    """Assign the episodic memories among several agents' new ones to episodes, step by step; `steps` has the steps by agent.

    One statement; none if no memory is episodic.
    """
    sessions: dict[_Session, list[list[Insertion]]] = {}
    places: dict[UUID, tuple[UUID, int]] = {}
    for agent_id, of_agent in steps.items():
        for step in of_agent:
            places |= _places_of_summaries(step)
            for session, episodic in _by_session(step).items():
                sessions.setdefault((agent_id, session), []).append(episodic)
    if not sessions:
        return Episodes(places=places, rows=())
    known = _near(sessions)
    rows: list[dict[str, Any]] = []
    for where, of_steps in sessions.items():
        segments = {segment.id: segment for segment in known.get(where, ())}
        changed: set[UUID] = set()
        for episodic in of_steps:
            moments = [(insertion.memory.occurred_at, insertion.memory.position) for insertion in episodic]
            found = segment_session(moments, list(segments.values()), gap=episode_gap())
            places.update(zip((insertion.placed.id for insertion in episodic), found.places, strict=True))
            segments.update({segment.id: segment for segment in found.changed})
            changed.update(segment.id for segment in found.changed)
        rows += [_row(where, segment) for segment in segments.values() if segment.id in changed]
    return Episodes(places=places, rows=rows)


def _by_session(step: Sequence[Insertion]) -> dict[str, list[Insertion]]:
    found: dict[str, list[Insertion]] = defaultdict(list)
    for insertion in step:
        session = insertion.memory.session
        if insertion.memory.type is MemoryType.EPISODIC and summarized_episode(session) is None:
            found[session].append(insertion)
    return found


def _places_of_summaries(step: Sequence[Insertion]) -> dict[UUID, tuple[UUID, int]]:
    """Return the places of summaries in their episodes: 0, before the first memory."""
    episodes = {insertion.placed.id: summarized_episode(insertion.memory.session) for insertion in step}
    return {memory_id: (episode_id, 0) for memory_id, episode_id in episodes.items() if episode_id}


def _near(sessions: Mapping[_Session, Sequence[Sequence[Insertion]]]) -> dict[_Session, list[EpisodeSegment]]:
    """Return the stored episodes to which the new memories of each session may belong. One statement."""
    spans = []
    for (agent_id, session), of_steps in sessions.items():
        times = [insertion.memory.occurred_at for episodic in of_steps for insertion in episodic]
        spans.append({"agent": agent_id, "session": session, "first": min(times), "last": max(times)})
    found: dict[_Session, list[EpisodeSegment]] = defaultdict(list)
    for episode_id, agent_id, session, started_at, last_at, size, is_open in fetch(
        queries.EPISODES_NEAR, rows=to_json(spans), gap=episode_gap(), earlier=_EARLIER
    ):
        found[agent_id, session].append(
            EpisodeSegment(id=episode_id, started_at=started_at, last_at=last_at, size=size, open=is_open)
        )
    return found


def _row(where: _Session, segment: EpisodeSegment) -> dict[str, Any]:
    agent_id, session = where
    return {
        "agent": agent_id,
        "id": segment.id,
        "session": session,
        "started_at": segment.started_at,
        "last_at": segment.last_at,
        "open": segment.open,
        "size": segment.size,
    }

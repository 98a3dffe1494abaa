"""An agent's own heartbeats in its recalls: those that its prompt shows anyway are left out, and the others are few.

A narrative quotes what it is about, so narratives would displace facts; and an agent that reads its latest narratives
again and again repeats them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any
from uuid import UUID

from arbor.heartbeat.failure_modes import are_alike, words_of_narrative
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.state import HeartbeatState
from arbor.memory.recall.recall_request import (
    EVERYTHING,
    MAX_LIMIT,
    RecallFilter,
    RecallRequest,
    SessionLimit,
)
from arbor.memory.values import HEARTBEATS_SESSION, Recalled
from arbor.selves.memory_filters import BeliefFilter, apply_filters
from arbor.values import replace

#: Every memory but those of the agent's own heartbeats.
NOT_OWN_HEARTBEATS = replace(EVERYTHING, without_session=HEARTBEATS_SESSION)
#: Memories to recall for each one that is chosen: the others make up for own heartbeats that are left out.
_ASKED_FOR = 3


def own_past_filter(situation: Situation) -> RecallFilter:
    """Return the filter that leaves out the heartbeats in the prompt: the latest events are shown there.

    Rules repeat what they recall, so the reflex policy recalls own heartbeats only about something that reached it.
    """
    if situation.model_is_reflex and not situation.percepts:
        return NOT_OWN_HEARTBEATS
    if not situation.recent:
        return EVERYTHING
    return replace(NOT_OWN_HEARTBEATS, without_since=min(memory.at for memory in situation.recent))


def recall_memories(
    heartbeat: HeartbeatState,
    text: str,
    *,
    limit: int,
    only: RecallFilter,
    filters: Sequence[BeliefFilter] = (),
    **more: Any,
) -> Generator[RecallRequest, list[Recalled], list[Recalled]]:
    """Recall memories, and return the `limit` that `choose_memories` chooses from those that pass the filters of beliefs.

    In a long life, own heartbeats would displace all others: they are at most half of those that are recalled.
    """
    most = min(MAX_LIMIT, _ASKED_FOR * limit)
    leaves_out_all = bool(only.without_session) and only.without_since is None
    own = None if leaves_out_all else SessionLimit(session=HEARTBEATS_SESSION, most=most // 2)
    found = yield heartbeat.recall_of(text, limit=most, only=only, session_limit=own, **more)
    return choose_memories(apply_filters(found, filters), limit=limit, situation=heartbeat.situation)


def choose_memories(found: Sequence[Recalled], *, limit: int, situation: Situation) -> list[Recalled]:
    """Return the best `limit` memories, with own heartbeats for at most half of the limit, none almost the same as a shown one.

    A limit of 1 may be one own heartbeat. What does not fit the query at all, and only fills the limit, comes last, the latest first.
    """
    fillers = sorted(
        (memory for memory in found if not _fits(memory)), key=lambda memory: -memory.occurred_at.timestamp()
    )
    in_order = [*filter(_fits, found), *fillers]
    own = set(_own_heartbeats(in_order, most=max(1, limit // 2), situation=situation))
    return [memory for memory in in_order if memory.session != HEARTBEATS_SESSION or memory.id in own][:limit]


def _own_heartbeats(found: Sequence[Recalled], *, most: int, situation: Situation) -> Iterator[UUID]:
    """Yield the ids of the first own heartbeats that are not almost the same as a shown or an earlier one."""
    narratives = [memory for memory in found if memory.session == HEARTBEATS_SESSION]
    if not narratives:
        return
    known = [words_of_narrative(memory.content) for memory in situation.recent]
    if situation.last_heartbeat is not None:
        known.append(words_of_narrative(situation.last_heartbeat.narrative))
    for memory in narratives:
        words = words_of_narrative(memory.content)
        if not any(are_alike(words, other) for other in known):
            known.append(words)
            yield memory.id
            most -= 1
        if not most:
            return


def _fits(memory: Recalled) -> bool:
    components = memory.components
    return any(
        (
            components.meaning,
            components.words,
            components.neighbours,
            components.association,
            components.speaker,
            components.time,
        )
    )

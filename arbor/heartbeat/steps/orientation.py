"""Orientation: choose what to recall about, check it against the boundaries, recall, and choose the mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arbor.heartbeat.beat import Beat, Focus
from arbor.heartbeat.focus import focus_text, mode_of
from arbor.heartbeat.guarding import crossed_by
from arbor.heartbeat.needs import Embedding, HeldThings
from arbor.heartbeat.situation import HeldView, MemoryView
from arbor.memory.filters import EVERYTHING
from arbor.memory.recall_request import RecallRequest
from arbor.memory.values import Recalled
from arbor.pipeline.engine import NodeResult, Steps
from arbor.values import replace

#: The origin of seed 000 recalls five memories.
RELEVANT_SHOWN = 5
#: Things the agent has heard without having decided to remember them.
HELD_SHOWN = 3
#: The session that an agent's own heartbeats form, in the order of their numbers.
BEATS_SESSION = "heartbeats"
#: Its own heartbeats are shown as recent ones; recalled too, they would echo from beat to beat.
NOT_OWN_BEATS = replace(EVERYTHING, without_session=BEATS_SESSION)


def focus(beat: Beat) -> Steps[Beat]:
    """Choose what the beat recalls about, and have it embedded with what reached the agent."""
    situation = beat.situation
    text = focus_text(situation)
    heard = [percept.content for percept in situation.percepts if percept.content.strip()]
    vectors: dict[str, Any] = {}
    if text or heard:
        vectors = yield Embedding(
            model=beat.embedding_model,
            queries=[text] if text else [],
            plain=heard,
            boundaries=beat.selfhood.boundaries if heard else None,
        )
    return NodeResult(state=replace(beat, focus=Focus(text=text, vector=vectors.get(text), vectors=vectors)))


def guard(beat: Beat) -> NodeResult[Beat]:
    """Put the boundaries that are touched by what reached the agent into its situation."""
    situation = beat.situation
    if not situation.percepts:
        return NodeResult(state=beat)
    vectors = beat.focus.vectors if beat.focus else {}
    crossed = crossed_by(situation.percepts, beat.boundaries, vectors)
    return NodeResult(
        state=beat.with_view(crossed=crossed),
        changed=tuple(dict.fromkeys(f"{crossing.boundary}: {crossing.why}" for crossing in crossed)),
    )


def orient(beat: Beat) -> Steps[Beat]:
    """Recall what bears on the focus, from memory and, if anything is held, from the buffer."""
    focused = beat.focus or Focus(text="")
    if not focused.text:
        return NodeResult(state=replace(beat.with_view(relevant=[], held=[]), focus=None))
    opening = beat.opening
    found: list[Recalled] = yield RecallRequest(
        agent_id=beat.agent_id,
        text=focused.text,
        vector=focused.vector,
        model=beat.embedding_model,
        limit=RELEVANT_SHOWN,
        now=beat.now,
        only=NOT_OWN_BEATS,
        # What comes by itself is coloured by how the last beat felt; what the agent looks for on purpose is not.
        mood=opening.mood if opening else None,
    )
    held: Sequence[HeldView] = []
    if opening and opening.held:
        held = yield HeldThings(
            text=focused.text, vector=focused.vector, model=beat.embedding_model, limit=HELD_SHOWN
        )
    beat = beat.with_view(relevant=[memory_view(memory) for memory in found], held=list(held))
    if found:
        beat = beat.bringing(recalls=({memory.id: memory.score for memory in found},))
    return NodeResult(state=replace(beat, focus=None))


def select_mode(beat: Beat) -> NodeResult[Beat]:
    """Choose what kind of heartbeat it is going to be."""
    mode = mode_of(beat.situation)
    return NodeResult(state=replace(beat.with_view(mode=mode), mode=mode.value))


def memory_view(memory: Recalled) -> MemoryView:
    """Return a recalled memory as an agent sees it."""
    return MemoryView(
        id=str(memory.id),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        at=memory.occurred_at,
        importance=memory.importance,
        score=round(memory.score, 4) if memory.terms.total else None,
    )

"""Orientation: focus, boundary check of the percepts, recall and mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arbor.heartbeat.boundary_guard import boundary_matches_of
from arbor.heartbeat.focus import focus_text, mode_of
from arbor.heartbeat.needs import BufferItems, Embedding
from arbor.heartbeat.situation import BufferItemView, MemoryView
from arbor.heartbeat.state import Beat, Focus
from arbor.memory.recall_request import EVERYTHING, RecallRequest
from arbor.memory.values import Recalled
from arbor.pipeline.engine import NodeResult, Steps
from arbor.values import replace

#: The origin of seed 000 recalls five memories.
RELEVANT_SHOWN = 5
#: Buffer items.
HELD_SHOWN = 3
#: The session of an agent's own heartbeats.
BEATS_SESSION = "heartbeats"
#: Recalled narratives would repeat from heartbeat to heartbeat; recent ones are shown anyway.
NOT_OWN_BEATS = replace(EVERYTHING, without_session=BEATS_SESSION)


def focus(heartbeat: Beat) -> Steps[Beat]:
    """Choose the query of the recall, and embed it with the percepts."""
    situation = heartbeat.situation
    text = focus_text(situation)
    heard = [percept.content for percept in situation.percepts if percept.content.strip()]
    vectors: dict[str, Any] = {}
    if text or heard:
        vectors = yield Embedding(
            model=heartbeat.embedding_model,
            queries=[text] if text else [],
            plain=heard,
            boundaries=heartbeat.selfhood.boundaries if heard else None,
        )
    return NodeResult(
        state=replace(heartbeat, focus=Focus(text=text, vector=vectors.get(text), vectors=vectors))
    )


def guard(heartbeat: Beat) -> NodeResult[Beat]:
    """Add the boundary matches of the percepts to the situation."""
    situation = heartbeat.situation
    if not situation.percepts:
        return NodeResult(state=heartbeat)
    vectors = heartbeat.focus.vectors if heartbeat.focus else {}
    crossed = boundary_matches_of(situation.percepts, heartbeat.boundaries, vectors)
    return NodeResult(
        state=heartbeat.with_view(crossed=crossed),
        changed=tuple(dict.fromkeys(f"{crossing.boundary}: {crossing.why}" for crossing in crossed)),
    )


def orient(heartbeat: Beat) -> Steps[Beat]:
    """Recall memories and buffer items about the focus."""
    focused = heartbeat.focus or Focus(text="")
    if not focused.text:
        return NodeResult(state=replace(heartbeat.with_view(relevant=[], held=[]), focus=None))
    opening = heartbeat.opening
    found: list[Recalled] = yield RecallRequest(
        agent_id=heartbeat.agent_id,
        text=focused.text,
        vector=focused.vector,
        model=heartbeat.embedding_model,
        limit=RELEVANT_SHOWN,
        now=heartbeat.now,
        only=NOT_OWN_BEATS,
        # The mood biases this recall, not those of actions.
        mood=opening.mood if opening else None,
    )
    held: Sequence[BufferItemView] = []
    if opening and opening.held:
        held = yield BufferItems(
            text=focused.text, vector=focused.vector, model=heartbeat.embedding_model, limit=HELD_SHOWN
        )
    heartbeat = heartbeat.with_view(relevant=[memory_view(memory) for memory in found], held=list(held))
    if found:
        heartbeat = heartbeat.bringing(recalls=({memory.id: memory.score for memory in found},))
    return NodeResult(state=replace(heartbeat, focus=None))


def select_mode(heartbeat: Beat) -> NodeResult[Beat]:
    """Choose the mode."""
    mode = mode_of(heartbeat.situation)
    return NodeResult(state=replace(heartbeat.with_view(mode=mode), mode=mode.value))


def memory_view(memory: Recalled) -> MemoryView:
    """Return the view of a recalled memory."""
    return MemoryView(
        id=str(memory.id),
        type=memory.type,
        content=memory.content,
        role=memory.role,
        at=memory.occurred_at,
        importance=memory.importance,
        score=round(memory.score, 4) if memory.terms.total else None,
    )

"""Reconstruction of the working memory from recorded heartbeats and conversations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from arbor.heartbeat.quotations import clip
from arbor.heartbeat.working_memory import (
    LINE_LENGTH,
    MAX_GOALS,
    Thought,
    WorkingMemory,
    after_conversation,
    after_heartbeat,
    after_turn,
)


@dataclass(frozen=True, kw_only=True)
class PastHeartbeat:
    """The fields of a completed heartbeat that change the working memory."""

    at: datetime
    thinking: str = ""
    concerns: Sequence[str] = ()
    curiosity: Sequence[str] = ()
    resolved: Sequence[str] = ()
    #: Whether a user wrote, any action had a cost, its mode was consolidation.
    user_waiting: bool = False
    acted: bool = False
    tended: bool = False


@dataclass(frozen=True, kw_only=True)
class PastTurn:
    """An answered turn of a conversation."""

    at: datetime
    human: str
    conversation: str
    thinking: str = ""
    #: Whether the conversation has ended.
    over: bool = True


def rebuilt(
    events: Iterable[PastHeartbeat | PastTurn],
    *,
    agent_id: str,
    name: str,
    active_goals: Sequence[str],
    now: datetime,
    thoughts: Sequence[Thought] = (),
    curiosity: Sequence[str] = (),
) -> WorkingMemory:
    """Return the working memory after these events; `active_goals` are titles, `thoughts` and `curiosity` precede all events."""
    memory = WorkingMemory(
        agent_id=agent_id, name=name, started_at=now, thoughts=list(thoughts), curiosity=list(curiosity)
    )
    for event in sorted(events, key=lambda past: past.at):
        memory = _after(memory, event)
    return memory.model_copy(
        update={"active_goals": [clip(title, LINE_LENGTH) for title in active_goals[:MAX_GOALS]]}
    )


def _after(memory: WorkingMemory, event: PastHeartbeat | PastTurn) -> WorkingMemory:
    if isinstance(event, PastHeartbeat):
        return after_heartbeat(
            memory,
            thinking=event.thinking,
            concerns=event.concerns,
            curiosity=event.curiosity,
            resolved=event.resolved,
            user_waiting=event.user_waiting,
            acted=event.acted,
            tended=event.tended,
            now=event.at,
        )
    memory = after_turn(
        memory, thinking=event.thinking, human=event.human, conversation=event.conversation, now=event.at
    )
    return after_conversation(memory, conversation=event.conversation) if event.over else memory

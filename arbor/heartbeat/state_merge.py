"""Merge of concurrent changes to an agent's state at the end of a heartbeat.

| changed meanwhile by | column | the heartbeat's end |
|---|---|---|
| a conversation | working memory: who is there, the conversation | leaves it as it is |
| a conversation | working memory: thoughts since the heartbeat began | adds them after its own |
| a conversation | working memory: talk since the last consolidation | adds it to its own count |
| a conversation | working memory: engagement | adds the difference to what the heartbeat leaves, within 0 and 1 |
| a conversation | mood | adds the heartbeat's share of the change to it |
| a conversation | stale heartbeats | leaves them, where they became fewer |
| a person, a program | energy, ticks, bonus actions | adds the difference to what the heartbeat leaves, within the bounds |
| anybody | percepts | the heartbeat has taken in those that its prompt showed; the others wait for the next one |
| a person | goals, plans, intents | read anew and locked before the heartbeat changes them |
| a person | boundaries, policy, model, character | those that the heartbeat found apply until its end |
| a person | schedule, status of the agent | the end of the heartbeat leaves an earlier time, and ends where the agent may not run |
| the heartbeat alone | drives, what was learned, idle heartbeats, notices, heartbeats, unusable replies | overwrites them |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from arbor.heartbeat.working_memory import MAX_THOUGHTS, WorkingMemory, within_limit


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundState:
    """Columns of the agent's state at the beginning of the heartbeat, or after its own last commit."""

    energy: float = 0.0
    ticks_left: int = 0
    #: The ticks of the new cycle that the heartbeat began, 0 if it began none; they are not written before its end.
    ticks_renewed: int = 0
    bonus_actions: int = 0
    mood: dict[str, Any] = field(default_factory=dict)
    #: `stale_beats` in older checkpoints.
    stale_heartbeats: Annotated[
        int, Field(validation_alias=AliasChoices("stale_heartbeats", "stale_beats"))
    ] = 0
    #: The time of the last recorded heartbeat; `last_beat_at` in older checkpoints.
    last_heartbeat_at: Annotated[
        datetime | None, Field(validation_alias=AliasChoices("last_heartbeat_at", "last_beat_at"))
    ] = None


def merged_amount(
    wanted: float | None, *, found: float, now: float, most: float, renewed: float = 0
) -> float | None:
    """Return an amount with its concurrent changes added; None: unchanged.

    `renewed`: what the heartbeat began with beyond what it found, which a concurrent change replaces.
    """
    if wanted is None or now == found:
        return wanted
    return min(most, max(0, wanted + now - found - renewed))


def merged_mood(
    wanted: dict[str, Any] | None,
    *,
    found: Mapping[str, Any],
    now: Mapping[str, Any],
    valence: float,
    arousal: float,
) -> dict[str, Any] | None:
    """Return the mood; the heartbeat's own change is added to a concurrent one."""
    if wanted is None or now == found or now.get("valence") is None:
        return wanted
    return {
        **now,
        "valence": round(min(1.0, max(-1.0, float(now["valence"]) + valence)), 4),
        "arousal": round(min(1.0, max(0.0, float(now["arousal"]) + arousal)), 4),
    }


def merged_stale_heartbeats(wanted: int | None, *, found: int, now: int) -> int | None:
    """Return the number of heartbeats without news; a concurrent conversation lowers it."""
    return now if wanted is not None and now < found else wanted


def merged_memory(
    wanted: WorkingMemory, *, now: WorkingMemory, found: WorkingMemory, since: datetime
) -> WorkingMemory:
    """Return the working memory with the changes of a concurrent conversation since the one that was `found`."""
    meanwhile = [thought for thought in now.thoughts if thought.at > since]
    repeated = {thought.text for thought in meanwhile}
    own = [thought for thought in wanted.thoughts if thought.text not in repeated]
    merged = wanted.model_copy(
        update={
            "current_human": now.current_human,
            "current_conversation": now.current_conversation,
            "talked": wanted.talked + max(0, now.talked - found.talked),
            "engagement": round(min(1.0, max(0.0, wanted.engagement + now.engagement - found.engagement)), 4),
            "thoughts": [*own, *meanwhile][-MAX_THOUGHTS:],
        }
    )
    return within_limit(merged)


def after_writing(found: FoundState, **left: Any) -> FoundState:
    """Return the found state after a commit of the heartbeat itself."""
    written = {name: value for name, value in left.items() if value is not None}
    if "ticks_left" in written:
        written["ticks_renewed"] = 0
    return replace(found, **written)

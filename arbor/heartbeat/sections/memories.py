"""Sections about memories, clusters and the working memory."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.clock import when
from arbor.heartbeat.quotations import Data, line
from arbor.heartbeat.situation import BufferItemView, ClusterView, MemoryView
from arbor.heartbeat.working_memory import WorkingMemory

# Keywords and characters that are shown.
SHOWN_KEYWORDS = 8
MEMORY_LENGTH = 1_200

# Least strength of a feeling that is named, and of a strong one; 0 to 1.
FAINT = 0.1
STRONG = 0.6


def memories(title: str, memories: Sequence[MemoryView], data: Data) -> str:
    if not memories:
        return f"## {title}\nNone."
    return f"## {title}\n" + data.block(
        f"[{memory.id}] {when(memory.at)}, {memory.type}"
        + (f", from {line(memory.role)}" if memory.role else "")
        + f": {line(memory.content, MEMORY_LENGTH)}"
        for memory in memories
    )


def themes(themes: Sequence[ClusterView], data: Data) -> str:
    if not themes:
        return "## Activated themes\nNone."
    return "## Activated themes\n" + data.block(
        line(theme.name)
        + (f": {line(', '.join(theme.keywords[:SHOWN_KEYWORDS]))}" if theme.keywords else "")
        + f" ({_feeling(theme)})"
        for theme in themes
    )


def held(held: Sequence[BufferItemView], data: Data) -> str:
    if not held:
        return ""
    return "## Heard lately, not yet remembered\n" + data.block(
        when(item.at)
        + (f", from {line(item.role)}" if item.role else "")
        + f": {line(item.content, MEMORY_LENGTH)}"
        for item in held
    )


def working_memory(memory: WorkingMemory, data: Data) -> str:
    # Goals have a section of their own.
    text = memory.to_prompt_text(with_goals=False)
    body = data.block([text]) if text else "Nothing yet."
    return f"## On your mind (engagement {memory.engagement:.1f} of 1)\n{body}"


def _feeling(theme: ClusterView) -> str:
    """Return the emotional signature in words; a faint one is neutral."""
    if theme.emotional_intensity < FAINT or abs(theme.emotional_valence) < FAINT:
        return "feels neutral"
    how = "strongly " if theme.emotional_intensity >= STRONG else ""
    return f"feels {how}{'good' if theme.emotional_valence > 0 else 'bad'}"

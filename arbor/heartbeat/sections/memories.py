"""The prompt's parts about what the agent has in mind."""

from __future__ import annotations

from collections.abc import Sequence

from arbor.clock import when
from arbor.heartbeat.sections.text import Data, line
from arbor.heartbeat.situation import HeldView, MemoryView, ThemeView
from arbor.heartbeat.working_memory import WorkingMemory

# How much of each is shown.
SHOWN_KEYWORDS = 8
MEMORY_LENGTH = 1_200

# How strong a feeling must be to be named, and to be called strong; of 1.
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


def themes(themes: Sequence[ThemeView], data: Data) -> str:
    if not themes:
        return "## Activated themes\nNone."
    return "## Activated themes\n" + data.block(
        line(theme.name)
        + (f": {line(', '.join(theme.keywords[:SHOWN_KEYWORDS]))}" if theme.keywords else "")
        + f" ({_feeling(theme)})"
        for theme in themes
    )


def held(held: Sequence[HeldView], data: Data) -> str:
    if not held:
        return ""
    return "## Heard lately, not yet remembered\n" + data.block(
        when(each.at)
        + (f", from {line(each.role)}" if each.role else "")
        + f": {line(each.content, MEMORY_LENGTH)}"
        for each in held
    )


def working_memory(memory: WorkingMemory, data: Data) -> str:
    # The goals have a part of their own.
    text = memory.to_prompt_text(with_goals=False)
    body = data.block([text]) if text else "Nothing yet."
    return f"## On your mind (engagement {memory.engagement:.1f} of 1)\n{body}"


def _feeling(theme: ThemeView) -> str:
    """Say how a theme feels; what hardly stirs anything says so, whatever its sign."""
    if theme.emotional_intensity < FAINT or abs(theme.emotional_valence) < FAINT:
        return "feels neutral"
    how = "strongly " if theme.emotional_intensity >= STRONG else ""
    return f"feels {how}{'good' if theme.emotional_valence > 0 else 'bad'}"

"""Cuts of a context for the audit log, and the error of a context that cannot be cut enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: `apps.audit.models.AuditAction.TRUNCATED`.
TRUNCATED = "truncated"

# What people can shorten, by section.
_REMEDIES: Mapping[str, str] = {
    "skills": "choose fewer or shorter skills",
    "character": "shorten the character",
    "message": "write a shorter message",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CutContext:
    """Tokens that a context has lost, its dropped entries, and the tokens that it has, all by section."""

    removed: Mapping[str, int]
    entries: Mapping[str, int]
    left: Mapping[str, int]

    @property
    def tokens(self) -> int:
        """Return the tokens of all sections."""
        return sum(self.removed.values())

    @property
    def in_words(self) -> str:
        """Return the cuts as one line, the largest first."""
        parts = [
            f"{name.replace('_', ' ')} {tokens:,}"
            for name, tokens in sorted(self.removed.items(), key=lambda cut: -cut[1])
        ]
        return f"{self.tokens:,} tokens left out ({', '.join(parts)})"

    def to_json(self, *, model: str, window: int) -> dict[str, Any]:
        """Return the detail of the audit event."""
        sources = {
            name: {
                "tokens": tokens,
                "before": tokens + self.left.get(name, 0),
                "after": self.left.get(name, 0),
                "entries": self.entries.get(name, 0),
            }
            for name, tokens in self.removed.items()
        }
        return {"model": model, "window": window, "tokens": self.tokens, "sources": sources}


def without_room(*, model: str, window: int, tokens: int, sizes: Mapping[str, int]) -> str:
    """Return why a window has no room for a context; `sizes` are the tokens of its sections, by name."""
    largest = max(sizes, key=lambda name: sizes[name], default="")
    part = f"; its largest part is {largest.replace('_', ' ')} with {sizes[largest]}" if largest else ""
    remedy = _REMEDIES.get(largest, "shorten the character")
    return (
        f"the window of {model} has about {window} tokens, too few for a reply to a prompt of {tokens}{part}: set"
        f" ARBOR_MODEL_CONTEXT if the server has more, use another model, or {remedy}"
    )

"""Results of a search as the passages of a prompt."""

from __future__ import annotations

from arbor.heartbeat.views import PassageView
from arbor.knowledge.merging import SourceResult


def passage_view(result: SourceResult) -> PassageView:
    """Return a result with its citation."""
    return PassageView(
        id=result.id,
        title=result.citation,
        place=f"{result.at:%Y-%m-%d}",
        text=result.content,
        similarity=min(1.0, max(0.0, result.similarity)),
    )

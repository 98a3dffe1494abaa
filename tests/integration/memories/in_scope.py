"""Recall in the open transaction, as heartbeats do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from apps.memories.services.recall.recaller import Recaller
from arbor.embedding.models import EmbeddingModel
from arbor.memory.recall.recall_request import EVERYTHING, RecallFilter, RecallRequest
from arbor.memory.values import Recalled


def recall_in_scope(
    *,
    agent_id: UUID,
    text: str,
    vector: Sequence[float] | None,
    limit: int,
    now: datetime | None = None,
    without_session: str = "",
    model: EmbeddingModel | None = None,
    only: RecallFilter = EVERYTHING,
    mood: float | None = None,
) -> list[Recalled]:
    """Recall for one agent in the transaction that is open.

    Memories of `without_session`, if named, are left out.
    """
    request = RecallRequest(
        agent_id=agent_id,
        text=text,
        limit=limit,
        now=now or datetime.now(UTC),
        vector=vector,
        model=model,
        only=replace(only, without_session=without_session) if without_session else only,
        mood=mood,
    )
    return Recaller().recall([request])[0]

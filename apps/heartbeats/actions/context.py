"""The context in which a service carries out an action of a beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.situation import Situation

#: The length of a text within the line that the agent reads at its next beat.
GLIMPSE = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """One beat's agent, moment and material."""

    agent_id: UUID
    heartbeat_id: UUID
    now: datetime
    situation: Situation
    #: Vectors of the texts that are searched for and stored, by text.
    vectors: Mapping[str, list[float]]
    #: The model of the agent's vectors; None while it remembers nothing.
    model: EmbeddingModel | None

    @property
    def source(self) -> str:
        """Return what a row that this beat makes names as where it comes from."""
        return f"heartbeat:{self.heartbeat_id}"

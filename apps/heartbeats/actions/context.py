"""The context in which a service executes an action of a heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.situation import Situation


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionContext:
    """The agent, the time, and the data of one heartbeat."""

    agent_id: UUID
    heartbeat_id: UUID
    now: datetime
    situation: Situation
    #: Vectors of the queries and of the texts to store, by text.
    vectors: Mapping[str, list[float]]
    #: The model of the agent's vectors; None while it has no memories.
    model: EmbeddingModel | None

    @property
    def source(self) -> str:
        """Return the source that rows of this heartbeat record."""
        return f"heartbeat:{self.heartbeat_id}"

    @property
    def actor(self) -> str:
        """Return the agent as an actor of the audit log."""
        return f"agent:{self.situation.public_id}"

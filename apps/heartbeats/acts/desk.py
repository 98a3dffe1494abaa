"""What the actions of one beat work with, and how they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from apps.memories.services.embedding import Vectors
from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange
from arbor.heartbeat.situation import Situation

#: What of a text fits into the line that the agent reads at its next beat.
GLIMPSE = 160


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One beat's agent, moment and material."""

    agent_id: UUID
    heartbeat_id: UUID
    now: datetime
    situation: Situation
    #: Vectors of the texts that are searched for and stored, by text.
    vectors: Mapping[str, list[float]]
    #: The model of the agent's vectors; none while it remembers nothing.
    model: EmbeddingModel | None
    #: Columns of the agent's state that actions change; written with the beat's record.
    state: dict[str, Any] = field(default_factory=dict)
    #: What actions did to goals; goes on the beat's record.
    goal_changes: list[GoalChange] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Return what a row that this beat makes names as where it comes from."""
        return f"heartbeat:{self.heartbeat_id}"


def answer(
    decision: Decision,
    outcome: ActionOutcome,
    summary: str,
    memory_ids: Sequence[UUID] = (),
    *,
    brought: str = "",
) -> ActionResult:
    """Return what became of a decision; `brought` is what the agent is to read before its beat goes on."""
    return ActionResult(
        index=decision.index,
        action=decision.action,
        outcome=outcome,
        summary=summary,
        cost=decision.cost,
        memory_ids=[str(each) for each in memory_ids],
        goal_id=decision.goal_id,
        intent_id=decision.intent_id,
        brought=brought,
    )


def vectors_of(texts: Sequence[str], known: Mapping[str, list[float]]) -> Vectors | None:
    """Return the texts' vectors, or none if one is missing: upkeep embeds what is stored without."""
    if any(text not in known for text in texts):
        return None
    return np.asarray([known[text] for text in texts], dtype=np.float32)


def rest(_: Desk, decision: Decision) -> ActionResult:
    """Do nothing; what that is worth, the budget says."""
    return answer(decision, ActionOutcome.SUCCESS, "rested")

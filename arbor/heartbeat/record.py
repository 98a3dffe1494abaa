"""The record of a heartbeat for its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from arbor.heartbeat.decision import Decision
from arbor.heartbeat.items import Dropped
from arbor.heartbeat.results import ActionResult, GoalChange


@dataclass(frozen=True, kw_only=True, slots=True)
class Deed:
    """One action: its decision, its result and its round trip."""

    decision: Decision
    result: ActionResult
    turn: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the entry of `Heartbeat.actions`."""
        entry = {**self.decision.model_dump(mode="json"), **self.result.model_dump(mode="json")}
        return entry if self.turn == 1 else {**entry, "turn": self.turn}


@dataclass(frozen=True, kw_only=True)
class TurnRecord:
    """The record of one or more round trips."""

    deeds: list[Deed] = field(default_factory=list)
    goal_changes: list[GoalChange] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    #: The model's thinking.
    reasoning: str = ""

    @property
    def results(self) -> list[ActionResult]:
        return [deed.result for deed in self.deeds]

    def followed_by(self, later: TurnRecord) -> TurnRecord:
        """Return both records joined."""
        return TurnRecord(
            deeds=[*self.deeds, *later.deeds],
            goal_changes=[*self.goal_changes, *later.goal_changes],
            dropped=[*self.dropped, *later.dropped],
            repairs=[*self.repairs, *later.repairs],
            reasoning="\n\n".join(filter(None, (self.reasoning, later.reasoning))),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class HeartbeatRecord:
    """The columns of a heartbeat's row."""

    number: int
    mode: str
    energy_start: float | None
    energy_end: float | None
    model: str
    tier: str
    turns: int
    whole: TurnRecord
    narrative: str
    emotional_valence: float | None
    arousal: float | None
    memory_id: UUID | None


def dropped_json(dropped: Sequence[Dropped]) -> list[dict[str, str]]:
    """Return the entries of `Heartbeat.dropped`."""
    return [{"path": item.path, "value": item.value, "reason": item.reason} for item in dropped]

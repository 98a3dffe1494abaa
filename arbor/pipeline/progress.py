"""Where a walk stands, what it has done, and why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from arbor.errors import CheckpointInvalid
from arbor.pipeline.outcomes import Outcome, Phase

# What the nodes know: JSON values by name. Read-only for a handler; it changes it by the updates it answers with.
type Context = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspension:
    """What a node waits for: a call of this kind, with this payload (JSON)."""

    kind: str
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """Where a walk stands; all a worker needs to go on with it.

    `cursor` is the next node, or, while `waiting`, the node that suspended. `steps` counts the steps taken so far.
    """

    cursor: str
    context: Mapping[str, Any] = field(default_factory=dict)
    visits: Mapping[str, int] = field(default_factory=dict)
    waiting: bool = False
    steps: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "cursor": self.cursor,
            "context": dict(self.context),
            "visits": dict(self.visits),
            "waiting": self.waiting,
            "steps": self.steps,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Checkpoint:
        """Read it from a JSON object; raises CheckpointInvalid naming what is missing."""
        missing = [name for name in ("cursor", "context", "visits", "waiting", "steps") if name not in stored]
        if missing:
            raise CheckpointInvalid(f"a stored checkpoint needs {', '.join(missing)}")
        return cls(
            cursor=stored["cursor"],
            context=stored["context"],
            visits=stored["visits"],
            waiting=stored["waiting"],
            steps=stored["steps"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One line of the trace. A step that suspends leaves two: when it asked and when it went on."""

    seq: int
    node: str
    handler: str
    phase: Phase
    started_at: datetime
    duration_ms: float
    outcome: Outcome
    suspended: bool
    changed: tuple[str, ...]


class ProgressStatus(StrEnum):
    """Why a walk stopped."""

    #: The next node belongs to the other phase.
    CROSSING = "crossing"
    #: A node waits for an external call.
    SUSPENDED = "suspended"
    #: The walk is over.
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a walk came.

    `outcome` is set when it is finished; `exit` names the exit node, and is empty when it ended without reaching one:
    `fault` then says why.
    """

    status: ProgressStatus
    checkpoint: Checkpoint
    steps: tuple[StepRecord, ...]
    suspension: Suspension | None = None
    outcome: Outcome | None = None
    exit: str = ""
    fault: str = ""

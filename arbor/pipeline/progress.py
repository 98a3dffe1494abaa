"""Checkpoints, trace records and progress of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from arbor.errors import CheckpointInvalid
from arbor.pipeline.outcomes import NodeOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspension:
    """The call that a node waits for."""

    kind: str
    payload: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint[S]:
    """The position and state of a run.

    `cursor` is the next node, or, while `waiting`, the suspended one. `steps` counts the steps so far.
    """

    cursor: str
    state: S
    visits: Mapping[str, int] = field(default_factory=dict)
    waiting: bool = False
    steps: int = 0

    def position(self) -> dict[str, Any]:
        """Return everything but the state as a JSON object."""
        return {
            "cursor": self.cursor,
            "visits": dict(self.visits),
            "waiting": self.waiting,
            "steps": self.steps,
        }

    @classmethod
    def at(cls, position: Mapping[str, Any], state: S) -> Checkpoint[S]:
        """Return the checkpoint at a stored position; raises CheckpointInvalid naming what is missing."""
        missing = [name for name in ("cursor", "visits", "waiting", "steps") if name not in position]
        if missing:
            raise CheckpointInvalid(f"a stored checkpoint needs {', '.join(missing)}")
        return cls(
            cursor=position["cursor"],
            state=state,
            visits=position["visits"],
            waiting=position["waiting"],
            steps=position["steps"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One line of the trace. A step that suspends has two: for its call and its continuation."""

    seq: int
    node: str
    handler: str
    started_at: datetime
    duration_ms: float
    outcome: NodeOutcome
    suspended: bool
    changed: tuple[str, ...]


class ProgressStatus(StrEnum):
    """The reasons why a run stopped."""

    #: A node waits for an external call.
    SUSPENDED = "suspended"
    #: The run has ended.
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress[S]:
    """The progress of a run; `exit` is the exit node, or empty with a `fault`."""

    status: ProgressStatus
    checkpoint: Checkpoint[S]
    steps: tuple[StepRecord, ...]
    suspension: Suspension | None = None
    outcome: NodeOutcome | None = None
    exit: str = ""
    fault: str = ""

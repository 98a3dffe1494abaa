"""The trace of a heartbeat: the nodes it passed, kept with its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.heartbeats.models import Heartbeat
from arbor.pipeline.engine import StepRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One node of the pipeline that a heartbeat passed. One that waits for a call leaves two."""

    #: Counts from 1.
    sequence: int
    node: str
    handler: str
    #: A `arbor.pipeline.outcomes.Phase`: inside or outside.
    phase: str
    #: An `Outcome`, or `waiting`.
    outcome: str
    #: What it changed, one line each.
    changed: Sequence[str]
    started_at: datetime
    duration_ms: float


def steps_of(beat: Heartbeat) -> list[Step]:
    """Return the nodes that a heartbeat has passed, in order."""
    return [
        Step(**{**each, "started_at": datetime.fromisoformat(each["started_at"])})
        for each in beat.trace or ()
    ]


def step_json(step: StepRecord) -> dict[str, Any]:
    """Return a step just taken as the heartbeat's row keeps it."""
    return {
        "sequence": step.seq,
        "node": step.node,
        "handler": step.handler,
        "phase": step.phase.value,
        "outcome": "waiting" if step.suspended else step.outcome.value,
        "changed": step.changed,
        "started_at": step.started_at,
        "duration_ms": round(step.duration_ms, 3),
    }

"""The trace of a heartbeat: the nodes that it ran, stored in its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from apps.heartbeats.models import Heartbeat
from arbor.pipeline.engine import StepRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One run of a node. A node that waits for a call has two."""

    #: Counts from 1.
    sequence: int
    node: str
    handler: str
    #: An `Outcome`, or `waiting`.
    outcome: str
    #: The changes of the step, one line each.
    changed: Sequence[str]
    started_at: datetime
    duration_ms: float


#: Older versions stored further keys, which are ignored.
_FIELDS = frozenset(field.name for field in fields(Step))


def steps_of(heartbeat: Heartbeat) -> list[Step]:
    """Return the steps of a heartbeat, in order."""
    return [
        Step(
            **{
                **{name: value for name, value in step.items() if name in _FIELDS},
                "started_at": datetime.fromisoformat(step["started_at"]),
            }
        )
        for step in heartbeat.trace or ()
    ]


def step_json(step: StepRecord) -> dict[str, Any]:
    """Return a step as JSON for the heartbeat's row."""
    return {
        "sequence": step.seq,
        "node": step.node,
        "handler": step.handler,
        "outcome": "waiting" if step.suspended else str(step.outcome),
        "changed": step.changed,
        "started_at": step.started_at,
        "duration_ms": round(step.duration_ms, 3),
    }

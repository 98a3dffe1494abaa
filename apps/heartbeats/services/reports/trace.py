"""The trace of a heartbeat: the nodes that it ran, stored in its row."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

from apps.heartbeats.models import Heartbeat
from arbor.pipeline.engine import StepRecord
from arbor.telemetry import RecordedStep

#: Older versions stored further keys, which are ignored.
_FIELDS = frozenset(field.name for field in fields(RecordedStep))


def steps_of(heartbeat: Heartbeat) -> list[RecordedStep]:
    """Return the steps of a heartbeat, in order."""
    return [
        RecordedStep(
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
        "sequence": step.sequence,
        "node": step.node,
        "handler": step.handler,
        "outcome": "waiting" if step.suspended else str(step.outcome),
        "changed": step.changed,
        "started_at": step.started_at,
        "duration_ms": round(step.duration_ms, 3),
    }

"""Read a heartbeat's trace: as a waterfall, and as a run through its pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from apps.calls.models import ExternalCall
from apps.console.cells import span
from apps.console.pictures.pipeline import DrawnPipeline, NodeVisits, draw_pipeline
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from arbor.pipeline.graph import heartbeat_text
from arbor.telemetry import RecordedStep

#: Outcomes from worst to best: of several visits to a node, the worst is shown.
_WORST = ("failure", "retry", "partial", "success")
#: The outcome of a step that waits for a model; a second step has the final one.
_WAITING = "waiting"
_ENDED = {
    HeartbeatStatus.DONE: "success",
    HeartbeatStatus.FAILED: "failure",
    HeartbeatStatus.SKIPPED: "skipped",
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A line of the waterfall: a step, or the wait for a model; `left` and `width` are percent of the whole."""

    name: str
    kind: str
    #: The outcome of the step, or the status of the call.
    status: str
    milliseconds: float
    note: str = ""
    changed: Sequence[str] = ()
    left: float = 0.0
    width: float = 0.0


def read_stages(
    heartbeat: Heartbeat, steps: Sequence[RecordedStep], calls: Sequence[ExternalCall]
) -> tuple[list[Stage], float]:
    """Return the steps and the waits for models, in the order of their beginnings, and the total time in milliseconds."""
    entries = sorted([*_steps(steps), *_waits(steps, calls)], key=lambda entry: entry[0])
    if not entries:
        return [], 0.0
    start = min(heartbeat.started_at, entries[0][0])
    placed = [(stage, (began_at - start).total_seconds() * 1000) for began_at, stage in entries]
    total = max(offset + stage.milliseconds for stage, offset in placed) or 1.0
    return [_with_position(stage, offset, total) for stage, offset in placed], total


def _steps(steps: Sequence[RecordedStep]) -> Iterator[tuple[datetime, Stage]]:
    for step in steps:
        stage = Stage(
            name=step.node,
            kind="step",
            status=step.outcome,
            milliseconds=step.duration_ms,
            changed=[str(line) for line in step.changed if line],
        )
        yield step.started_at, stage


def _waits(steps: Sequence[RecordedStep], calls: Sequence[ExternalCall]) -> Iterator[tuple[datetime, Stage]]:
    # `requested_at` is the beginning of the transaction, as the database's `now()` is constant; the step ended later.
    asked = [
        step.started_at + timedelta(milliseconds=step.duration_ms)
        for step in steps
        if step.outcome == _WAITING
    ]
    for call, after in zip_longest(calls, asked[: len(calls)]):
        began_at = max(call.requested_at, after) if after else call.requested_at
        waited_ms = max((call.ended_at - began_at).total_seconds() * 1000, 0.0) if call.ended_at else 0.0
        stage = Stage(
            name=f"{call.purpose}: {call.model}",
            kind="wait",
            status=call.status,
            milliseconds=waited_ms,
            note="waiting for the model",
        )
        yield began_at, stage


def _with_position(stage: Stage, offset: float, total: float) -> Stage:
    left = min(offset / total * 100, 99.5)
    width = max(min(stage.milliseconds / total * 100, 100 - left), 0.5)
    return replace(stage, left=round(left, 2), width=round(width, 2))


def draw_run(
    heartbeat: Heartbeat, steps: Sequence[RecordedStep], calls: Sequence[ExternalCall]
) -> DrawnPipeline | None:
    """Draw the agent's pipeline with the heartbeat's path through it; None if the pipeline cannot be parsed."""
    text = heartbeat.agent.pipeline or heartbeat_text()
    visited: dict[str, NodeVisits] = {}
    path: list[str] = []
    waits = [(call.ended_at - call.requested_at).total_seconds() for call in calls if call.ended_at]
    for step in steps:
        previous = visited.get(step.node)
        is_new_visit = previous is not None and (not path or path[-1] != step.node)
        outcome = step.outcome if previous is None else min(previous.outcome, step.outcome, key=_goodness)
        visited[step.node] = NodeVisits(
            outcome=outcome,
            milliseconds=step.duration_ms + (previous.milliseconds if previous else 0.0),
            visits=(previous.visits if previous else 1) + (1 if is_new_visit else 0),
            waited=f"{span(sum(waits))} wait" if step.handler == "think" and waits else "",
        )
        if not path or path[-1] != step.node:
            path.append(step.node)
    if heartbeat.status == HeartbeatStatus.WAITING and path:
        last = visited[path[-1]]
        visited[path[-1]] = NodeVisits(outcome=_WAITING, milliseconds=last.milliseconds, visits=last.visits)
    return draw_pipeline(
        text, visits=visited, path=path, ended=_ENDED.get(HeartbeatStatus(heartbeat.status), "")
    )


def _goodness(outcome: str) -> int:
    return _WORST.index(outcome) if outcome in _WORST else len(_WORST)

"""Read a heartbeat's trace: as a waterfall, and as a run through its pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import zip_longest

from apps.calls.models import ExternalCall
from apps.console.cells import span
from apps.console.pictures.pipeline import Passage, Picture, draw_pipeline
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.trace import Step
from arbor.pipeline.graph import heartbeat_text

#: What is worse hides what is better when a node was passed more than once.
_WORST = ("failure", "retry", "partial", "success")
#: What a step that waits for a model leaves; a second step says how it went on.
_WAITING = "waiting"
_ENDED = {
    HeartbeatStatus.DONE: "success",
    HeartbeatStatus.FAILED: "failure",
    HeartbeatStatus.SKIPPED: "skipped",
}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One line of the waterfall; `left` and `width` are percent of the whole."""

    name: str
    note: str
    kind: str
    look: str
    milliseconds: float
    left: float
    width: float
    changed: Sequence[str] = ()


def read_stages(
    heartbeat: Heartbeat, steps: Sequence[Step], calls: Sequence[ExternalCall]
) -> tuple[list[Stage], float]:
    """Return the steps and the waits for models, in the order they began, and the whole time in milliseconds."""
    marks: list[tuple[datetime, float, Stage]] = []
    for step in steps:
        stage = Stage(
            name=step.node,
            note="",
            kind="step",
            look=step.outcome,
            milliseconds=step.duration_ms,
            left=0,
            width=0,
            changed=[str(line) for line in step.changed if line],
        )
        marks.append((step.started_at, step.duration_ms, stage))
    # The database's clock stands still in a transaction: a call is asked for at its beginning, the step is at its end.
    asked = [
        step.started_at + timedelta(milliseconds=step.duration_ms)
        for step in steps
        if step.outcome == _WAITING
    ]
    for call, after in zip_longest(calls, asked[: len(calls)]):
        begin = max(call.requested_at, after) if after else call.requested_at
        waited = max((call.ended_at - begin).total_seconds() * 1000, 0.0) if call.ended_at else 0.0
        stage = Stage(
            name=f"{call.purpose}: {call.model}",
            note="waiting for the model",
            kind="wait",
            look=call.status,
            milliseconds=waited,
            left=0,
            width=0,
        )
        marks.append((begin, waited, stage))
    if not marks:
        return [], 0.0
    marks.sort(key=lambda mark: mark[0])
    start = min(heartbeat.started_at, marks[0][0])
    total = max((at - start).total_seconds() * 1000 + took for at, took, _ in marks) or 1.0
    return [_placed(stage, (at - start).total_seconds() * 1000, total) for at, _, stage in marks], total


def _placed(stage: Stage, offset: float, total: float) -> Stage:
    left = min(offset / total * 100, 99.5)
    width = max(min(stage.milliseconds / total * 100, 100 - left), 0.5)
    return replace(stage, left=round(left, 2), width=round(width, 2))


def draw_run(heartbeat: Heartbeat, steps: Sequence[Step], calls: Sequence[ExternalCall]) -> Picture | None:
    """Draw the agent's pipeline and the way the heartbeat took through it; none when it cannot be read."""
    text = heartbeat.agent.pipeline or heartbeat_text()
    passed: dict[str, Passage] = {}
    path: list[str] = []
    waits = [(call.ended_at - call.requested_at).total_seconds() for call in calls if call.ended_at]
    for step in steps:
        before = passed.get(step.node)
        again = before is not None and (not path or path[-1] != step.node)
        outcome = step.outcome if before is None else min(before.outcome, step.outcome, key=_badness)
        passed[step.node] = Passage(
            outcome=outcome,
            milliseconds=step.duration_ms + (before.milliseconds if before else 0.0),
            visits=(before.visits if before else 1) + (1 if again else 0),
            waited=f"{span(sum(waits))} wait" if step.handler == "think" and waits else "",
        )
        if not path or path[-1] != step.node:
            path.append(step.node)
    if heartbeat.status == HeartbeatStatus.WAITING and path:
        last = passed[path[-1]]
        passed[path[-1]] = Passage(outcome=_WAITING, milliseconds=last.milliseconds, visits=last.visits)
    return draw_pipeline(
        text, passed=passed, path=path, ended=_ENDED.get(HeartbeatStatus(heartbeat.status), "")
    )


def _badness(outcome: str) -> int:
    return _WORST.index(outcome) if outcome in _WORST else len(_WORST)

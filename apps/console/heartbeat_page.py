"""What a heartbeat's page shows: why it did that. A fixed number of queries; looking changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.console.cells import span
from apps.console.pipeline_picture import Passage, Picture, draw_pipeline
from apps.goals.models import Goal
from apps.heartbeats.models import ExternalCall, Heartbeat, HeartbeatStatus, LedgerEntry, Step
from arbor.errors import ReplyInvalid
from arbor.heartbeat.decision import Verdict
from arbor.heartbeat.energy import MAX_ENERGY
from arbor.heartbeat.parsing import parse_reply
from arbor.models.handles import Provider
from arbor.pipeline.graph import heartbeat_text

#: What is worse hides what is better when a node was passed more than once.
_WORST = ("failure", "retry", "partial", "success")
_ENDED = {HeartbeatStatus.DONE: "success", HeartbeatStatus.FAILED: "failure"}


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


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of the prompt; `share` is percent of all tokens, `hue` its colour's place in the palette."""

    name: str
    text: str
    tokens: int
    share: float
    hue: int


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request to a model and what came back."""

    row: ExternalCall
    paid: LedgerEntry | None
    sections: Sequence[Section]
    tokens: int
    messages: Sequence[tuple[str, str]]
    parsed: str
    repairs: Sequence[str]
    unreadable: str
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One proposed action and what became of it."""

    action: str
    params: str
    verdict: str
    ran: bool
    reason: str
    cost: float
    outcome: str
    result: str
    reasoning: str
    goal: Goal | None


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that happened to a goal."""

    goal: Goal | None
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class HeartbeatPage:
    """A heartbeat, as its page shows it."""

    beat: Heartbeat
    picture: Picture | None
    stages: Sequence[Stage]
    total_ms: float
    calls: Sequence[Call]
    deeds: Sequence[Deed]
    changes: Sequence[Change]
    dropped: Sequence[dict[str, str]]
    situation: str
    before: Heartbeat | None
    after: Heartbeat | None
    energy_max: float = MAX_ENERGY

    @property
    def is_reflex(self) -> bool:
        """Tell whether rules decided, not a language model."""
        return self.beat.model.startswith(f"{Provider.REFLEX}/")

    @property
    def spent(self) -> float:
        """Return the energy that actions cost."""
        return sum(deed.cost for deed in self.deeds if deed.ran)


def read_heartbeat(beat: Heartbeat) -> HeartbeatPage:
    """Read the trace of a heartbeat of the current tenant."""
    steps = list(Step.objects.filter(heartbeat_id=beat.id).order_by("sequence"))
    calls = list(ExternalCall.objects.filter(heartbeat_id=beat.id).order_by("requested_at"))
    paid = {
        entry.call_id: entry
        for entry in LedgerEntry.objects.filter(call_id__in=[call.id for call in calls])
        if calls
    }
    goals = _goals(beat)
    stages, total = _stages(beat, steps, calls)
    neighbours = Heartbeat.objects.filter(agent_id=beat.agent_id).only(
        "tenant_id", "number", "status", "started_at"
    )
    return HeartbeatPage(
        beat=beat,
        picture=_picture(beat, steps, calls),
        stages=stages,
        total_ms=total,
        calls=[_call(call, paid.get(call.id)) for call in calls],
        deeds=[_deed(each, goals) for each in _dicts(beat.actions)],
        changes=[
            Change(
                goal=goals.get(str(each.get("goal_id", ""))),
                kind=str(each.get("kind", "")),
                text=str(each.get("change", "")),
            )
            for each in _dicts(beat.goal_changes)
        ],
        dropped=[
            {
                "path": str(each.get("path", "")),
                "value": _text(each.get("value")),
                "reason": _text(each.get("reason")),
            }
            for each in _dicts(beat.dropped)
        ],
        situation=_pretty(beat.situation) if beat.situation else "",
        before=neighbours.filter(started_at__lt=beat.started_at).order_by("-started_at").first(),
        after=neighbours.filter(started_at__gt=beat.started_at).order_by("started_at").first(),
    )


def _goals(beat: Heartbeat) -> dict[str, Goal]:
    named = {str(each.get("goal_id") or "") for each in [*_dicts(beat.actions), *_dicts(beat.goal_changes)]}
    ids = []
    for each in named:
        try:
            ids.append(UUID(each))
        except ValueError:
            # A model may name a goal that never was: the page shows its text all the same.
            continue
    found = Goal.objects.filter(id__in=ids).only("tenant_id", "title", "state") if ids else []
    return {str(goal.id): goal for goal in found}


def _stages(
    beat: Heartbeat, steps: Sequence[Step], calls: Sequence[ExternalCall]
) -> tuple[list[Stage], float]:
    """Return the steps and the waits for models, in the order they began, and the whole time in milliseconds."""
    marks: list[tuple[datetime, float, Stage]] = []
    for step in steps:
        stage = Stage(
            name=step.node,
            note="" if step.phase == "inside" else "no transaction open",
            kind="step",
            look=step.outcome,
            milliseconds=step.duration_ms,
            left=0,
            width=0,
            changed=[str(line) for line in step.changed if line] if isinstance(step.changed, list) else (),
        )
        marks.append((step.started_at, step.duration_ms, stage))
    for call in calls:
        waited = (call.ended_at - call.requested_at).total_seconds() * 1000 if call.ended_at else 0.0
        stage = Stage(
            name=f"{call.purpose}: {call.model}",
            note="waiting for the model",
            kind="wait",
            look=call.status,
            milliseconds=waited,
            left=0,
            width=0,
        )
        marks.append((call.requested_at, waited, stage))
    if not marks:
        return [], 0.0
    marks.sort(key=lambda mark: mark[0])
    start = min(beat.started_at, marks[0][0])
    total = max((at - start).total_seconds() * 1000 + took for at, took, _ in marks) or 1.0
    return [_placed(stage, (at - start).total_seconds() * 1000, total) for at, _, stage in marks], total


def _placed(stage: Stage, offset: float, total: float) -> Stage:
    left = min(offset / total * 100, 99.5)
    width = max(min(stage.milliseconds / total * 100, 100 - left), 0.5)
    return Stage(**{**stage.__dict__, "left": round(left, 2), "width": round(width, 2)})


def _picture(beat: Heartbeat, steps: Sequence[Step], calls: Sequence[ExternalCall]) -> Picture | None:
    text = beat.agent.pipeline or heartbeat_text()
    passed: dict[str, Passage] = {}
    walk: list[str] = []
    waits = [(call.ended_at - call.requested_at).total_seconds() for call in calls if call.ended_at]
    for step in steps:
        before = passed.get(step.node)
        again = before is not None and (not walk or walk[-1] != step.node)
        outcome = step.outcome if before is None else min(before.outcome, step.outcome, key=_badness)
        passed[step.node] = Passage(
            outcome=outcome,
            milliseconds=step.duration_ms + (before.milliseconds if before else 0.0),
            visits=(before.visits if before else 1) + (1 if again else 0),
            waited=f"{span(sum(waits))} wait" if step.handler == "think" and waits else "",
        )
        if not walk or walk[-1] != step.node:
            walk.append(step.node)
    if beat.status == HeartbeatStatus.WAITING and walk:
        last = passed[walk[-1]]
        passed[walk[-1]] = Passage(outcome="waiting", milliseconds=last.milliseconds, visits=last.visits)
    return draw_pipeline(text, passed=passed, walk=walk, ended=_ENDED.get(HeartbeatStatus(beat.status), ""))


def _badness(outcome: str) -> int:
    return _WORST.index(outcome) if outcome in _WORST else len(_WORST)


def _call(call: ExternalCall, paid: LedgerEntry | None) -> Call:
    parsed, unreadable = "", ""
    repairs: Sequence[str] = ()
    if call.reply:
        try:
            read = parse_reply(call.reply)
            parsed, repairs = _pretty(read.reply.model_dump(mode="json", exclude_defaults=True)), read.repairs
        except ReplyInvalid as error:
            unreadable = str(error)
    sections = _sections(call.sections)
    request = call.request if isinstance(call.request, Mapping) else {}
    messages = [("system", _text(request.get("system")))] if request.get("system") else []
    messages += [
        (str(each.get("role", "")), _text(each.get("content"))) for each in _dicts(request.get("messages"))
    ]
    return Call(
        row=call,
        paid=paid,
        sections=sections,
        tokens=sum(section.tokens for section in sections),
        messages=messages,
        parsed=parsed,
        repairs=repairs,
        unreadable=unreadable,
        seconds=(call.ended_at - call.requested_at).total_seconds() if call.ended_at else None,
    )


#: Colours of the palette that sections take in turn.
_HUES = 8


def _sections(stored: Any) -> list[Section]:
    rows = _dicts(stored)
    sizes = [int(each["tokens"]) if isinstance(each.get("tokens"), int | float) else 0 for each in rows]
    total = sum(sizes) or 1
    return [
        Section(
            name=str(each.get("name", "")),
            text=_text(each.get("text")),
            tokens=tokens,
            share=round(tokens / total * 100, 2),
            hue=place % _HUES,
        )
        for place, (each, tokens) in enumerate(zip(rows, sizes, strict=True))
    ]


def _deed(stored: Mapping[str, Any], goals: Mapping[str, Goal]) -> Deed:
    verdict = str(stored.get("verdict", ""))
    cost = stored.get("cost")
    params = stored.get("params")
    return Deed(
        action=str(stored.get("action", "")),
        params=", ".join(f"{name}: {_text(value)}" for name, value in params.items())
        if isinstance(params, dict)
        else _text(params),
        verdict=verdict,
        ran=verdict == Verdict.RUN,
        reason=_text(stored.get("reason")),
        cost=cost if isinstance(cost, int | float) else 0,
        outcome=str(stored.get("outcome", "")),
        result=_text(stored.get("summary")),
        reasoning=_text(stored.get("reasoning")),
        goal=goals.get(str(stored.get("goal_id", ""))),
    )


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)

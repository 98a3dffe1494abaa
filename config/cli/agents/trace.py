"""The trace of a heartbeat, as JSON and for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from apps.calls.models import ExternalCall, LedgerEntry
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.reports.trace import steps_of
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.prompts.questions import sections_of
from arbor.models.handles import is_reflex
from arbor.telemetry import RecordedStep
from config.cli.kit.output import cut, short, stamp

_COLORS = {
    HeartbeatStatus.DONE: "green",
    HeartbeatStatus.FAILED: "red",
    HeartbeatStatus.SKIPPED: "yellow",
    HeartbeatStatus.WAITING: "cyan",
    HeartbeatStatus.RUNNING: "cyan",
}


def trace_of(heartbeat: Heartbeat) -> dict[str, Any]:
    """Return a heartbeat with its steps, calls, actions and changes, for JSON. Inside the tenant's transaction."""
    calls = list(ExternalCall.objects.filter(heartbeat_id=heartbeat.id).defer("request"))
    entries = {entry.call_id: entry for entry in LedgerEntry.objects.filter(call__in=calls)}
    return {
        "id": str(heartbeat.id),
        "agent": heartbeat.agent.name,
        "agent_id": str(heartbeat.agent_id),
        "number": heartbeat.number,
        "status": heartbeat.status,
        "reason": heartbeat.reason,
        "mode": heartbeat.mode,
        "trigger": heartbeat.trigger,
        "tier": heartbeat.tier,
        "round_trips": heartbeat.round_trips,
        "model": heartbeat.model,
        "language_model": bool(heartbeat.model) and not is_reflex(heartbeat.model),
        "slot_at": stamp(heartbeat.slot_at),
        "started_at": stamp(heartbeat.started_at),
        "ended_at": stamp(heartbeat.ended_at),
        "own_ms": round(heartbeat.own_ms, 2),
        "energy_start": heartbeat.energy_start,
        "energy_end": heartbeat.energy_end,
        "steps": [step_value(step) for step in steps_of(heartbeat)],
        "calls": [_call(call, entries.get(call.id)) for call in calls],
        "reasoning": heartbeat.reasoning,
        "actions": heartbeat.actions,
        "goal_changes": heartbeat.goal_changes,
        "dropped": heartbeat.dropped,
        "narrative": heartbeat.narrative,
        "memory_id": str(heartbeat.memory_id) if heartbeat.memory_id else None,
    }


def step_value(step: RecordedStep) -> dict[str, Any]:
    """Return one step of a trace, for JSON."""
    return {
        "sequence": step.sequence,
        "node": step.node,
        "outcome": step.outcome,
        "duration_ms": round(step.duration_ms, 2),
        "changed": list(step.changed),
    }


def _call(call: ExternalCall, ledger_entry: LedgerEntry | None) -> dict[str, Any]:
    return {
        "purpose": call.purpose,
        "model": call.model,
        "status": call.status,
        "attempts": call.attempts,
        "waited_ms": _span_ms(call.requested_at, call.started_at),
        "asked_ms": _span_ms(call.started_at, call.ended_at),
        "input_tokens": ledger_entry.input_tokens if ledger_entry else None,
        "output_tokens": ledger_entry.output_tokens if ledger_entry else None,
        "cost_usd": _dollars(ledger_entry.cost_usd)
        if ledger_entry and ledger_entry.cost_usd is not None
        else None,
        # The estimated tokens of each section, and the number of its entries that had no room.
        "sections": [
            {"name": section["name"], "tokens": section["tokens"], "cut": section.get("cut", 0)}
            for section in sections_of(call.sections, {})
        ],
        "error": f"{call.error_kind}: {call.error}" if call.error else "",
    }


def _dollars(cost: Decimal) -> str:
    """Return an amount without exponent and trailing zeros."""
    return f"{cost:f}".rstrip("0").rstrip(".") if cost else "0"


def _span_ms(start: datetime | None, end: datetime | None) -> float | None:
    return round((end - start).total_seconds() * 1000, 2) if start and end else None


# --- For people --------------------------------------------------------------------------------------


def render(trace: dict[str, Any]) -> RenderableType:
    """Return the trace for a terminal."""
    return Group(*_parts(trace))


def render_step(step: dict[str, Any]) -> Text:
    """Return a step as one line, cut where the terminal ends."""
    color = {"success": "green", "waiting": "cyan", "partial": "yellow"}.get(step["outcome"], "red")
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"  {step['sequence']:>3}  {step['node']:<16} ")
    line.append(f"{step['outcome']:<8}", style=color)
    line.append(f" {step['duration_ms']:>9.2f} ms")
    if step["changed"]:
        # The JSON has the full text; people find the content in the sections below.
        line.append("  " + cut("; ".join(step["changed"])), style="dim")
    return line


def _parts(trace: dict[str, Any]) -> Iterator[RenderableType]:
    yield _head(trace)
    if trace["steps"]:
        yield _title("Steps")
        yield from (render_step(step) for step in trace["steps"])
    yield from _section("Model", (line for call in trace["calls"] for line in _call_lines(call)))
    yield from _section("Thought", [escape(trace["reasoning"])] if trace["reasoning"] else [])
    if trace["actions"]:
        yield _title("Actions")
        yield Padding(_actions(trace["actions"]), (0, 0, 0, 2), expand=False)
    yield from _section("Goals", (escape(goal_line(change)) for change in trace["goal_changes"]))
    yield from _section("Dropped from the reply", (_dropped_line(item) for item in trace["dropped"]))
    yield from _section("Narrative", [escape(trace["narrative"])] if trace["narrative"] else [])


def _head(trace: dict[str, Any]) -> RenderableType:
    color = _COLORS[HeartbeatStatus(trace["status"])]
    number = f"heartbeat {trace['number']}" if trace["number"] else "heartbeat"
    lines = [
        f"[bold]{escape(trace['agent'])}[/bold], {number}: [{color}]{trace['status']}[/{color}]"
        + (f", {escape(trace['reason'])}" if trace["reason"] else "")
    ]
    facts = [trace["mode"].replace("_", " ")] if trace["mode"] else []
    if trace["tier"]:
        round_trips = f", {trace['round_trips']} round trips" if trace["round_trips"] > 1 else ""
        facts.append(f"{trace['tier']} thinking{round_trips}")
    if trace["energy_start"] is not None:
        end = trace["energy_end"]
        facts.append(f"energy {trace['energy_start']:g}" + (f" → {end:g}" if end is not None else ""))
    facts.append(f"own time {trace['own_ms']:.1f} ms")
    facts.append(f"at {trace['started_at'][:19].replace('T', ' ')} UTC")
    facts.append(f"id {short(trace['id'])}")
    lines.append("  " + " · ".join(facts))
    if trace["model"]:
        lines.append("  " + model_line(trace["model"]))
    return Text.from_markup("\n".join(lines))


def model_line(model: str) -> str:
    """Return the model as a line, or that there is none."""
    if is_reflex(model):
        return "[yellow]reflex: no language model[/yellow] (fixed rules decided)"
    return f"model {escape(model)}"


def _section(title: str, lines: Iterable[str]) -> Iterator[RenderableType]:
    """Return lines of markup under a title; nothing when there are none."""
    body = [Padding(Text.from_markup(line), (0, 0, 0, 2), expand=False) for line in lines]
    if body:
        yield _title(title)
        yield from body


def _title(title: str) -> Text:
    return Text.from_markup(f"\n[bold]{title}[/bold]")


def _call_lines(call: dict[str, Any]) -> Iterator[str]:
    yield _call_line(call)
    if call["sections"]:
        parts = [
            f"{section['name'].replace('_', ' ')} {section['tokens']}"
            + (f" ({section['cut']} not shown)" if section["cut"] else "")
            for section in call["sections"]
        ]
        total = sum(section["tokens"] for section in call["sections"])
        yield f"[dim]prompt of about {total} tokens: {escape(', '.join(parts))}[/dim]"


def _call_line(call: dict[str, Any]) -> str:
    parts = [f"{call['purpose']} by {escape(call['model'])}: {call['status']}"]
    if call["asked_ms"] is not None:
        parts.append(f"{call['asked_ms']:.0f} ms")
    if call["input_tokens"] is not None:
        parts.append(f"{call['input_tokens']} + {call['output_tokens']} tokens")
    if call["cost_usd"] is not None:
        parts.append(f"${call['cost_usd']}")
    if call["attempts"] > 1:
        parts.append(f"{call['attempts']} attempts")
    line = " · ".join(parts)
    return f"{line} [red]{escape(call['error'])}[/red]" if call["error"] else line


def _actions(actions: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("action", "verdict", "cost", "result"):
        table.add_column(column, overflow="fold", justify="right" if column == "cost" else "left")
    for action in actions:
        ran = action["verdict"] == DecisionVerdict.RUN
        params = json.dumps(action["params"], ensure_ascii=False) if action["params"] else ""
        what = Text.assemble((action["action"], "bold"), f" {cut(params)}" if params else "")
        verdict = Text(
            action["verdict"].replace("_", " ") if not ran else action.get("outcome", "run"),
            style="green" if ran and action.get("outcome") == "success" else "yellow",
        )
        result = Text(str(action.get("summary") or action["reason"]))
        table.add_row(what, verdict, f"{action['cost']:g}", result)
    return table


def goal_line(change: dict[str, Any]) -> str:
    """Return a change of a goal as a line; a change without a text of its own is named by its kind."""
    title, text = change.get("title", ""), str(change["change"] or change["kind"])
    return f"{title}: {text}" if title else text


def _dropped_line(item: dict[str, Any]) -> str:
    value = json.dumps(item["value"], ensure_ascii=False, default=str)
    return f"{escape(item['path'])} = {escape(cut(value))}: {escape(item['reason'])}"

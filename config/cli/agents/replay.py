"""Replay a recorded heartbeat."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.reports.replay import (
    OtherModelDecision,
    ReplayInput,
    ask_other_model,
    read_recorded_heartbeat,
)
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.replay import Replay
from arbor.heartbeat.replay import replay as replay_heartbeat
from arbor.quotations import counted
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.lookup import find_in_tenant, tenant_of_row
from config.cli.kit.output import table


def replay(heartbeat_id: str, model: str | None, tenant_slug: str | None) -> Output:
    """Replay a recorded heartbeat and show the differences. Nothing is written."""
    tenant_id = tenant_of_row(Heartbeat, heartbeat_id, tenant_slug)
    with tenant_transaction(tenant_id):
        row_id = find_in_tenant(Heartbeat, heartbeat_id)
    recorded = read_recorded_heartbeat(heartbeat_id=row_id, tenant_id=tenant_id)
    result = replay_heartbeat(recorded.heartbeat)
    other = ask_other_model(recorded, model=model) if model is not None else None
    code = ExitCode.DONE if result.is_same else ExitCode.FAILED
    return Output(_as_json(recorded, result, other), text=_render(recorded, result, other), code=code)


def _as_json(recorded: ReplayInput, result: Replay, other: OtherModelDecision | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": str(recorded.id),
        "agent": recorded.agent,
        "number": recorded.number,
        "model": recorded.model,
        "same": result.is_same,
        "differences": [
            {"where": difference.where, "recorded": difference.recorded, "replayed": difference.replayed}
            for difference in result.differences
        ],
        "notes": list(result.notes),
        "decisions": [decision.model_dump(mode="json") for decision in result.decisions],
    }
    if other is not None:
        value["other"] = {
            "model": other.model,
            "decisions": [decision.model_dump(mode="json") for decision in other.decisions],
            "input_tokens": other.reply.usage.input_tokens,
            "output_tokens": other.reply.usage.output_tokens,
        }
    return value


def _render(recorded: ReplayInput, result: Replay, other: OtherModelDecision | None) -> RenderableType:
    head = f"heartbeat {recorded.number} of [bold]{escape(recorded.agent)}[/bold], decided again: "
    count = len(result.differences)
    verdict = "[green]the same[/green]" if result.is_same else f"[red]{counted(count, 'difference')}[/red]"
    parts: list[RenderableType] = [Text.from_markup(head + verdict)]
    for difference in result.differences:
        parts += [Text(f"\n{difference.where}", "bold"), _color_diff(difference.diff)]
    parts += [Text(f"· {note}", "dim") for note in result.notes]
    parts.append(Text())
    parts.append(_decisions(f"{recorded.model} decided", result.decisions))
    if other is not None:
        parts += [Text(), _decisions(f"{other.model} would have decided", other.decisions)]
    return Group(*parts)


def _color_diff(diff: str) -> Text:
    text = Text()
    for line in diff.splitlines():
        text.append(f"  {line}\n", {"-": "red", "+": "green"}.get(line[:1], "dim"))
    return text


def _decisions(title: str, decisions: Any) -> RenderableType:
    if not decisions:
        return Text(f"{title}: nothing")
    return table(
        ("action", "verdict", "params", "why not"), (_row(decision) for decision in decisions), title=title
    )


def _row(decision: Decision) -> tuple[object, ...]:
    params = ", ".join(f"{name}={value}" for name, value in decision.params.items())
    return decision.action, decision.verdict.value, params[:120], decision.reason

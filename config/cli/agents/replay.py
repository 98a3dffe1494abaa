"""Replay a recorded heartbeat."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.replay import (
    Found,
    OtherModelDecision,
    ask_other_model,
    read_recorded_heartbeat,
)
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.replay import Replay
from arbor.heartbeat.replay import replay as replay_beat
from config.cli.kit import ExitCode, Output
from config.cli.lookup import find_in_tenant, tenant_of_row
from config.cli.output import table


def replay(heartbeat_id: str, model: str | None, tenant_slug: str | None) -> Output:
    """Replay a recorded heartbeat and show what differs. Nothing is written."""
    tenant_id = tenant_of_row(Heartbeat, heartbeat_id, tenant_slug)
    with tenant_transaction(tenant_id):
        row_id = find_in_tenant(Heartbeat, heartbeat_id)
    found = read_recorded_heartbeat(heartbeat_id=row_id, tenant_id=tenant_id)
    made = replay_beat(found.beat)
    other = ask_other_model(found, model=model) if model else None
    code = ExitCode.DONE if made.is_same else ExitCode.FAILED
    return Output(_as_json(found, made, other), people=_render(found, made, other), code=code)


def _as_json(found: Found, made: Replay, other: OtherModelDecision | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": str(found.id),
        "agent": found.agent,
        "number": found.number,
        "model": found.model,
        "same": made.is_same,
        "differences": [
            {"where": difference.where, "recorded": difference.recorded, "replayed": difference.replayed}
            for difference in made.differences
        ],
        "notes": list(made.notes),
        "decisions": [decision.model_dump(mode="json") for decision in made.decisions],
    }
    if other is not None:
        value["other"] = {
            "model": other.model,
            "decisions": [decision.model_dump(mode="json") for decision in other.decisions],
            "input_tokens": other.reply.usage.input_tokens,
            "output_tokens": other.reply.usage.output_tokens,
        }
    return value


def _render(found: Found, made: Replay, other: OtherModelDecision | None) -> RenderableType:
    head = f"heartbeat {found.number} of [bold]{escape(found.agent)}[/bold], decided again: "
    count = len(made.differences)
    verdict = (
        "[green]the same[/green]" if made.is_same else f"[red]{count} thing{'s' * (count > 1)} differ[/red]"
    )
    parts: list[RenderableType] = [Text.from_markup(head + verdict)]
    for difference in made.differences:
        parts += [Text(f"\n{difference.where}", "bold"), _coloured(difference.diff)]
    parts += [Text(f"· {note}", "dim") for note in made.notes]
    parts.append(Text())
    parts.append(_decisions(f"{found.model} decided", made.decisions))
    if other is not None:
        parts += [Text(), _decisions(f"{other.model} would have decided", other.decisions)]
    return Group(*parts)


def _coloured(diff: str) -> Text:
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
